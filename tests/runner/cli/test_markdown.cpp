#include <gtest/gtest.h>

#include "runner/cli/markdown.h"

namespace mote::cli {
namespace {

// Shown in pieces of so many bytes, cut between characters.
std::string shown(std::string_view text, size_t width, bool has_colour = false, size_t piece = 1) {
  MarkdownView view(width, has_colour);
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(begin + piece, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    result += view.feed(text.substr(begin, end - begin));
    begin = end;
  }
  return result + view.finish();
}

std::string without_colours(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      result += text[i];
    }
  }
  return result;
}

constexpr const char* kDocument =
    "# A heading *and* more\n\nSome **bold words** and `code here`, 2 * 3 * 4, snake_case_name, a*b*c.\n"
    "- one item\n  - nested `x`\n10. tenth\n> quoted *text*\n\n| a | b |\n|---|---|\n| `1` | **2** |\n\n"
    "```python\ndef f(x):  # why\n    return \"a 'b' \\\" c\" + 'd' + str(12)\n```\n~~~\nplain ``` text\n~~~\n"
    "Unclosed **bold and `code\nnext line ``` not a fence? --- -- *";

TEST(Markdown, no_character_is_lost_whatever_the_pieces) {
  const std::string document = kDocument;
  const std::string whole = shown(document, 0, true, document.size());
  EXPECT_EQ(without_colours(whole), document);
  for (const size_t piece : {1u, 2u, 3u, 7u}) EXPECT_EQ(shown(document, 0, true, piece), whole) << piece;
  EXPECT_EQ(shown(document, 0, false), document);
}

TEST(Markdown, words_are_wrapped_behind_the_mark_of_their_line) {
  EXPECT_EQ(shown("aaaa bbbb cccc dddd eeee ffff", 20), "aaaa bbbb cccc dddd\neeee ffff");
  EXPECT_EQ(shown("- aaaa bbbb cccc dddd eeee", 20), "- aaaa bbbb cccc\n  dddd eeee");
  EXPECT_EQ(shown("12. aaaa bbbb cccc dddd", 20), "12. aaaa bbbb cccc\n    dddd");
  EXPECT_EQ(shown("aaaaaaaaaaaaaaaaaaaaaaaaa b", 20), "aaaaaaaaaaaaaaaaaaaaaaaaa\nb") << "no word is cut";
  EXPECT_EQ(shown("| aaaa | bbbb | cccc | dddd |\n", 20), "| aaaa | bbbb | cccc | dddd |\n") << "nor a table";
  EXPECT_EQ(shown("```\naaaa bbbb cccc dddd eeee\n```\n", 20), "```\naaaa bbbb cccc dddd eeee\n```\n") << "nor code";
  EXPECT_EQ(shown("a  b\n\n\nc", 20), "a  b\n\n\nc");
}

TEST(Markdown, wide_characters_take_two_columns) {
  const std::string ten =
      "\xe4\xbd\xa0\xe4\xbd\xa0\xe4\xbd\xa0\xe4\xbd\xa0\xe4\xbd\xa0"
      "\xe4\xbd\xa0\xe4\xbd\xa0\xe4\xbd\xa0\xe4\xbd\xa0\xe4\xbd\xa0";
  EXPECT_EQ(shown(ten + ten, 20), ten + "\n" + ten);
}

TEST(Markdown, emphasis_needs_letters_and_code_keeps_stars) {
  EXPECT_EQ(shown("2 * 3 * 4", 0, true), "2 * 3 * 4");
  EXPECT_EQ(shown("a*b*c", 0, true), "a*b*c");
  EXPECT_EQ(shown("`*x*` y", 0, true), "\x1b[0m\x1b[36m`*x*`\x1b[0m y");
  EXPECT_EQ(shown("*x* y", 0, true), "\x1b[0m\x1b[3m*x*\x1b[0m y");
  EXPECT_EQ(shown("**x y** z", 0, true), "\x1b[0m\x1b[1m**x y**\x1b[0m z");
  EXPECT_EQ(shown("**open\nnext", 0, true), "\x1b[0m\x1b[1m**open\x1b[0m\nnext") << "a line ends it";
}

TEST(Markdown, code_is_coloured_by_its_language) {
  const std::string code = shown("```py\nreturn 'a' # b\nx1 = 12\n```\nfor", 0, true);
  EXPECT_EQ(code,
            "```py\n\x1b[35mreturn\x1b[0m \x1b[32m'a'\x1b[0m \x1b[2m# b\x1b[0m\nx1 = \x1b[33m12\x1b[0m\n```\nfor");
  EXPECT_EQ(shown("```text\nreturn 1\n```", 0, true), "```text\nreturn 1\n```");
  EXPECT_EQ(shown("```c\na / b // c\n```", 0, true), "```c\na / b \x1b[2m// c\x1b[0m\n```");
  EXPECT_EQ(shown("```sql\na - 1 --c", 0, true), "```sql\na - \x1b[33m1\x1b[0m \x1b[2m--c\x1b[0m") << "cut off";
}

}  // namespace
}  // namespace mote::cli
