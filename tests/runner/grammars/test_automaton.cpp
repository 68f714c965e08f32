#include <gtest/gtest.h>

#include <algorithm>

#include "base/utf8.h"
#include "runner/grammars/configuration.h"
#include "runner/grammars/grammar.h"
#include "runner/grammars/utf8_ranges.h"

namespace mote::constraints {
namespace {

Automaton compiled(std::string_view source, Syntax syntax) {
  WorkBudget budget;
  Result<Rules> rules = parse_grammar(source, {.syntax = syntax}, budget);
  EXPECT_TRUE(rules.ok()) << rules.status().message();
  Result<Automaton> automaton = Automaton::compile(*rules);
  EXPECT_TRUE(automaton.ok()) << automaton.status().message();
  return *std::move(automaton);
}

bool accepts(const Automaton& automaton, std::string_view text) {
  Configuration at = begin(automaton);
  for (const char c : text) at = step(automaton, at, static_cast<uint8_t>(c));
  return at.may_end;
}

TEST(Utf8Ranges, every_code_point_has_one_sequence) {
  for (const CodePointRange& range :
       {CodePointRange{0, 0xD7FF}, {0xE000, kLastCodePoint}, {0x7E, 0x801}, {0xFFFE, 0x10001}, {0x3041, 0x3041}}) {
    std::vector<ByteSequence> sequences;
    append_utf8_sequences(range, sequences);
    for (char32_t c = 0; c <= kLastCodePoint; c += c < 0x900 || (c > 0xFFF0 && c < 0x10100) ? 1 : 97) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string text;
      append_utf8(text, c);
      const auto matches = [&](const ByteSequence& sequence) {
        if (sequence.size() != text.size()) return false;
        for (size_t i = 0; i < text.size(); ++i) {
          const auto byte = static_cast<uint8_t>(text[i]);
          if (byte < sequence[i].low || byte > sequence[i].high) return false;
        }
        return true;
      };
      const auto count = std::count_if(sequences.begin(), sequences.end(), matches);
      ASSERT_EQ(count, c >= range.low && c <= range.high ? 1 : 0) << static_cast<uint32_t>(c);
    }
  }
}

TEST(Automaton, left_recursion_becomes_repetition) {
  const Automaton sum = compiled("root ::= root \"+\" [0-9] | [0-9]", Syntax::kGbnf);
  for (const char* text : {"1", "1+2", "1+2+3"}) EXPECT_TRUE(accepts(sum, text)) << text;
  for (const char* text : {"", "+", "1+", "12"}) EXPECT_FALSE(accepts(sum, text)) << text;
  // Through other rules, and behind a rule that may be empty.
  const Automaton indirect =
      compiled("root ::= a | \"r\"\na ::= root \"x\" | e a \"y\" | e \"z\"\ne ::= \"e\"?", Syntax::kGbnf);
  for (const char* text : {"r", "rx", "z", "zx", "zy", "ezy", "eezyy", "rxyx", "erxyx"})
    EXPECT_TRUE(accepts(indirect, text)) << text;
  for (const char* text : {"e", "x", "ry", "ez y", "eezy x"}) EXPECT_FALSE(accepts(indirect, text)) << text;
}

TEST(Automaton, rules_that_match_nothing_leave_only_what_can_end) {
  const Automaton automaton =
      compiled("root ::= \"a\" never | \"b\" | empty\nnever ::= \"c\" never\nempty ::= \"\"", Syntax::kGbnf);
  EXPECT_TRUE(step(automaton, begin(automaton), 'a').is_empty());
  EXPECT_TRUE(accepts(automaton, "b"));
  EXPECT_TRUE(accepts(automaton, ""));
}

TEST(Automaton, deep_texts_need_no_deep_stack_where_the_last_call_is_a_rule) {
  const Automaton automaton = compiled("root ::= \"a\" root | \"\"", Syntax::kGbnf);
  Configuration at = begin(automaton);
  for (int i = 0; i < 100'000; ++i) at = step(automaton, at, 'a');
  ASSERT_EQ(at.num_kernel, 1U);
  for (const Item& item : at.items) EXPECT_LE(item.stack->depth, 1U);
}

TEST(Automaton, nesting_ends_at_a_limit) {
  const Automaton automaton = compiled("root ::= \"(\" root \")\" | \"x\"", Syntax::kGbnf);
  Configuration at = begin(automaton);
  size_t depth = 0;
  for (Configuration next = step(automaton, at, '('); !next.is_empty() && depth < 100'000;
       next = step(automaton, at, '(')) {
    at = std::move(next);
    ++depth;
  }
  EXPECT_GT(depth, 1000U);
  EXPECT_LT(depth, 10'000U);
  at = step(automaton, at, 'x');
  for (size_t i = 0; i < depth; ++i) at = step(automaton, at, ')');
  EXPECT_TRUE(at.may_end);
}

TEST(Automaton, ambiguity_costs_no_more_than_the_text_is_long) {
  const Automaton automaton = compiled("root ::= root root | \"a\" | \"aa\"", Syntax::kGbnf);
  Configuration at = begin(automaton);
  for (int i = 0; i < 300; ++i) at = step(automaton, at, 'a');
  EXPECT_TRUE(at.may_end);
  EXPECT_FALSE(at.exhausted);
}

}  // namespace
}  // namespace mote::constraints
