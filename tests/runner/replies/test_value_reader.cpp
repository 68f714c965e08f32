#include <gtest/gtest.h>

#include "runner/replies/value_reader.h"

namespace mote::reply {
namespace {

std::string read(std::string_view text, const ValueSyntax& syntax) {
  return value_as_json(text, syntax).value_or("refused");
}

TEST(ValueReader, json_passes_as_it_is) {
  for (const char* text : {R"({})", R"([])", R"({"a" : [1, -2.5e+10, true, false, null], "b":{"c":"d"}})",
                           R"("a\"\\\/\b\f\n\r\t\u00e9 \ud83d")", "0", "-0.5", "1e5", "true", "null",
                           R"({"a": 1, "a": 2})", "12345678901234567890123", "[[], {}, [{}]]"}) {
    EXPECT_EQ(read(text, kJsonSyntax), text);
  }
}

TEST(ValueReader, what_is_no_json_is_refused) {
  for (const char* text : {"",           " ",          "{",      "}",   "[1,]",      "{,}",          "{\"a\"}",
                           "{\"a\":}",   "{\"a\":1,}", "[1 2]",  "[1}", "{\"a\":1]", "01",           "1.",
                           ".5",         "+1",         "-",      "1e",  "--1",       "nan",          "True",
                           "tru",        "trueish",    "'a'",    "\"a", "\"\n\"",    "\"\\x41\"",    "\"\\u12g4\"",
                           "\"\\u123\"", "{a: 1}",     "{1: 2}", "1 2", "{} x",      "[\"a\" \"b\"]"}) {
    EXPECT_EQ(read(text, kJsonSyntax), "refused") << text;
  }
}

TEST(ValueReader, python_literals_become_json) {
  EXPECT_EQ(read("{'a': [1, None, True, False], \"b\": 'it\\'s \"x\"'}", kPythonSyntax),
            R"({"a": [1, null, true, false], "b": "it's \"x\""})");
  EXPECT_EQ(read(R"('\n\t\\\x41\u00e9\U0001F600\d\0')", kPythonSyntax),
            "\"\\n\\t\\\\\\u0041\\u00e9\xF0\x9F\x98\x80\\\\d\\u0000\"");
  EXPECT_EQ(read("'a\nb'", kPythonSyntax), R"("a\nb")");
  EXPECT_EQ(read("'a\\\nb'", kPythonSyntax), R"("ab")");
  EXPECT_EQ(read("true", kPythonSyntax), "true");
  for (const char* text : {"(1, 2)", "f(1)", "x", "'a' 'b'", "{1: 2}", "'\\U00110000'", "'\\ud8'", "None1"})
    EXPECT_EQ(read(text, kPythonSyntax), "refused") << text;
}

TEST(ValueReader, gemma_values_become_json) {
  EXPECT_EQ(read("{a:<|\"|>x \"y\" <| \\ {<|\"|>,b:[1,None,{c d:true}],<|\"|>e<|\"|>:<escape>f<escape>}", kGemmaSyntax),
            R"({"a":"x \"y\" <| \\ {","b":[1,null,{"c d":true}],"e":"f"})");
  EXPECT_EQ(read("{}", kGemmaSyntax), "{}");
  for (const char* text : {"{a}", "{a:}", "{a:x}", "{a:<|x}", "{:1}", "{a:<|\"|>x}"})
    EXPECT_EQ(read(text, kGemmaSyntax), "refused") << text;
}

TEST(ValueReader, nesting_is_limited) {
  const size_t deepest = ValueReader::kMaxDepth;
  EXPECT_NE(read(std::string(deepest, '[') + std::string(deepest, ']'), kJsonSyntax), "refused");
  EXPECT_EQ(read(std::string(deepest + 1, '[') + std::string(deepest + 1, ']'), kJsonSyntax), "refused");
}

TEST(ValueReader, a_number_ends_before_what_follows) {
  ValueReader reader(kJsonSyntax);
  std::string json;
  EXPECT_EQ(reader.feed('1', json), Step::kMore);
  EXPECT_EQ(reader.feed('2', json), Step::kMore);
  EXPECT_EQ(reader.feed('<', json), Step::kEndBefore);
  EXPECT_EQ(json, "12");
}

}  // namespace
}  // namespace mote::reply
