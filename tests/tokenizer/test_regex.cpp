#include <gtest/gtest.h>

#include "tokenizer/pretokenize/regex.h"
#include "tokenizer/pretokenize/split.h"

namespace mote::tokenizer {
namespace {

std::vector<std::string> split(const std::string& pattern, const char* behavior, bool invert, const std::string& text) {
  const Json json = {{"pattern", {{"Regex", pattern}}}, {"behavior", behavior}, {"invert", invert}};
  auto splitter = Split::make(Field(json, "split"));
  EXPECT_TRUE(splitter.ok()) << splitter.status().message();
  std::vector<std::string> pieces;
  if (splitter.ok()) {
    EXPECT_TRUE((*splitter)->split(text, pieces).ok());
  }
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST(Split, follows_the_behaviors_of_hugging_face) {
  // The examples of the tokenizers library's own documentation of SplitDelimiterBehavior.
  const std::string text = "the-final--countdown";
  EXPECT_EQ(split("-", "Removed", false, text), (Pieces{"the", "final", "countdown"}));
  EXPECT_EQ(split("-", "Isolated", false, text), (Pieces{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split("-", "MergedWithPrevious", false, text), (Pieces{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split("-", "MergedWithNext", false, text), (Pieces{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split("-", "Contiguous", false, text), (Pieces{"the", "-", "final", "--", "countdown"}));
}

TEST(Split, invert_swaps_matches_and_gaps) {
  EXPECT_EQ(split("[a-z]+", "Removed", true, "ab, cd"), (Pieces{"ab", "cd"}));
}

TEST(Regex, empty_matches_cut_without_looping) {
  EXPECT_EQ(split("(?=b)", "Isolated", false, "abab"), (Pieces{"a", "ba", "b"}));
  EXPECT_EQ(split("x*", "Isolated", false, "h\u00e9\u00e9"), (Pieces{"h", "\u00e9", "\u00e9"}));
}

TEST(Regex, white_space_is_that_of_unicode) {
  EXPECT_EQ(split("\\s", "Removed", false, "a\u00a0b\u2003c\u3000d"), (Pieces{"a", "b", "c", "d"}));
  EXPECT_EQ(split("\\s", "Removed", false, "a\u180eb"), (Pieces{"a\u180eb"}));  // no space since Unicode 6.3
}

TEST(Regex, word_characters_include_marks) {
  EXPECT_EQ(split("\\w+", "Isolated", false, "e\u0301! x_y"), (Pieces{"e\u0301", "! ", "x_y"}));
  EXPECT_EQ(split("\\W", "Removed", false, "a-b"), (Pieces{"a", "b"}));
}

TEST(Regex, refuses_what_pcre2_reads_differently) {
  for (const char* pattern : {"\\h+", "[a[b]]", "[a-z&&[^b]]", "(?m:a.b)", "(?s)a", "a{1,2}+", "\\Ka", "(*ACCEPT)", "(", "[a"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.status().code(), Code::kInvalidTokenizer) << pattern;
  }
}

TEST(Regex, gives_up_on_a_match_that_explodes) {
  const auto regex = Regex::compile("(a+a+)+b");
  ASSERT_TRUE(regex.ok());
  const auto spans = regex->spans(std::string(64, 'a') + "cb");
  ASSERT_FALSE(spans.ok());
  EXPECT_EQ(spans.status().code(), Code::kInvalidArgument);
}

TEST(Regex, literal_matches_only_itself) {
  const auto regex = Regex::literal("a.b[");
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(regex->spans("xa.b[y")->size(), 3u);
  EXPECT_EQ(regex->spans("xaxb[y")->size(), 1u);
}

}  // namespace
}  // namespace mote::tokenizer
