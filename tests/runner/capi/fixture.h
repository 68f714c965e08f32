// A model and a session through the C API.
#pragma once

#include <gtest/gtest.h>

#include "base/handles.h"
#include "runner/capi/callers.h"
#include "runner/capi/mote.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {

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
