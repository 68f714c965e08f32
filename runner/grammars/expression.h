// Rules over bytes, not yet compiled. Every syntax of grammars is read into them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/grammars/work_budget.h"

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
  kTexts,
  kCharacters,
  kSequence,
  kChoice,
  kRepeat,
  kRule,
  kIntersection,
  kDifference,
  kKeyed
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kSequence;
  std::string bytes{};                       // kBytes; kTexts: all texts, one behind the other
  std::vector<CodePointRange> characters{};  // ascending, disjoint
  std::vector<ExpressionId> children{};      // kTexts: where each text ends in `bytes`; kKeyed: what follows the keys
  uint32_t index = 0;                        // kRule: the rule; kKeyed: its keys
  uint32_t low = 0;                          // kRepeat
  uint32_t high = 0;                         // kRepeat; kUnbounded: no limit
};

// A set of keys: texts with a match of `body`, which may stand anywhere where both sides are open.
struct KeyPattern {
  ExpressionId body = 0;
  bool is_open_before = false;
  bool is_open_behind = false;
  uint32_t group = 0;
};

// The same characters as ascending, disjoint ranges without surrogates.
std::vector<CodePointRange> normalized(std::vector<CodePointRange> ranges);
// Every code point that is not in `ranges`, which are normalized.
std::vector<CodePointRange> complement(std::span<const CodePointRange> ranges);

// Rules under construction; rule 0 is the root. An expression refers only to expressions made before it, so
// there are no cycles other than through rules. Everything is counted in the budget, which outlives the rules; once it
// is spent, nothing more is made.
class Rules {
 public:
  static constexpr uint32_t kLeftOut = kUnbounded;  // the group of keys that may not come

  explicit Rules(WorkBudget& budget) : budget_(&budget) {}

  WorkBudget& budget() const { return *budget_; }
  const Expression& expression(ExpressionId id) const { return expressions_[id]; }
  size_t num_rules() const { return definitions_.size(); }
  ExpressionId definition(RuleId rule) const { return definitions_[rule]; }
  size_t num_expressions() const { return expressions_.size(); }
  std::span<const KeyPattern> keys(const Expression& keyed) const { return keys_[keyed.index]; }

  ExpressionId bytes(std::string text);
  ExpressionId texts(const std::vector<std::string>& texts);  // one of them
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
  // A key of one group and of no other, and then what follows keys of that group, which is never the empty text.
  // any: one character of a key. The last of `behind` follows keys of no group, unless only_known.
  ExpressionId keyed(std::vector<KeyPattern> keys, ExpressionId any, std::vector<ExpressionId> behind, bool only_known);

  // Appends what `part` spells to `before`, the last expression but one, if both are bytes and `part` is the last.
  bool append_bytes(ExpressionId before, ExpressionId part);

  RuleId add_rule();
  void define(RuleId rule, ExpressionId expression) { definitions_[rule] = expression; }

  // What errors call a rule; empty: nothing.
  std::string describe(RuleId rule) const { return describe_ ? describe_(rule) : std::string(); }
  void describe_with(std::function<std::string(RuleId)> describe) { describe_ = std::move(describe); }

 private:
  ExpressionId add(Expression expression);

  WorkBudget* budget_;
  std::deque<Expression> expressions_;
  std::vector<ExpressionId> definitions_;
  ExpressionId undefined_ = 0;
  std::vector<std::vector<KeyPattern>> keys_;
  std::function<std::string(RuleId)> describe_;
};

}  // namespace mote::constraints
