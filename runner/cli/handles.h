// Owners of the C API's handles, and errors as exceptions that main turns into one paragraph and exit status 2.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runner/capi/callers.h"
#include "runner/capi/mote.h"

namespace mote::cli {

// Bad input: the message is shown, the exit status is 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Options = std::unique_ptr<mote_options, Closer<mote_options_close>>;
using Model = std::unique_ptr<mote_model, Closer<mote_model_close>>;
using Session = std::unique_ptr<mote_session, Closer<mote_session_close>>;
using Embedder = std::unique_ptr<mote_embedder, Closer<mote_embedder_close>>;
using Generation = std::unique_ptr<mote_generation, Closer<mote_generation_end>>;

// check([&](mote_error* error) { return mote_...(..., error); }) throws what the call reports.
template <typename Call>
void check(Call call) {
  auto error = sized<mote_error>();
  if (call(&error) != MOTE_OK) throw InputError(error.message);
}

// A string that the C API gives.
template <typename Call>
std::string take_string(Call call) {
  return given_text([](const auto& inner) { check(inner); }, call);
}

// options: nullptr: the defaults.
inline Model open_model(const std::string& path, const Options& options = nullptr) {
  mote_model* model = nullptr;
  check([&](mote_error* error) { return mote_model_open(path.c_str(), options.get(), &model, error); });
  return Model(model);
}

inline mote_model_info info_of(const Model& model) {
  auto info = sized<mote_model_info>();
  check([&](mote_error* error) { return mote_model_get_info(model.get(), &info, error); });
  return info;
}

inline std::vector<int32_t> tokenize(const Model& model, const std::string& text, bool add_special,
                                     bool parse_special) {
  return all_ids(most_ids(text.size()), [&](int32_t* ids, size_t capacity, size_t* count) {
    check([&](mote_error* error) {
      return mote_tokenize(model.get(), text.data(), text.size(), add_special, parse_special, ids, capacity, count,
                           error);
    });
  });
}

// As mote_prompt_tokenize.
inline std::vector<int32_t> prompt_ids(const Model& model, const mote_prompt* prompt) {
  return all_ids(0, [&](int32_t* ids, size_t capacity, size_t* count) {
    check([&](mote_error* error) { return mote_prompt_tokenize(model.get(), prompt, ids, capacity, count, error); });
  });
}

}  // namespace mote::cli
