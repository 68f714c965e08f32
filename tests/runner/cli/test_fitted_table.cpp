// Tables and lists of mote-runner on a narrow line.
#include <gtest/gtest.h>

#include "runner/cli/fitted_table.h"

namespace mote::cli {
namespace {

std::vector<std::string> texts(const FittedTable& table, size_t width) {
  std::vector<std::string> found;
  for (const FittedTable::Line& line : table.lines(width)) found.push_back(line.text);
  return found;
}

TEST(FittedTable, aligns_as_a_table_does) {
  FittedTable table({"op", "count"});
  table.add({"mote.linear", "19"});
  table.add({"view", "4"});
  EXPECT_EQ(texts(table, 80),
            (std::vector<std::string>{"op           count", "mote.linear     19", "view             4"}));
}

TEST(FittedTable, breaks_long_names_behind_a_dot) {
  FittedTable table({"module", "count"});
  table.add({"model.layers.0.self_attn.q_proj", "1"});
  const std::vector<std::string> lines = texts(table, 31);
  EXPECT_EQ(lines, (std::vector<std::string>{"module                    count", "model.layers.0.               1",
                                             "self_attn.q_proj"}));
}

TEST(FittedTable, headings_of_several_words_are_broken_where_there_is_no_room) {
  FittedTable table({"op", "arena per token"});
  table.add({"a", "1"});
  EXPECT_EQ(texts(table, 80), (std::vector<std::string>{"op  arena per token", "a                 1"}));
  EXPECT_EQ(texts(table, 18), (std::vector<std::string>{"    arena", "      per", "op  token", "a       1"}));
}

TEST(FittedTable, repeats_the_first_column_where_there_are_too_many) {
  FittedTable table({"op", "aaaa", "bbbb", "cccc"});
  table.add({"mote.linear", "1", "2", "3"});
  const std::vector<FittedTable::Line> lines = table.lines(24);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[1].text, "mote.linear     1     2");
  EXPECT_EQ(lines[2].text, "");
  EXPECT_EQ(lines[3].text, "op           cccc");
  EXPECT_EQ(lines[4].text, "mote.linear     3");
  EXPECT_TRUE(lines[3].is_heading);
}

TEST(FittedTable, no_line_is_too_long) {
  for (size_t columns = 1; columns < 12; ++columns) {
    FittedTable table(std::vector<std::string>(columns, "a heading of words"));
    for (size_t length = 0; length < 90; length += 7)
      table.add(std::vector<std::string>(columns, std::string(length, 'x')));
    for (const std::string& line : texts(table, 80)) EXPECT_LE(line.size(), 80u) << columns << ": " << line;
  }
}

TEST(JoinedInLines, fills_lines_and_indents_the_others) {
  EXPECT_EQ(joined_in_lines({"one", "two", "", "three"}, 4, 10), "one  two\n    three");
  EXPECT_EQ(joined_in_lines({"a+b.cd,e f"}, 2, 6), "a+b.\n  cd,\n  e f");
}

}  // namespace
}  // namespace mote::cli
