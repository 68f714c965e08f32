#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace mote {
namespace {

// Straight from the definition, as an oracle: encodes a code point.
std::string encode(uint32_t code) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 63))};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63))};
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
          byte(0x80 | (code & 63))};
}

TEST(Utf8, accepts_every_scalar_value_and_no_surrogate) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(is_valid_utf8(encode(code)), !surrogate) << code;
  }
}

TEST(Utf8, rejects_overlong_forms_and_code_points_above_the_last) {
  for (const char* text : {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
                           "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80", "\xBF"}) {
    EXPECT_EQ(valid_utf8_prefix(std::string("ok") + text), 2u) << text;
  }
}

TEST(Utf8, finds_the_first_bad_byte_wherever_it_is) {
  for (size_t position = 0; position < 40; ++position) {
    std::string text(40, 'a');
    text[position] = '\xff';
    EXPECT_EQ(valid_utf8_prefix(text), position);
  }
}

TEST(Utf8, stops_before_a_sequence_that_is_cut) {
  EXPECT_EQ(valid_utf8_prefix("a\xE2\x82"), 1u);
  EXPECT_EQ(valid_utf8_prefix("a\xE2\x82\xAC"), 4u);
  EXPECT_TRUE(is_valid_utf8(""));
}

TEST(Utf8, holds_back_only_what_can_still_become_a_character) {
  EXPECT_EQ(incomplete_utf8_suffix("a"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix(""), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2"), 1u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2\x82"), 2u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2\x82\xAC"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_suffix("\xE0\x80"), 0u);  // overlong: nothing can complete it
  EXPECT_EQ(incomplete_utf8_suffix("\xFF"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\x80\x80"), 0u);
}

}  // namespace
}  // namespace mote
