#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "runner/llm/utf8_stream.h"

namespace mote {
namespace {

std::string streamed(const std::vector<std::string>& parts) {
  Utf8Stream stream;
  std::string text;
  for (const std::string& part : parts) {
    const std::string piece = stream.push(part);
    EXPECT_TRUE(is_valid_utf8(piece));
    text += piece;
  }
  return text + stream.finish();
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  return parts;
}

// bytes.decode("utf-8", errors="replace") of CPython 3.11
TEST(Utf8Stream, replaces_as_python_does) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\xff" "b", "a\ufffdb"},
      {"\xe2\x82", "\ufffd"},
      {"\xe2\x82" "a", "\ufffda"},
      {"\xf0\x9f\x98\x80", "\U0001F600"},
      {"\xf0\x9f\x98", "\ufffd"},
      {"\xf0\x80\x80\x41", "\ufffd\ufffd\ufffdA"},
      {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
      {"\xc0\xaf", "\ufffd\ufffd"},
      {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
      {"\xf1\x80\x80\xe1\x80\xc2", "\ufffd\ufffd\ufffd"},
      {"\x80\xbf", "\ufffd\ufffd"},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_EQ(streamed({bytes}), expected);
    EXPECT_EQ(streamed(bytes_of(bytes)), expected);
  }
}

TEST(Utf8Stream, holds_a_character_back_until_it_is_whole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xe2\x82"), "a");
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.push("\xac!"), "\u20ac!");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, the_split_does_not_matter) {
  std::mt19937 random(7);
  static constexpr const char* kParts[] = {"a", "\u00e9", "\u20ac", "\U0001F600", "\xff", "\xe2", "\x82", "\xf0\x9f", "\xed\xa0", "\xc2"};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t i = random() % 12; i > 0; --i) bytes += kParts[random() % std::size(kParts)];
    std::vector<std::string> parts;
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t length = 1 + random() % 4;
      parts.push_back(bytes.substr(begin, length));
      begin += length;
    }
    EXPECT_EQ(streamed(parts), replace_invalid_utf8(bytes));
  }
}

}  // namespace
}  // namespace mote
