// examples/c/complete.c, which docs/capi.md shows.
#include "tests/runner/capi/fixture.h"

extern "C" int complete_main(int argc, char** argv);

namespace mote {
namespace {

using CApiExample = CApi;

TEST_F(CApiExample, prints_what_a_generation_gives) {
  const int32_t id = 10;  // "abc"
  mote_generation* generation = nullptr;
  ASSERT_EQ(mote_generation_begin(session_, &id, 1, nullptr, &generation, &error_), MOTE_OK) << error_.message;
  std::string expected;
  auto piece = sized<mote_piece>();
  while (piece.finished == 0) {
    ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK) << error_.message;
    expected.append(piece.text, piece.text_bytes);
  }
  mote_generation_end(generation);
  std::string name = "complete", model = file_.path(), prompt = "abc";
  char* arguments[] = {name.data(), model.data(), prompt.data()};
  testing::internal::CaptureStdout();
  EXPECT_EQ(complete_main(3, arguments), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), expected + "\n");
}

TEST_F(CApiExample, says_why_a_model_cannot_be_opened) {
  std::string name = "complete", model = "missing.mote", prompt = "a";
  char* arguments[] = {name.data(), model.data(), prompt.data()};
  testing::internal::CaptureStderr();
  EXPECT_EQ(complete_main(3, arguments), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("missing.mote: cannot be opened"), std::string::npos) << said;
  EXPECT_NE(said.find("(FILE_NOT_FOUND)"), std::string::npos) << said;
}

}  // namespace
}  // namespace mote
