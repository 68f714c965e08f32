#include <gtest/gtest.h>

#include "runner/generation/stop_strings.h"

namespace mote {
namespace {

struct Seen {
  std::string text;
  bool stopped = false;
  bool operator==(const Seen&) const = default;
};

Seen run(const std::vector<std::string>& stops, const std::vector<std::string>& parts) {
  auto made = StopStrings::make(stops);
  EXPECT_TRUE(made.ok());
  Seen seen;
  for (const std::string& part : parts) {
    const auto output = made->push(part);
    seen.text += output.text;
    if (output.stopped) return {seen.text, true};
  }
  return {seen.text + made->finish(), false};
}

// Every way to cut `text` into two or three parts, and all single bytes.
void expect_for_every_split(const std::vector<std::string>& stops, const std::string& text, const Seen& expected) {
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      EXPECT_EQ(run(stops, {text.substr(0, i), text.substr(i, j - i), text.substr(j)}), expected)
          << text << " cut at " << i << ", " << j;
    }
  }
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  EXPECT_EQ(run(stops, bytes), expected) << text;
}

TEST(StopStrings, end_the_text_before_themselves_however_it_is_split) {
  expect_for_every_split({"END"}, "one EN END two", {"one EN ", true});
  expect_for_every_split({"aab"}, "aaaab", {"aa", true});
  expect_for_every_split({"abcd", "c"}, "xabcd", {"xab", true});
  expect_for_every_split({"bc", "abc"}, "xabc", {"x", true});
  expect_for_every_split({"\n\n"}, "a\nb\n\nc", {"a\nb", true});
}

TEST(StopStrings, let_everything_through_where_none_occurs) {
  expect_for_every_split({"END", "stop"}, "EN sto", {"EN sto", false});
  expect_for_every_split({}, "text", {"text", false});
}

TEST(StopStrings, hold_back_no_more_than_a_beginning) {
  auto stops = StopStrings::make({"###"});
  ASSERT_TRUE(stops.ok());
  EXPECT_EQ(stops->push("a#").text, "a");
  EXPECT_EQ(stops->push("b").text, "#b");
}

TEST(StopStrings, refuse_what_can_never_match) {
  EXPECT_EQ(StopStrings::make({""}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(StopStrings::make({std::string(1025, 'a')}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(StopStrings::make({"\xff"}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(StopStrings::make(std::vector<std::string>(65, "a")).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace mote
