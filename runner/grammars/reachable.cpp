#include "runner/grammars/reachable.h"

#include <algorithm>

#include "runner/grammars/nfa.h"

namespace mote::constraints {
namespace {

// The parts of an expression that are expressions.
std::span<const ExpressionId> parts_of(const Expression& e) {
  if (e.kind == ExpressionKind::kTexts) return {};  // those are ends of texts
  return e.children;
}

bool is_product(const Expression& e) {
  return e.kind == ExpressionKind::kIntersection || e.kind == ExpressionKind::kDifference;
}

// Whether an expression of a product, in which rules cannot be recursive, matches the empty text. Where they are, the
// answer does not matter.
class NullableProduct {
 public:
  explicit NullableProduct(const Rules& rules) : rules_(rules) {}

  bool holds(ExpressionId id) {
    rules_.budget().count(1);
    if (++depth_ > 4 * kMaxNesting || rules_.budget().is_spent()) return false;
    const bool result = find_out(rules_.expression(id));
    --depth_;
    return result;
  }

 private:
  bool find_out(const Expression& e) {
    const auto is_nullable = [this](ExpressionId child) { return holds(child); };
    switch (e.kind) {
      case ExpressionKind::kBytes: return e.bytes.empty();
      case ExpressionKind::kTexts:
        return (!e.children.empty() && e.children[0] == 0) ||
               std::ranges::adjacent_find(e.children) != e.children.end();
      case ExpressionKind::kCharacters:
      case ExpressionKind::kKeyed: return false;
      case ExpressionKind::kSequence: return std::ranges::all_of(e.children, is_nullable);
      case ExpressionKind::kChoice: return std::ranges::any_of(e.children, is_nullable);
      case ExpressionKind::kRepeat: return e.low == 0 || holds(e.children[0]);
      case ExpressionKind::kRule: return holds(rules_.definition(e.index));
      case ExpressionKind::kIntersection: return holds(e.children[0]) && holds(e.children[1]);
      case ExpressionKind::kDifference: return holds(e.children[0]) && !holds(e.children[1]);
    }
    return false;
  }

  const Rules& rules_;
  size_t depth_ = 0;
};

// Expressions are found to be nullable one after the other, and tell what they are parts of.
class NullableRules {
 public:
  explicit NullableRules(const Rules& rules)
      : rules_(rules),
        held_(rules.budget()),
        missing_(rules.num_expressions()),
        is_nullable_(rules.num_expressions()),
        users_(rules.num_expressions()),
        callers_(rules.num_rules()),
        rules_of_(rules.num_expressions()) {
    held_.add(rules.num_expressions() * 13);
  }

  std::vector<bool> run() {
    for (ExpressionId id = 0; id < rules_.num_expressions(); ++id) prepare(id);
    for (RuleId rule = 0; rule < rules_.num_rules(); ++rule) lists_.push(rules_of_[rules_.definition(rule)], rule);
    held_.add(lists_.num_bytes());
    std::vector<bool> result(rules_.num_rules());
    for (ExpressionId id = 0; id < rules_.num_expressions(); ++id) {
      if (missing_[id] == 0) find(id);
    }
    while (!found_.empty()) {
      const ExpressionId id = found_.back();
      found_.pop_back();
      lists_.for_each(users_[id], [&](ExpressionId user) { lose_one(user); });
      lists_.for_each(rules_of_[id], [&](RuleId rule) {
        if (result[rule]) return;
        result[rule] = true;
        lists_.for_each(callers_[rule], [&](ExpressionId call) { lose_one(call); });
      });
    }
    return result;
  }

 private:
  static constexpr uint32_t kNever = kUnbounded;

  // How many parts must be nullable so that the expression is.
  void prepare(ExpressionId id) {
    const Expression& e = rules_.expression(id);
    rules_.budget().count(1 + e.children.size());
    if (e.kind == ExpressionKind::kRule) {
      missing_[id] = 1;
      lists_.push(callers_[e.index], id);
    } else if (e.kind == ExpressionKind::kSequence || e.kind == ExpressionKind::kChoice ||
               (e.kind == ExpressionKind::kRepeat && e.low > 0)) {
      missing_[id] = e.kind == ExpressionKind::kSequence ? static_cast<uint32_t>(e.children.size()) : 1;
      for (const ExpressionId part : e.children) lists_.push(users_[part], id);
    } else {
      missing_[id] = NullableProduct(rules_).holds(id) ? 0 : kNever;
    }
  }

  void lose_one(ExpressionId id) {
    if (missing_[id] == kNever || missing_[id] == 0) return;
    if (--missing_[id] == 0) find(id);
  }

  void find(ExpressionId id) {
    if (is_nullable_[id]) return;
    is_nullable_[id] = true;
    found_.push_back(id);
  }

  const Rules& rules_;
  HeldBytes held_;
  std::vector<uint32_t> missing_;
  std::vector<bool> is_nullable_;
  EdgeLists<uint32_t> lists_;
  std::vector<uint32_t> users_;     // of each expression, a list
  std::vector<uint32_t> callers_;   // of each rule
  std::vector<uint32_t> rules_of_;  // of each expression: those that it defines
  std::vector<ExpressionId> found_;
};

}  // namespace

std::vector<bool> reachable_rules(const Rules& rules) {
  std::vector<bool> is_reached(rules.num_rules());
  std::vector<bool> is_seen(rules.num_expressions());
  std::vector<ExpressionId> waiting = {rules.definition(0)};
  is_reached[0] = true;
  while (!waiting.empty()) {
    const ExpressionId id = waiting.back();
    waiting.pop_back();
    if (is_seen[id]) continue;
    is_seen[id] = true;
    const Expression& e = rules.expression(id);
    const std::span<const ExpressionId> parts = parts_of(e);
    rules.budget().count(1 + parts.size());
    if (is_product(e)) continue;  // the rules that it is made of are written into it
    if (e.kind == ExpressionKind::kRule && !is_reached[e.index]) {
      is_reached[e.index] = true;
      waiting.push_back(rules.definition(e.index));
    }
    waiting.insert(waiting.end(), parts.begin(), parts.end());
  }
  return is_reached;
}

std::vector<bool> nullable_rules(const Rules& rules) { return NullableRules(rules).run(); }

}  // namespace mote::constraints
