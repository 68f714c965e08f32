#include "base/json.h"

#include <gtest/gtest.h>

namespace mote {
namespace {

TEST(JsonTree, reads_and_writes_what_it_read) {
  constexpr std::string_view kText =
      R"({"a":[1,-2,3.50,1e-05,true,false,null,"x\n\"\u0001é"],"b":{},"c":[],"18446744073709551615":18446744073709551615})";
  const auto tree = parse_json_tree(kText, 8);
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->dump(), kText);
  const JsonTree* list = tree->find("a");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->children[1].number, -2.0);
  EXPECT_EQ(list->children[1].kind, JsonTree::Kind::kInteger);
  EXPECT_EQ(list->children[2].number, 3.5);
  EXPECT_EQ(list->children[4].number, 1.0);
  EXPECT_EQ(list->children[7].text, "x\n\"\x01\xC3\xA9");
  EXPECT_EQ(tree->find("d"), nullptr);
  EXPECT_EQ(parse_json_tree(R"({"a":1,"a":2})", 8)->find("a")->number, 2.0);
}

TEST(JsonTree, refuses_what_is_no_json_or_too_deep) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1}}", "nul", "\"\xFF\"", "[1] 2"})
    EXPECT_FALSE(parse_json_tree(text, 8)) << text;
  EXPECT_TRUE(parse_json_tree("[[[1]]]", 3));
  EXPECT_FALSE(parse_json_tree("[[[[1]]]]", 3));
  EXPECT_FALSE(parse_json_tree(std::string(100000, '['), 32));
}

}  // namespace
}  // namespace mote
