// What the parts of llm_runner._core share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <mutex>
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
  int32_t code = MOTE_OK;
  {
    const py::gil_scoped_release release;
    code = call(&error);
  }
  if (code != MOTE_OK) raise(error);
}

template <typename Call>
py::str take_string(Call call) {
  char* text = nullptr;
  check([&](mote_error* error) { return call(&text, error); });
  const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
  return py::str(text);
}

struct OpenOptions {
  std::string name, backend, cache_dir;
  bool mmap;
  py::object on_progress;  // or None
};

class Model {
 public:
  static Model open(const std::string& path, const OpenOptions& options);
  static Model open_fd(int fd, int64_t offset, int64_t length, const OpenOptions& options);
  static Model open_memory(const py::buffer& bytes, const OpenOptions& options);
  // Errors: raises ArgumentError if the model is closed, so it needs the GIL. Whoever holds it may go on after a close.
  std::shared_ptr<mote_model> handle() const;
  void close() { handle_.reset(); }
  mote_model_info info() const;

 private:
  explicit Model(mote_model* handle) : handle_(handle, &mote_model_close) {}
  template <typename Call>
  static Model opened(const OpenOptions& options, const Call& call);
  std::shared_ptr<mote_model> handle_;
};

class PrefixCache {
 public:
  explicit PrefixCache(uint64_t max_bytes);
  mote_prefix_cache* get() const { return handle_.get(); }

 private:
  std::unique_ptr<mote_prefix_cache, Closer<mote_prefix_cache_close>> handle_;
};

// The options of a session by their names in mote_session_options. Not copied: it points into itself and its cache.
class SessionOptions {
 public:
  explicit SessionOptions(const py::dict& given);
  SessionOptions(const SessionOptions&) = delete;
  SessionOptions& operator=(const SessionOptions&) = delete;
  const mote_session_options* get() const { return &options_; }

 private:
  mote_session_options options_ = sized<mote_session_options>();
  std::string cpus_;
  std::shared_ptr<PrefixCache> prefix_cache_;
};

// Calls on a session take turns: Python threads may share one without harm, though not usefully.
class Session {
 public:
  Session(const Model& model, const py::dict& options);
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

// Calls body(options) with the model's defaults and what was given by name.
void with_generation_options(const Model& model, const py::dict& given, const std::vector<std::string>& stop_strings,
                             const std::function<void(const mote_generation_options*)>& body);

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

void bind_batch(py::module_& module);
void bind_beam_search(py::module_& module);
void bind_chat(py::module_& module);
void bind_errors(py::module_& module);
void bind_grammar(py::module_& module);
void bind_log(py::module_& module);
void bind_model(py::module_& module);
void bind_reply(py::module_& module);
void bind_session(py::module_& module);
void bind_generation(py::module_& module);

}  // namespace mote::python
