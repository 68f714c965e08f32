#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

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
  for (const char* text :
       {"",   "{",   "[1,]",  "{\"a\":1}}", "nul",     "\"\xFF\"",  "[1] 2",       "01",          "1.",
        "-",  "+1",  "1e",    "1e999",      "[,1]",    "{1:2}",     "{,}",         "{\"a\" 1}",   "{\"a\":1,}",
        "[1", "\"a", "\"a\\", "\"\n\"",     "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"",
        "]"})
    EXPECT_FALSE(parse_json_tree(text, 8)) << text;
  EXPECT_TRUE(parse_json_tree("[[[1]]]", 3));
  EXPECT_FALSE(parse_json_tree("[[[[1]]]]", 3));
  EXPECT_FALSE(parse_json_tree(std::string(100000, '['), 32));
}

TEST(JsonTree, reads_escapes_spaces_and_numbers_of_every_form) {
  const auto text = parse_json_tree("\xEF\xBB\xBF \"\\ud83d\\ude00\\/\\b\\u00e9\\u0000\" \n", 1);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->text, std::string("\xF0\x9F\x98\x80/\b\xC3\xA9\0", 9));
  const auto numbers = parse_json_tree("[ -0 , 1e2, 0.5E-1 ,9223372036854775808,99999999999999999999]", 1);
  ASSERT_TRUE(numbers);
  using Kind = JsonTree::Kind;
  const Kind kinds[] = {Kind::kInteger, Kind::kFloat, Kind::kFloat, Kind::kInteger, Kind::kFloat};
  const double values[] = {0.0, 100.0, 0.05, 0x1p63, 1e20};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(numbers->children[i].kind, kinds[i]) << i;
    EXPECT_EQ(numbers->children[i].number, values[i]) << i;
  }
}

TEST(JsonText, writes_objects_lists_and_numbers_of_every_kind) {
  JsonText list = JsonText::array();
  EXPECT_EQ(list.dump(), "[]");
  list.push_back({{"a", 1}, {"b", "x\n"}});
  list.push_back(nullptr);
  list.push_back(true);
  EXPECT_EQ(list.dump(), R"([{"a":1,"b":"x\n"},null,true])");
  JsonText all = {{"list", list}, {"least", INT64_MIN}, {"most", UINT64_MAX}};
  all.add("numbers", std::vector<double>{1.0, 0.5, -1e-7, 1e300, std::nan("")});
  all.add({{"names", std::map<std::string, int64_t>{{"y", 2}, {"z", -3}}}, {"none", JsonText::object()}});
  EXPECT_EQ(all.dump(), R"({"list":[{"a":1,"b":"x\n"},null,true],"least":-9223372036854775808,)"
                        R"("most":18446744073709551615,"numbers":[1.0,0.5,-1e-07,1e+300,null],)"
                        R"("names":{"y":2,"z":-3},"none":{}})");
  EXPECT_TRUE(parse_json_tree(all.dump(), 3));
  EXPECT_EQ(json_lines({{"a", "b"}, {"c", 1}}), "{\n  \"a\": \"b\",\n  \"c\": 1\n}\n");
}

TEST(JsonString, replaces_what_is_no_utf8) {
  EXPECT_EQ(json_string("a\"\\\x1F\xFF"), "\"a\\\"\\\\\\u001f\xEF\xBF\xBD\"");
}

// Texts with bytes exchanged, left out and repeated.
std::string damaged(std::string text, std::mt19937& random) {
  constexpr std::string_view kBytes = "{}[]:,\"\\ue-+.019 \n\t\x7f\xc3\xa9\xed\xa0tfn/";
  for (int left = 1 + static_cast<int>(random() % 3); left > 0 && !text.empty(); --left) {
    const size_t at = random() % text.size();
    switch (random() % 3) {
      case 0: text[at] = kBytes[random() % kBytes.size()]; break;
      case 1: text.erase(at, 1 + random() % 4); break;
      default: text.insert(at, text.substr(random() % text.size(), 1 + random() % 6));
    }
  }
  return text;
}

TEST(JsonTree, takes_damaged_texts_as_another_library_does) {
  constexpr std::string_view kTexts[] = {
      R"({"a":[1,-2,3.5e-3,true,false,null],"b":{"c":"x\u00e9\ud83d\ude00\n"},"d":-0.0,"e":1E+2})",
      R"([[],{},[{"k":"v","k":0.1}],123456789012345678901234567890,-9223372036854775808,18446744073709551615])",
      "\"\\\"\\\\ \xc3\xa9 \xf0\x9f\x98\x80\"", " [ 1 , 2 ] "};
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = damaged(std::string(kTexts[i % std::size(kTexts)]), random);
    const auto tree = parse_json_tree(text, 64);
    const auto oracle = nlohmann::json::parse(text, nullptr, false);
    ASSERT_EQ(tree.has_value(), !oracle.is_discarded()) << text;
    if (!tree) continue;
    ++accepted;
    ASSERT_EQ(nlohmann::json::parse(tree->dump(), nullptr, false), oracle) << text;
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace mote
