// A model and a session through the C API, and what tests of it share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/handles.h"
#include "runner/capi/callers.h"
#include "runner/capi/mote.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {

constexpr int32_t kEveryScope = MOTE_SCOPE_GENERATION | MOTE_SCOPE_BEAM_SEARCH | MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL;

// A string that the C API gave.
inline std::string taken(char* text) {
  const std::string copy = text == nullptr ? "" : text;
  mote_string_free(text);
  return copy;
}

// A handle of options, which it closes.
class GivenOptions {
 public:
  // json: values by name, which are accepted
  explicit GivenOptions(const std::string& json = "{}", int32_t scopes = kEveryScope) {
    EXPECT_EQ(mote_options_open(scopes, &handle_, nullptr), MOTE_OK);
    set(json);
  }
  ~GivenOptions() { mote_options_close(handle_); }
  GivenOptions(const GivenOptions&) = delete;
  GivenOptions& operator=(const GivenOptions&) = delete;

  operator mote_options*() const { return handle_; }

  void set(const std::string& json) const {
    auto error = sized<mote_error>();
    EXPECT_EQ(mote_options_set_json(handle_, json.data(), json.size(), &error), MOTE_OK) << error.message;
  }
  void set(const mote_grammar* grammar) const {
    EXPECT_EQ(mote_options_set_grammar(handle_, grammar, nullptr), MOTE_OK);
  }
  void set(mote_prefix_cache* cache) const {
    EXPECT_EQ(mote_options_set_prefix_cache(handle_, cache, nullptr), MOTE_OK);
  }

  // Why the value is refused; "": it is not.
  std::string refusal(const char* name, const char* value) const {
    auto error = sized<mote_error>();
    const mote_error_code code = mote_options_set(handle_, name, value, &error);
    EXPECT_TRUE(code == MOTE_OK || code == MOTE_ERROR_INVALID_ARGUMENT) << code;
    return error.message;
  }
  std::string values(const mote_model* model = nullptr) const {
    char* json = nullptr;
    EXPECT_EQ(mote_options_values(handle_, model, &json, nullptr), MOTE_OK);
    return taken(json);
  }

 private:
  mote_options* handle_ = nullptr;
};

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(mote_model_open(file_.path().c_str(), nullptr, &model_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_session_open(model_, nullptr, &session_, &error_), MOTE_OK) << error_.message;
  }
  void TearDown() override {
    mote_session_close(session_);
    mote_model_close(model_);
    EXPECT_EQ(num_handle_objects(), 0u);
  }

  test::TinyFile file_{test::tiny_program()};
  mote_error error_ = sized<mote_error>();
  mote_model* model_ = nullptr;
  mote_session* session_ = nullptr;
};

}  // namespace mote
