// Rules over bytes, not yet compiled. Every syntax of grammars is read into them.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace mote::constraints {

using ExpressionId = uint32_t;
using RuleId = uint32_t;

inline constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();
inline constexpr char32_t kLastCodePoint = 0x10FFFF;

struct CodePointRange {
  char32_t low = 0;
  char32_t high = 0;  // included
  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
};

enum class ExpressionKind : uint8_t {
  kBytes,
  kCharacters,
  kSequence,
  kChoice,
  kRepeat,
  kRule,
  kIntersection,
  kDifference
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kSequence;
  std::string bytes{};
  std::vector<CodePointRange> characters{};  // ascending, disjoint
  std::vector<ExpressionId> children{};
  RuleId rule = 0;
  uint32_t low = 0;   // kRepeat
  uint32_t high = 0;  // kRepeat; kUnbounded: no limit
};

// The same characters as ascending, disjoint ranges without surrogates.
std::vector<CodePointRange> normalized(std::vector<CodePointRange> ranges);
// Every code point that is not in `ranges`, which are normalized.
std::vector<CodePointRange> complement(std::span<const CodePointRange> ranges);

// Rules under construction; rule 0 is the root. An expression refers only to expressions made before it, so
// there are no cycles other than through rules.
class Rules {
 public:
  const Expression& expression(ExpressionId id) const { return expressions_[id]; }
  size_t num_rules() const { return definitions_.size(); }
  ExpressionId definition(RuleId rule) const { return definitions_[rule]; }
  size_t num_expressions() const { return expressions_.size(); }

  ExpressionId bytes(std::string text);
  ExpressionId characters(std::vector<CodePointRange> ranges);
  ExpressionId sequence(std::vector<ExpressionId> parts);   // of nothing: the empty text
  ExpressionId choice(std::vector<ExpressionId> branches);  // of nothing: no text at all
  ExpressionId repeat(ExpressionId part, uint32_t low, uint32_t high);
  ExpressionId optional(ExpressionId part) { return repeat(part, 0, 1); }
  ExpressionId empty() { return sequence({}); }
  ExpressionId never() { return choice({}); }
  ExpressionId rule(RuleId rule);
  // The texts that match both, or match `a` and not `b`. Neither may be recursive.
  ExpressionId intersection(ExpressionId a, ExpressionId b);
  ExpressionId difference(ExpressionId a, ExpressionId b);

  RuleId add_rule();
  void define(RuleId rule, ExpressionId expression) { definitions_[rule] = expression; }

 private:
  ExpressionId add(Expression expression);

  std::vector<Expression> expressions_;
  std::vector<ExpressionId> definitions_;
};

}  // namespace mote::constraints
