#include <gtest/gtest.h>

#include "tokenizer/pretokenize/regex.h"
#include "tokenizer/pretokenize/split.h"

namespace mote::tokenizer {
namespace {

std::vector<std::string> split(const std::string& pattern, fb::Behavior behavior, bool invert,
                               const std::string& text) {
  auto compiled = Pattern::make(pattern, true);
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  std::vector<std::string> parts;
  if (!compiled.ok()) return parts;
  Pieces pieces{AlignedText(text, 0, text.size(), false), {{0, static_cast<uint32_t>(text.size())}}};
  EXPECT_TRUE(Split(*std::move(compiled), behavior, invert).apply(pieces).ok());
  for (const Piece& piece : pieces.pieces) parts.push_back(text.substr(piece.begin, piece.end - piece.begin));
  return parts;
}

using Parts = std::vector<std::string>;

TEST(Split, follows_the_behaviors_of_hugging_face) {
  // The examples of the tokenizers library's own documentation of SplitDelimiterBehavior.
  const std::string text = "the-final--countdown";
  EXPECT_EQ(split("-", fb::Behavior::removed, false, text), (Parts{"the", "final", "countdown"}));
  EXPECT_EQ(split("-", fb::Behavior::isolated, false, text), (Parts{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split("-", fb::Behavior::merged_with_previous, false, text), (Parts{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split("-", fb::Behavior::merged_with_next, false, text), (Parts{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split("-", fb::Behavior::contiguous, false, text), (Parts{"the", "-", "final", "--", "countdown"}));
}

TEST(Split, invert_swaps_matches_and_gaps) {
  EXPECT_EQ(split("[a-z]+", fb::Behavior::removed, true, "ab, cd"), (Parts{"ab", "cd"}));
}

TEST(Regex, empty_matches_cut_without_looping) {
  EXPECT_EQ(split("(?=b)", fb::Behavior::isolated, false, "abab"), (Parts{"a", "ba", "b"}));
  EXPECT_EQ(split("x*", fb::Behavior::isolated, false, "h\u00e9\u00e9"), (Parts{"h", "\u00e9", "\u00e9"}));
}

TEST(Regex, white_space_is_that_of_unicode) {
  EXPECT_EQ(split("\\s", fb::Behavior::removed, false, "a\u00a0b\u2003c\u3000d"), (Parts{"a", "b", "c", "d"}));
  EXPECT_EQ(split("\\s", fb::Behavior::removed, false, "a\u180eb"), (Parts{"a\u180eb"}));  // no space since Unicode 6.3
}

TEST(Regex, word_characters_include_marks) {
  EXPECT_EQ(split("\\w+", fb::Behavior::isolated, false, "e\u0301! x_y"), (Parts{"e\u0301", "! ", "x_y"}));
  EXPECT_EQ(split("\\W", fb::Behavior::removed, false, "a-b"), (Parts{"a", "b"}));
}

TEST(Regex, refuses_what_pcre2_reads_differently) {
  for (const char* pattern : {"\\h+", "[a[b]]", "[a-z&&[^b]]", "(?m:a.b)", "(?s)a", "(?#a)", "\\Ka", "(*ACCEPT)", "(",
                              "[a", "a\\", "[\\", "\\p{L"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.status().code(), Code::kInvalidTokenizer) << pattern;
  }
}

TEST(Regex, intervals_are_those_of_oniguruma) {
  EXPECT_EQ(split("a{1,2}+b", fb::Behavior::removed, true, "aaaab aab"), (Parts{"aaaab", "aab"}));  // repeated
  EXPECT_EQ(split("(?:ab){2}+", fb::Behavior::removed, true, "ababababab"), (Parts{"abababab"}));
  EXPECT_EQ(split("[ab]{2}?", fb::Behavior::removed, true, "aba"), (Parts{"ab"}));  // or none
  EXPECT_EQ(split("\\x{61}{,2}", fb::Behavior::removed, true, "aaa"), (Parts{"aa", "a"}));
  EXPECT_EQ(split("a{x", fb::Behavior::removed, true, "a{x"), (Parts{"a{x"}));
}

TEST(Regex, intervals_of_fancy_regex_are_possessive) {
  const auto regex = Regex::compile("a{1,2}+b|^c|d$", RegexSyntax::kFancy);
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(regex->spans("aab")->size(), 1u);
  const auto repeated = Regex::compile("a{1,2}+ab", RegexSyntax::kFancy);
  ASSERT_TRUE(repeated.ok());
  EXPECT_FALSE(repeated->spans("aab")->front().is_match);
  EXPECT_EQ(regex->spans("c\nc\nd\nd")->size(), 3u);  // borders of the text, not of lines
}

TEST(Regex, gives_up_on_a_match_that_explodes) {
  const auto regex = Regex::compile("(a+a+)+b");
  ASSERT_TRUE(regex.ok());
  const auto spans = regex->spans(std::string(64, 'a') + "cb");
  ASSERT_FALSE(spans.ok());
  EXPECT_EQ(spans.status().code(), Code::kInvalidArgument);
}

TEST(Regex, patterns_that_backtrack_without_end_are_told) {
  EXPECT_FALSE(Regex::compile("(a+a+)+b")->check_backtracking().ok());
  EXPECT_TRUE(Regex::compile("\\w+|[^\\w\\s]+")->check_backtracking().ok());
}

TEST(Pattern, a_literal_matches_only_itself) {
  const auto pattern = Pattern::make("a.b[", false);
  ASSERT_TRUE(pattern.ok());
  EXPECT_EQ(pattern->spans("xa.b[y")->size(), 3u);
  EXPECT_EQ(pattern->spans("xaxb[y")->size(), 1u);
}

}  // namespace
}  // namespace mote::tokenizer
