// What must not be done with tokenizer handles, which then say so.
#include <gtest/gtest.h>

#include <cstring>

#include "base/handles.h"
#include "tests/tokenizer/tiny_tokenizer.h"
#include "tokenizer/capi/mote_tokenizer.h"

namespace {

template <typename T>
T sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

void expect_refused(const mote_tokenizer_handle* handle, const char* reason) {
  auto error = sized<mote_tokenizer_error>();
  auto encoding = sized<mote_tokenizer_encoding>();
  const int32_t id = 1;
  char* text = nullptr;
  size_t num_bytes = 0;
  const int32_t codes[] = {
      mote_tokenizer_encode(handle, "a", 1, nullptr, &encoding, &error),
      mote_tokenizer_encode_batch(handle, nullptr, 0, nullptr, 1, nullptr, &error),
      mote_tokenizer_decode(handle, &id, 1, 0, &text, &num_bytes, &error),
      mote_tokenizer_decode_batch(handle, nullptr, 0, 0, 1, &error),
      mote_tokenizer_id_to_token(handle, 1, &text, &num_bytes, &error),
  };
  for (const int32_t code : codes) EXPECT_EQ(code, MOTE_TOKENIZER_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error.message, reason), nullptr) << error.message;
  EXPECT_EQ(mote_tokenizer_num_ids(handle), 0);
  EXPECT_EQ(mote_tokenizer_token_to_id(handle, "a", 1), -1);
  EXPECT_EQ(mote_tokenizer_is_special(handle, 0), 0);
}

TEST(TokenizerCApi, handles_that_are_not_open_are_refused_everywhere) {
  const std::string segment = mote::test::TinyTokenizer().compiled();
  mote_tokenizer_handle* tokenizer = nullptr;
  auto error = sized<mote_tokenizer_error>();
  ASSERT_EQ(mote_tokenizer_open(segment.data(), segment.size(), 1, &tokenizer, &error), MOTE_TOKENIZER_OK)
      << error.message;
  EXPECT_GT(mote_tokenizer_num_ids(tokenizer), 0);
  mote_tokenizer_close(tokenizer);
  expect_refused(tokenizer, "it was closed");
  mote_tokenizer_close(tokenizer);
  expect_refused(nullptr, "is NULL");
  expect_refused(reinterpret_cast<mote_tokenizer_handle*>(&error), "must be a handle");
  mote_tokenizer_close(reinterpret_cast<mote_tokenizer_handle*>(&error));
  EXPECT_EQ(mote::num_handle_objects(), 0u);
}

}  // namespace
