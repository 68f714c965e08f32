#include "tests/fuzz/run_grammar.h"

#include <memory>

#include "runner/grammars/constraint.h"

namespace mote::test {
namespace {

constexpr int32_t kEos = 256;
constexpr int kSteps = 12;
constexpr size_t kMaxSteps = 300'000;
constexpr size_t kMaxBytes = size_t{8} << 20;

// Every byte, and pieces across the borders of characters and of JSON.
const std::shared_ptr<const constraints::Vocabulary>& vocabulary() {
  static const auto made = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.emplace_back();
    for (const char* piece :
         {"{\"", "\":", "\", \"", "}]", "aa", "ab", "12", "\xC3\xA4", "a\xC3", "\xA4z", "null", "  ", "\n  "})
      tokens.emplace_back(piece);
    return *constraints::Vocabulary::make(std::move(tokens), {kEos});
  }();
  return made;
}

bool has_bit(const std::vector<uint32_t>& mask, int32_t id) {
  return (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) != 0;
}

std::string with_header(int syntax, int whitespace, std::string_view source) {
  return std::string(1, static_cast<char>(syntax + 4 * whitespace)) + '\x07' + std::string(source);
}

}  // namespace

Status run_grammar(std::string_view input) {
  if (input.size() < 2) return {};
  constraints::GrammarOptions options;
  options.syntax = static_cast<constraints::Syntax>(input[0] & 3);
  options.whitespace = static_cast<constraints::JsonWhitespace>((static_cast<unsigned char>(input[0]) >> 2) % 3);
  uint32_t seed = static_cast<unsigned char>(input[1]);
  constraints::WorkBudget budget({}, kMaxSteps, kMaxBytes);
  const auto compiled = Grammar::compile(vocabulary(), input.substr(2), options, budget);
  // What is counted at once is no more than some of the source or of what was made already.
  MOTE_REQUIRE(budget.steps() <= 2 * kMaxSteps + 64 * input.size(), Code::kInternal, "compiling took %zu steps",
               budget.steps());
  MOTE_REQUIRE(budget.peak_bytes() <= 3 * kMaxBytes, Code::kInternal, "compiling took %zu bytes", budget.peak_bytes());
  if (!compiled.ok()) return compiled.status();
  const auto& grammar = *compiled;
  Constraint constraint(grammar);
  std::vector<uint32_t> mask(vocabulary()->mask_words());
  for (int step = 0; step < kSteps; ++step) {
    const Status filled = constraint.fill_mask(mask);
    // With every byte in the vocabulary there is always a token, unless the grammar is too ambiguous or too deep.
    if (!filled.ok())
      return filled.message().find("ambiguous") != std::string::npos ? Status()
                                                                     : Status(Code::kInternal, filled.message());
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < vocabulary()->num_ids(); ++id) {
      MOTE_REQUIRE(has_bit(mask, id) == constraint.allows(id), Code::kInternal, "token %d: the mask says %d", id,
                   has_bit(mask, id));
      if (has_bit(mask, id) && id != kEos) allowed.push_back(id);
    }
    const std::optional<int32_t> forced = constraint.forced_token();
    MOTE_REQUIRE(!forced.has_value() || has_bit(mask, *forced), Code::kInternal, "token %d is forced and not allowed",
                 *forced);
    if (allowed.empty()) return {};
    seed = seed * 1664525U + 1013904223U;
    const Status accepted = constraint.accept(allowed[(seed >> 8) % allowed.size()]);
    MOTE_REQUIRE(accepted.ok(), Code::kInternal, "%s", accepted.message().c_str());
  }
  return {};
}

const std::vector<std::string>& grammar_seeds() {
  static const std::vector<std::string> seeds = {
      with_header(
          0, 0,
          R"({"type":"object","properties":{"a":{"type":"integer","minimum":-3,"maximum":12},"b":{"enum":["x",1,null]}},"required":["a"]})"),
      with_header(
          0, 1,
          R"({"$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["next"]}},"$ref":"#/$defs/n"})"),
      with_header(
          0, 2,
          R"({"type":"array","prefixItems":[{"type":"string","pattern":"^a+$","maxLength":4}],"items":{"type":"number","exclusiveMinimum":0.5},"minItems":1})"),
      with_header(
          0, 0,
          R"({"$defs":{"a":{"anyOf":[{"$ref":"#"},{"const":1}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"anyOf":[{"$ref":"#"},{"$ref":"#/$defs/b"},{"type":"null"}]})"),
      with_header(
          0, 0,
          R"({"oneOf":[{"type":"string","format":"date"},{"allOf":[{"type":"object"},{"additionalProperties":true,"propertyNames":{"maxLength":3}}]}]})"),
      with_header(
          0, 0,
          R"({"patternProperties":{"^x":{"type":"boolean"}},"additionalProperties":{"multipleOf":7,"type":"integer"},"maxProperties":3})"),
      with_header(0, 0, "true"),
      with_header(1, 0, "(a|b)*abb"),
      with_header(1, 0, "^[^\\s\\d\"]{2,4}(?:x|\\u00e4+?)$|\\w*"),
      with_header(1, 0, "((a?b){0,3}c)+[\\]\\-a-f]"),
      with_header(
          2, 0,
          "root ::= (expr \"=\" term \"\\n\")+\nexpr ::= term ([-+*/] term)*\nterm ::= [a-z]+ | \"(\" expr \")\"\n"),
      with_header(2, 0, "root ::= a \"x\" | \"y\"\na ::= root \"z\" | b{0,2}\nb ::= [^a-z\\x00] | \"\" # comment\n"),
      with_header(3, 0,
                  "start: sum\nsum: sum \"+\" product | product\nproduct: product \"*\" /[0-9]+/ | NAME\nNAME: "
                  "\"a\"..\"f\"\n%ignore \" \"\n"),
      with_header(3, 0,
                  "?start: value\nvalue: \"[\" [value (\",\" value)*] \"]\" | ESCAPED_STRING~1..2\n%import "
                  "common.ESCAPED_STRING\n%import common.WS\n%ignore WS\n"),
      with_header(3, 0, "start: s\ns: s s | \"a\"i | opt s \"b\"\nopt: [/x/i]\n"),
  };
  return seeds;
}

const std::vector<std::string>& grammar_pieces() {
  static const std::vector<std::string> pieces = {"(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  "|",
                                                  "*",
                                                  "+",
                                                  "?",
                                                  "{2,3}",
                                                  "{0,9}",
                                                  "^",
                                                  "$",
                                                  "\\",
                                                  "\\d",
                                                  "\\S",
                                                  "\"",
                                                  "::=",
                                                  "root",
                                                  "start",
                                                  ":",
                                                  "\n",
                                                  "~2..3",
                                                  "%ignore",
                                                  "..",
                                                  "/",
                                                  "\"a\"",
                                                  "-",
                                                  ",",
                                                  "null",
                                                  "true",
                                                  "false",
                                                  "1e9",
                                                  "-0.5",
                                                  "99999999999",
                                                  "\"$ref\":\"#\"",
                                                  "\"anyOf\":[",
                                                  "\"allOf\":[",
                                                  "\"type\":\"string\"",
                                                  "\"maxLength\":3",
                                                  "\"minimum\":1",
                                                  "\"items\":",
                                                  "\"properties\":{",
                                                  "\"required\":[\"a\"]",
                                                  "\"pattern\":\"a\"",
                                                  "\"additionalProperties\":",
                                                  "\"const\":",
                                                  "\xC3\xA4",
                                                  "\xF0\x9F\x98\x80",
                                                  "\xFF"};
  return pieces;
}

}  // namespace mote::test
