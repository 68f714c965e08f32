// What the parts of llm_runner._core share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runner/capi/callers.h"
#include "runner/capi/mote.h"

namespace mote::python {

namespace py = pybind11;

// Raises the exception of llm_runner.errors that belongs to the code.
[[noreturn]] void raise(const mote_error& error);

// check([&](mote_error* error) { return mote_...(..., error); })
template <typename Call>
void check(Call call) {
  auto error = sized<mote_error>();
  if (call(&error) != MOTE_OK) raise(error);
}

// The same with the GIL released during the call.
template <typename Call>
void check_without_gil(Call call) {
  auto error = sized<mote_error>();
  mote_error_code code = MOTE_OK;
  {
    const py::gil_scoped_release release;
    code = call(&error);
  }
  if (code != MOTE_OK) raise(error);
}

template <typename Call>
py::str take_string(Call call) {
  return given_text([](const auto& inner) { check(inner); }, call);
}

class Grammar;
class PrefixCache;

// What was given by name, which every call takes. Not copied: the handle points into it.
class Options {
 public:
  // json: an object of values; null: as if it had not been given
  Options(int32_t scopes, const std::string& json);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  mote_options* get() const { return handle_.get(); }

  void set_grammar(const Grammar& grammar);
  void set_prefix_cache(const PrefixCache& cache);
  // Called without the GIL. What the callable raises ends the opening, and comes out of raise_of_progress.
  void set_progress(py::object callable);
  void raise_of_progress();

 private:
  struct Progress {
    py::object callable{};
    std::optional<py::error_already_set> raised{};
  };
  static int32_t call_progress(void* user_data, double fraction);

  std::unique_ptr<mote_options, Closer<mote_options_close>> handle_;
  Progress progress_;
};

class Model {
 public:
  static Model open(const std::string& path, Options& options);
  static Model open_fd(int fd, int64_t offset, int64_t length, Options& options);
  static Model open_memory(const py::buffer& bytes, Options& options);
  // Errors: raises ArgumentError if the model is closed, so it needs the GIL. Whoever holds it may go on after a close.
  std::shared_ptr<mote_model> handle() const;
  void close() { handle_.reset(); }
  mote_model_info info() const;

 private:
  explicit Model(mote_model* handle) : handle_(handle, &mote_model_close) {}
  template <typename Call>
  static Model opened(Options& options, const Call& call);
  std::shared_ptr<mote_model> handle_;
};

class PrefixCache {
 public:
  explicit PrefixCache(uint64_t max_bytes);
  mote_prefix_cache* get() const { return handle_.get(); }

 private:
  std::unique_ptr<mote_prefix_cache, Closer<mote_prefix_cache_close>> handle_;
};

class Adapter {
 public:
  // Of a model and "FILE" or "FILE=WEIGHT".
  Adapter(const Model& model, const std::string& text);
  const mote_adapter* get() const { return handle_.get(); }
  float weight() const { return weight_; }
  py::str describe() const;

 private:
  std::unique_ptr<mote_adapter, Closer<mote_adapter_close>> handle_;
  float weight_ = 1.0f;
};

// Calls on a session take turns: Python threads may share one without harm, though not usefully.
class Session {
 public:
  Session(const Model& model, const Options& options);
  Session(mote_session* handle, int32_t vocab_size) : handle_(handle, &mote_session_close), vocab_size_(vocab_size) {}
  std::shared_ptr<mote_session> handle() const;  // as Model::handle
  void close() { handle_.reset(); }
  std::mutex& mutex() { return mutex_; }
  int32_t vocab_size() const { return vocab_size_; }

 private:
  std::shared_ptr<mote_session> handle_;
  std::mutex mutex_;
  int32_t vocab_size_ = 0;
};

class Vocabulary {
 public:
  explicit Vocabulary(mote_vocabulary* handle) : handle_(handle) {}
  const mote_vocabulary* get() const { return handle_.get(); }

 private:
  std::unique_ptr<mote_vocabulary, Closer<mote_vocabulary_close>> handle_;
};

class Grammar {
 public:
  explicit Grammar(mote_grammar* handle) : handle_(handle) {}
  const mote_grammar* get() const { return handle_.get(); }

 private:
  std::unique_ptr<mote_grammar, Closer<mote_grammar_close>> handle_;
};

// Its name; None while nothing has finished.
py::object finish_reason_object(mote_finish_reason reason);

// A piece that outlives the next call on its generation.
class PieceCopy {
 public:
  mote_piece piece = sized<mote_piece>();

  void keep();              // copies what `piece` points to
  py::tuple tuple() const;  // (text, id or None, finish_reason or None, logprob, [(id, logprob), ...])

 private:
  std::string text_;
  std::vector<std::pair<int32_t, float>> top_logprobs_;
};

py::dict statistics_dict(const mote_statistics& statistics);

void bind_adapter(py::module_& module);
void bind_batch(py::module_& module);
void bind_beam_search(py::module_& module);
void bind_chat(py::module_& module);
void bind_chat_turn(py::module_& module);
void bind_embedder(py::module_& module);
void bind_errors(py::module_& module);
void bind_grammar(py::module_& module);
void bind_log(py::module_& module);
void bind_model(py::module_& module);
void bind_options(py::module_& module);
void bind_reply(py::module_& module);
void bind_session(py::module_& module);
void bind_store(py::module_& module);
void bind_generation(py::module_& module);

}  // namespace mote::python
