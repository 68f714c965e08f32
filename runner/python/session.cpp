#include <algorithm>
#include <cstddef>

#include "runner/python/bindings.h"

namespace mote::python {
namespace {

using Logits = py::array_t<float>;

// An array that call(handle, data, error) fills without the GIL.
template <typename Call>
Logits filled(Session& session, std::vector<py::ssize_t> shape, const Call& call) {
  Logits logits(std::move(shape));
  float* data = logits.mutable_data();
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return call(handle.get(), data, error);
  });
  return logits;
}

Logits prefill(Session& session, const std::vector<int32_t>& ids) {
  return filled(session, {session.vocab_size()}, [&](mote_session* handle, float* data, mote_error* error) {
    return mote_session_prefill(handle, ids.data(), ids.size(), data, error);
  });
}

// What call(handle, error) does, without the GIL.
template <typename Call>
void run(Session& session, const Call& call) {
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return call(handle.get(), error);
  });
}

Logits logits(Session& session) {
  return filled(session, {session.vocab_size()}, [&](mote_session* handle, float* data, mote_error* error) {
    return mote_session_logits(handle, data, error);
  });
}

void append(Session& session, const std::vector<int32_t>& ids) {
  run(session, [&](mote_session* handle, mote_error* error) {
    return mote_session_append(handle, ids.data(), ids.size(), error);
  });
}

void append_text(Session& session, const std::string& text, bool parse_special) {
  run(session, [&](mote_session* handle, mote_error* error) {
    return mote_session_append_text(handle, text.data(), text.size(), parse_special, error);
  });
}

std::vector<int32_t> tokenize_in_session(Session& session, const std::string& text, bool parse_special) {
  return all_ids(most_ids(text.size()), [&](int32_t* ids, size_t capacity, size_t* count) {
    run(session, [&](mote_session* handle, mote_error* error) {
      return mote_session_tokenize(handle, text.data(), text.size(), parse_special, ids, capacity, count, error);
    });
  });
}

int64_t set_tokens(Session& session, const std::vector<int32_t>& ids) {
  int64_t kept = 0;
  run(session, [&](mote_session* handle, mote_error* error) {
    return mote_session_set_tokens(handle, ids.data(), ids.size(), &kept, error);
  });
  return kept;
}

int64_t rewind_to_prefix(Session& session, const std::vector<int32_t>& ids) {
  int64_t kept = 0;
  run(session, [&](mote_session* handle, mote_error* error) {
    return mote_session_rewind_to_prefix(handle, ids.data(), ids.size(), &kept, error);
  });
  return kept;
}

std::shared_ptr<Session> fork(Session& session) {
  mote_session* forked = nullptr;
  run(session, [&](mote_session* handle, mote_error* error) { return mote_session_fork(handle, &forked, error); });
  return std::make_shared<Session>(forked, session.vocab_size());
}

void save(Session& session, const std::string& path) {
  run(session, [&](mote_session* handle, mote_error* error) { return mote_session_save(handle, path.c_str(), error); });
}

void restore(Session& session, const std::string& path) {
  run(session,
      [&](mote_session* handle, mote_error* error) { return mote_session_restore(handle, path.c_str(), error); });
}

py::dict cache_info(const PrefixCache& cache) {
  auto from = sized<mote_prefix_cache_info>();
  check([&](mote_error* error) { return mote_prefix_cache_get_info(cache.get(), &from, error); });
  py::dict result;
  result["bytes"] = from.bytes;
  result["snapshots"] = from.snapshots;
  result["hits"] = from.hits;
  result["misses"] = from.misses;
  result["reused_tokens"] = from.reused_tokens;
  return result;
}

Logits decode(Session& session, int32_t id) {
  return filled(session, {session.vocab_size()}, [&](mote_session* handle, float* data, mote_error* error) {
    return mote_session_decode(handle, id, data, error);
  });
}

Logits verify(Session& session, const std::vector<int32_t>& ids) {
  const auto count = static_cast<py::ssize_t>(ids.size());
  return filled(session, {count, session.vocab_size()}, [&](mote_session* handle, float* data, mote_error* error) {
    return mote_session_verify(handle, ids.data(), ids.size(), data, error);
  });
}

Logits score(Session& session, const std::vector<int32_t>& ids) {
  const auto count = static_cast<py::ssize_t>(ids.size());
  return filled(session, {std::max<py::ssize_t>(count - 1, 0)},
                [&](mote_session* handle, float* data, mote_error* error) {
                  return mote_session_score(handle, ids.data(), ids.size(), data, error);
                });
}

py::dict session_info(Session& session) {
  auto from = sized<mote_session_info>();
  run(session, [&](mote_session* handle, mote_error* error) { return mote_session_get_info(handle, &from, error); });
  py::dict result;
  result["context_length"] = from.context_length;
  result["num_threads"] = from.num_threads;
  result["position"] = from.position;
  result["state_bytes"] = from.state_bytes;
  result["arena_bytes"] = from.arena_bytes;
  result["held_state_bytes"] = from.held_state_bytes;
  result["forgotten_tokens"] = from.forgotten_tokens;
  return result;
}

void rewind(Session& session, int64_t position) {
  run(session, [&](mote_session* handle, mote_error* error) { return mote_session_rewind(handle, position, error); });
}

void move_to(Session& session, const std::string& backend) {
  run(session,
      [&](mote_session* handle, mote_error* error) { return mote_session_move_to(handle, backend.c_str(), error); });
}

// The target that computes, and why the session moved there by itself.
std::pair<std::string, std::string> backend(Session& session) {
  char *name = nullptr, *reason = nullptr;
  run(session,
      [&](mote_session* handle, mote_error* error) { return mote_session_get_backend(handle, &name, &reason, error); });
  const std::unique_ptr<char, Closer<mote_string_free>> own_name(name), own_reason(reason);
  return {name, reason};
}

std::vector<int32_t> tokens(Session& session) {
  std::vector<int32_t> ids;
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    size_t count = 0;
    const mote_error_code code = mote_session_tokens(handle.get(), nullptr, 0, &count, error);
    if (code != MOTE_OK) return code;
    ids.resize(count);
    return mote_session_tokens(handle.get(), ids.data(), ids.size(), &count, error);
  });
  return ids;
}

void set_draft_model(Session& session, const Model* draft) {
  const std::shared_ptr<mote_model> model = draft == nullptr ? nullptr : draft->handle();
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_set_draft_model(handle.get(), model.get(), error);
  });
}

void reset(Session& session) {
  run(session, [](mote_session* handle, mote_error* error) { return mote_session_reset(handle, error); });
}

py::str check_golden(Session& session) {
  char* text = nullptr;
  run(session,
      [&](mote_session* handle, mote_error* error) { return mote_session_check_golden(handle, &text, error); });
  const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
  return py::str(text);
}

void start_profile(Session& session) {
  run(session, [](mote_session* handle, mote_error* error) { return mote_session_start_profile(handle, error); });
}

py::str stop_profile(Session& session) {
  char* text = nullptr;
  run(session,
      [&](mote_session* handle, mote_error* error) { return mote_session_stop_profile(handle, &text, error); });
  const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
  return py::str(text);
}

// A copy of a value as an array; bfloat16 as the bits of it.
py::array array_of(const mote_value& value) {
  const std::string dtype = value.dtype;
  const py::dtype type(dtype == "bfloat16" ? "uint16" : dtype);
  return py::array(type, std::vector<py::ssize_t>(value.shape, value.shape + value.rank), value.data);
}

// Puts an array in the place of a value. Errors: raises ValueError if they are not alike.
void replace(const mote_value& value, const py::array& array) {
  const py::array found = array_of(value);
  const bool is_alike =
      array.dtype().equal(found.dtype()) && array.size() == found.size() && (array.flags() & py::array::c_style) != 0;
  if (!is_alike) throw py::value_error("must be a contiguous array of the same dtype and size as the value");
  std::copy_n(static_cast<const std::byte*>(array.data()), value.bytes, static_cast<std::byte*>(value.data));
}

// sink: called with method, instruction, output and an array; returns None to go on, an array that takes the value's
// place, or False to end the call; raises nothing. None: nobody gets values any more
void set_value_sink(Session& session, const py::object& sink) {
  const auto call = [](void* callable, const mote_value* value) -> int32_t {
    const py::gil_scoped_acquire acquire;
    try {
      const py::object& take = *static_cast<py::object*>(callable);
      const py::object answer = take(value->method, value->instruction, value->output, array_of(*value));
      if (py::isinstance<py::array>(answer)) replace(*value, answer);
      return answer.is(py::bool_(false)) ? 1 : 0;
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a sink of values");
      return 1;
    } catch (const std::exception&) { return 1; }  // of pybind11: there is nobody whom it could reach
  };
  const auto release = [](void* callable) {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire acquire;
    delete static_cast<py::object*>(callable);
  };
  const auto handle = session.handle();
  auto* given = sink.is_none() ? nullptr : new py::object(sink);
  check_without_gil([&](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return given == nullptr ? mote_session_set_value_sink(handle.get(), nullptr, nullptr, nullptr, error)
                            : mote_session_set_value_sink(handle.get(), call, given, release, error);
  });
}

}  // namespace

PrefixCache::PrefixCache(uint64_t max_bytes) {
  mote_prefix_cache* cache = nullptr;
  check([&](mote_error* error) { return mote_prefix_cache_open(max_bytes, &cache, error); });
  handle_.reset(cache);
}

Session::Session(const Model& model, const Options& options) : vocab_size_(model.info().vocab_size) {
  mote_session* session = nullptr;
  check_without_gil([&, handle = model.handle()](mote_error* error) {
    return mote_session_open(handle.get(), options.get(), &session, error);
  });
  handle_.reset(session, &mote_session_close);
}

std::shared_ptr<mote_session> Session::handle() const {
  if (handle_ == nullptr) {
    auto error = sized<mote_error>();
    error.code = MOTE_ERROR_INVALID_ARGUMENT;
    std::snprintf(error.message, sizeof error.message, "the session is closed");
    raise(error);
  }
  return handle_;
}

void bind_session(py::module_& module) {
  py::class_<PrefixCache, std::shared_ptr<PrefixCache>>(module, "PrefixCache")
      .def(py::init<uint64_t>(), py::arg("max_bytes"))
      .def("clear",
           [](const PrefixCache& cache) {
             check([&](mote_error* error) { return mote_prefix_cache_clear(cache.get(), error); });
           })
      .def("info", &cache_info);
  py::class_<Session, std::shared_ptr<Session>>(module, "Session")
      .def(py::init<const Model&, const Options&>(), py::arg("model"), py::arg("options"))
      .def("close", &Session::close)
      .def("prefill", &prefill, py::arg("ids"))
      .def("decode", &decode, py::arg("id"))
      .def("verify", &verify, py::arg("ids"))
      .def("score", &score, py::arg("ids"))
      .def("append", &append, py::arg("ids"))
      .def("tokenize", &tokenize_in_session, py::arg("text"), py::arg("parse_special"))
      .def("append_text", &append_text, py::arg("text"), py::arg("parse_special"))
      .def("set_tokens", &set_tokens, py::arg("ids"))
      .def("rewind_to_prefix", &rewind_to_prefix, py::arg("ids"))
      .def("logits", &logits)
      .def("fork", &fork)
      .def("save", &save, py::arg("path"))
      .def("restore", &restore, py::arg("path"))
      .def("info", &session_info)
      .def("position", [](const Session& session) { return mote_session_position(session.handle().get()); })
      .def("rewind", &rewind, py::arg("position"))
      .def("move_to", &move_to, py::arg("backend"))
      .def("backend", &backend)
      .def("tokens", &tokens)
      .def("set_draft_model", &set_draft_model, py::arg("model").none(true))
      .def("reset", &reset)
      .def("cancel", [](const Session& session) { mote_session_cancel(session.handle().get()); })
      .def("check_golden", &check_golden)
      .def("start_profile", &start_profile)
      .def("stop_profile", &stop_profile)
      .def("set_value_sink", &set_value_sink, py::arg("sink").none(true));
}

}  // namespace mote::python
