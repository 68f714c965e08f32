#include "runner/grammars/work_budget.h"

#include <gtest/gtest.h>

#include <functional>

#include "runner/grammars/constraint.h"

namespace mote::constraints {
namespace {

// What a count may go beyond the limit by: what is counted at once is part of a source, or was made before.
constexpr size_t kMostSteps = kMaxCompileSteps + 2 * kMaxGrammarBytes;
constexpr size_t kMostBytes = size_t{64} << 20;

std::string listed(size_t count, const std::function<std::string(const std::string&)>& item,
                   const char* between = ",") {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? between : "") + item(std::to_string(i));
  return text;
}

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

std::string patterns(size_t count, const std::string& spelling, bool are_alike) {
  return R"({"patternProperties":{)" +
         listed(count,
                [&](const std::string& i) {
                  return "\"" + spelling + i + "\":" + (are_alike ? "{}" : R"({"const":)" + i + "}");
                }) +
         "}}";
}

std::string members(size_t count, const std::string& others = "") {
  return R"({"type":"object","properties":{)" +
         listed(count, [](const std::string& i) { return "\"member_" + i + R"(":{"type":"integer"})"; }) + "}" +
         others + "}";
}

std::string constants(const char* keyword, size_t count) {
  return std::string("{\"") + keyword + "\":[" +
         listed(count, [](const std::string& i) { return R"({"const":)" + i + "}"; }) + "]}";
}

std::string chain_of_rules(size_t count, const char* sign) {
  return listed(
             count, [&](const std::string& i) { return "r" + i + sign + "r" + std::to_string(std::stoul(i) + 1); },
             "\n") +
         "\nr" + std::to_string(count) + sign + "\"x\"\n";
}

std::string number(const std::string& i) { return i; }

struct Source {
  const char* name;
  Syntax syntax;
  std::string text;
  const char* refused = nullptr;  // how the error begins; nullptr: it compiles
};

// A schema with `before`, items for 0, 1, ..., and `behind`.
std::string schema_of(const char* before, size_t count, const std::function<std::string(const std::string&)>& item,
                      const std::string& behind) {
  return before + listed(count, item) + behind;
}

std::string references(size_t count) {
  const auto definition = [](const std::string& i) {
    return "\"d" + i + R"(":{"items":{"$ref":"#/$defs/d)" + std::to_string(std::stoul(i) + 1) + "\"}}";
  };
  return schema_of(R"({"$ref":"#/$defs/d0","$defs":{)", count, definition,
                   ",\"d" + std::to_string(count) + R"(":{"type":"null"}}})");
}

std::string tagged(const std::string& i) {
  return R"({"type":"object","required":["k"],"properties":{"k":{"const":)" + i + "}}}";
}

constexpr const char* kTooLarge = "JSON Schema: #: the grammar is too large: ";

// Of values. Those that took seconds or gigabytes, and such as may do so.
std::vector<Source> schemas_of_values() {
  using enum Syntax;
  const std::string enums =
      R"({"allOf":[{"enum":[)" + listed(40'000, number) + R"(]},{"enum":[)" + listed(40'000, number) + "]}]}";
  const auto two_nulls = [](const std::string&) { return R"({"anyOf":[{"type":"null"},{"type":"null"}]})"; };
  const auto pattern = [](const std::string&) { return R"({"type":"string","pattern":"^a"})"; };
  const std::string long_key(200'000, 'k');
  const auto extension = [](const std::string& i) { return "\"x-" + i + "\":0"; };
  return {
      {"enum", kJsonSchema, R"({"enum":[)" + listed(80'000, number) + "]}"},
      {"two enums", kJsonSchema, enums},
      {"anyOf", kJsonSchema, constants("anyOf", 20'000)},
      {"oneOf", kJsonSchema, constants("oneOf", 20'000)},
      {"oneOf with tags", kJsonSchema, schema_of(R"({"oneOf":[)", 1000, tagged, "]}")},
      {"choices of choices", kJsonSchema, schema_of(R"({"allOf":[)", 40, two_nulls, "]}"), kTooLarge},
      {"references", kJsonSchema, references(5000)},
      {"a long key", kJsonSchema,
       R"({"$ref":"#/$defs/)" + long_key + R"(","$defs":{")" + long_key + "\":" + constants("anyOf", 1900) + "}}"},
      {"other keywords", kJsonSchema, schema_of("{", 40'000, extension, "," + constants("anyOf", 1000).substr(1))},
      {"many patterns of a string", kJsonSchema, schema_of(R"({"allOf":[)", 700, pattern, "]}")},
      {"a long string", kJsonSchema, R"({"type":"string","maxLength":3000})"},
      {"too long a string", kJsonSchema, R"({"properties":{"a":{"type":"string","maxLength":900000}}})",
       "JSON Schema: #/properties/a: the grammar is too large: "},
  };
}

std::vector<Source> schemas_of_objects() {
  using enum Syntax;
  const auto with_gap = [](const std::string& i) { return "\"a.*b" + i + R"(.*c":{"const":)" + i + "}"; };
  const auto text = [](const std::string& i) { return "\"" + i + "\""; };
  const auto date = [](const std::string& i) { return "\"d" + i + R"(":{"type":"string","format":"date-time"})"; };
  return {
      {"patterns", kJsonSchema, patterns(1400, "^a", true)},
      {"patterns with other values", kJsonSchema, patterns(1400, "^a_", false)},
      {"patterns with ends", kJsonSchema, patterns(1400, "^a$|^b$|^c_", true)},
      {"patterns anywhere", kJsonSchema, patterns(1400, "a", true)},
      {"patterns anywhere with other values", kJsonSchema, patterns(1400, "a", false)},
      {"patterns with gaps", kJsonSchema, schema_of(R"({"patternProperties":{)", 20, with_gap, "}}"), kTooLarge},
      {"properties", kJsonSchema, members(3000)},
      {"properties and others", kJsonSchema, members(2000, R"(,"additionalProperties":true)")},
      {"too many properties", kJsonSchema, members(20'000), "JSON Schema: #/properties/member_"},
      {"required", kJsonSchema, schema_of(R"({"type":"object","required":[)", 30'000, text, "]}"), kTooLarge},
      {"formats", kJsonSchema, schema_of(R"({"type":"object","properties":{)", 300, date, "}}")},
  };
}

std::vector<Source> grammars() {
  using enum Syntax;
  const auto call = [](const std::string& i) { return "r" + i; };
  const auto rule = [](const std::string& i) { return "r" + i + " ::= \"a\" [a-z] \"" + i + "\""; };
  const auto word = [](const std::string& i) { return i + "word"; };
  return {
      {"repetitions", kRegex, "(((a{1000}){1000}){1000})", "the grammar is too large: "},
      {"repetitions of nothing", kRegex, "(((){1000}){1000}){1000}", "the grammar is too large: "},
      {"subsets", kRegex, "(a|b)*a(a|b){30}", "the grammar is too large: "},
      {"words", kRegex, listed(20'000, word, "|")},
      {"dots", kRegex, std::string(1'000'000, '.'), "the grammar is too large: "},
      {"a long set", kRegex, "[" + repeated("\\S", 500'000) + "]"},
      {"optional parts", kRegex, repeated("a?", 2000)},
      {"a chain of rules", kGbnf, "root ::= r0\n" + chain_of_rules(18'000, " ::= ")},
      {"a chain of rules in Lark", kLark, "start: r0\n" + chain_of_rules(18'000, ": ")},
      {"rules as alternatives", kGbnf, "root ::= " + listed(700, call, " | ") + "\n" + listed(700, rule, "\n")},
      {"a long rule", kGbnf, "root ::= \"a\" b\nb ::= ((\"c\"{1000}){1000}){1000}",
       "GBNF: the rule b: the grammar is too large: "},
      {"a long rule in Lark", kLark, "start: b\nb: (\"c\"~1000)~100000", "Lark: b: the grammar is too large: "},
  };
}

std::vector<Source> sources() {
  std::vector<Source> all = schemas_of_values();
  for (const auto& others : {schemas_of_objects(), grammars()}) all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::shared_ptr<const Vocabulary> bytes() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  tokens.emplace_back();
  return *Vocabulary::make(std::move(tokens), {256});
}

void write_some(const std::shared_ptr<const Grammar>& grammar, const char* name) {
  Constraint constraint(grammar);
  std::vector<uint32_t> mask(grammar->vocabulary().mask_words());
  for (size_t step = 0; step < 6; ++step) {
    const Status status = constraint.fill_mask(mask);
    ASSERT_TRUE(status.ok()) << name << ": " << status.message();
    int32_t id = 0;
    while (id < 256 && ((mask[static_cast<size_t>(id) / 32] >> (id % 32)) & 1U) == 0) ++id;
    if (id == 256) return;
    EXPECT_TRUE(constraint.accept(id).ok()) << name;
  }
}

TEST(WorkBudget, bounds_what_any_source_costs) {
  const auto vocabulary = bytes();
  for (const Source& source : sources()) {
    WorkBudget budget;
    const auto grammar = Grammar::compile(vocabulary, source.text, {.syntax = source.syntax}, budget);
    EXPECT_EQ(grammar.ok(), source.refused == nullptr) << source.name << ": " << grammar.status().message();
    EXPECT_LE(budget.steps(), kMostSteps) << source.name;
    EXPECT_LE(budget.peak_bytes(), kMostBytes) << source.name;
    if (grammar.ok()) write_some(*grammar, source.name);
    if (grammar.ok() || source.refused == nullptr) continue;
    EXPECT_EQ(grammar.status().code(), Code::kInvalidArgument) << source.name;
    EXPECT_TRUE(grammar.status().message().starts_with(source.refused))
        << source.name << ": " << grammar.status().message();
  }
}

TEST(WorkBudget, the_same_source_costs_the_same) {
  size_t steps = 0;
  for (int i = 0; i < 2; ++i) {
    WorkBudget budget;
    ASSERT_TRUE(Grammar::compile(bytes(), members(100), {}, budget).ok());
    EXPECT_GT(budget.steps(), 1000U);
    EXPECT_TRUE(i == 0 || budget.steps() == steps);
    steps = budget.steps();
  }
}

// With half the budget that it takes, with a tenth, ...: there is no place at which that is not noticed.
TEST(WorkBudget, may_end_anywhere) {
  const auto vocabulary = bytes();
  for (const Source& source : {Source{"schema", Syntax::kJsonSchema, patterns(20, "a", true)},
                               Source{"members", Syntax::kJsonSchema, members(10, R"(,"additionalProperties":true)")},
                               Source{"oneOf", Syntax::kJsonSchema, constants("oneOf", 30)},
                               Source{"rules", Syntax::kGbnf, "root ::= root \"a\" | b\nb ::= \"\" | [^b]{3} \"c\"*"},
                               Source{"lark", Syntax::kLark, "start: /[a-z]+/ \"b\"~2..5\n%ignore \" \""}}) {
    WorkBudget whole;
    ASSERT_TRUE(Grammar::compile(vocabulary, source.text, {.syntax = source.syntax}, whole).ok()) << source.name;
    for (size_t part = 1; part <= 100; ++part) {
      const size_t limit = whole.steps() * part / 101;
      WorkBudget budget({}, limit);
      const auto grammar = Grammar::compile(vocabulary, source.text, {.syntax = source.syntax}, budget);
      EXPECT_EQ(grammar.status().code(), Code::kInvalidArgument) << source.name << " with " << limit << " steps";
    }
  }
}

TEST(WorkBudget, cancelling_ends_a_compilation) {
  int asked = 0;
  WorkBudget budget([&] { return ++asked == 3; });
  const auto grammar = Grammar::compile(bytes(), "(a|b)*a(a|b){15}", {.syntax = Syntax::kRegex}, budget);
  EXPECT_EQ(grammar.status().code(), Code::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_LT(budget.steps(), kMaxCompileSteps / 4);
}

}  // namespace
}  // namespace mote::constraints
