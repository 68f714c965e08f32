#include <algorithm>

#include "runner/python/bindings.h"

namespace mote::python {
namespace {

using Logits = py::array_t<float>;

std::unique_ptr<Session> open_session(const Model& model, int32_t context_length, int32_t kv_type, int32_t num_threads,
                                      int32_t prefill_chunk, const std::string& cpus, int32_t priority) {
  auto options = sized<mote_session_options>();
  options.context_length = context_length;
  options.kv_type = kv_type;
  options.num_threads = num_threads;
  options.prefill_chunk = prefill_chunk;
  options.cpus = cpus.empty() ? nullptr : cpus.c_str();
  options.priority = priority;
  return std::make_unique<Session>(model, options);
}

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

Logits decode(Session& session, int32_t id) {
  return filled(session, {session.vocab_size()},
                [&](mote_session* handle, float* data, mote_error* error) { return mote_session_decode(handle, id, data, error); });
}

Logits verify(Session& session, const std::vector<int32_t>& ids) {
  const auto count = static_cast<py::ssize_t>(ids.size());
  return filled(session, {count, session.vocab_size()}, [&](mote_session* handle, float* data, mote_error* error) {
    return mote_session_verify(handle, ids.data(), ids.size(), data, error);
  });
}

Logits score(Session& session, const std::vector<int32_t>& ids) {
  const auto count = static_cast<py::ssize_t>(ids.size());
  return filled(session, {std::max<py::ssize_t>(count - 1, 0)}, [&](mote_session* handle, float* data, mote_error* error) {
    return mote_session_score(handle, ids.data(), ids.size(), data, error);
  });
}

py::dict info(Session& session) {
  auto from = sized<mote_session_info>();
  check([&](mote_error* error) { return mote_session_get_info(session.handle().get(), &from, error); });
  py::dict result;
  result["context_length"] = from.context_length;
  result["num_threads"] = from.num_threads;
  result["position"] = from.position;
  result["state_bytes"] = from.state_bytes;
  result["arena_bytes"] = from.arena_bytes;
  return result;
}

void rewind(Session& session, int64_t position) {
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_rewind(handle.get(), position, error);
  });
}

std::vector<int32_t> tokens(Session& session) {
  std::vector<int32_t> ids;
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    ids.resize(static_cast<size_t>(mote_session_position(handle.get())));
    size_t count = 0;
    return mote_session_tokens(handle.get(), ids.data(), ids.size(), &count, error);
  });
  return ids;
}

void reset(Session& session) {
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_reset(handle.get(), error);
  });
}

py::str check_golden(Session& session) {
  char* text = nullptr;
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_check_golden(handle.get(), &text, error);
  });
  const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
  return py::str(text);
}

void start_profile(Session& session) {
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_start_profile(handle.get(), error);
  });
}

py::str stop_profile(Session& session) {
  char* text = nullptr;
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_stop_profile(handle.get(), &text, error);
  });
  const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
  return py::str(text);
}

}  // namespace

Session::Session(const Model& model, const mote_session_options& options) : vocab_size_(model.info().vocab_size) {
  mote_session* session = nullptr;
  check_without_gil([&, handle = model.handle()](mote_error* error) {
    return mote_session_open(handle.get(), &options, &session, error);
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
  py::class_<Session, std::shared_ptr<Session>>(module, "Session")
      .def(py::init(&open_session), py::arg("model"), py::arg("context_length"), py::arg("kv_type"), py::arg("num_threads"),
           py::arg("prefill_chunk"), py::arg("cpus"), py::arg("priority"))
      .def("close", &Session::close)
      .def("prefill", &prefill, py::arg("ids"))
      .def("decode", &decode, py::arg("id"))
      .def("verify", &verify, py::arg("ids"))
      .def("score", &score, py::arg("ids"))
      .def("info", &info)
      .def("position", [](const Session& session) { return mote_session_position(session.handle().get()); })
      .def("rewind", &rewind, py::arg("position"))
      .def("tokens", &tokens)
      .def("reset", &reset)
      .def("cancel", [](const Session& session) { mote_session_cancel(session.handle().get()); })
      .def("check_golden", &check_golden)
      .def("start_profile", &start_profile)
      .def("stop_profile", &stop_profile);
}

}  // namespace mote::python
