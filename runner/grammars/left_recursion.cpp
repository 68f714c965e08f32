#include "runner/grammars/left_recursion.h"

#include <algorithm>
#include <limits>

namespace mote::constraints {
namespace {

constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();

// Strongly connected parts of the graph of calls at the start of rules, callees first. Uses a stack, not recursion.
class Components {
 public:
  explicit Components(const std::vector<Dfa>& rules)
      : rules_(rules), order_(rules.size(), kUnseen), low_(rules.size()), is_open_(rules.size()) {
    for (RuleId rule = 0; rule < rules.size(); ++rule) {
      if (order_[rule] == kUnseen) visit(rule);
    }
  }

  std::vector<std::vector<RuleId>> parts;

 private:
  struct Visit {
    RuleId rule;
    size_t next_call;
  };

  void open(RuleId rule) {
    order_[rule] = low_[rule] = count_++;
    open_.push_back(rule);
    is_open_[rule] = true;
    visits_.push_back({rule, 0});
  }

  void visit(RuleId root) {
    open(root);
    while (!visits_.empty()) {
      const RuleId rule = visits_.back().rule;
      const Dfa& dfa = rules_[rule];
      if (!dfa.states.empty() && visits_.back().next_call < dfa.states[0].calls.size()) {
        const RuleId callee = dfa.states[0].calls[visits_.back().next_call++].rule;
        if (order_[callee] == kUnseen)
          open(callee);
        else if (is_open_[callee])
          low_[rule] = std::min(low_[rule], order_[callee]);
        continue;
      }
      visits_.pop_back();
      if (!visits_.empty()) low_[visits_.back().rule] = std::min(low_[visits_.back().rule], low_[rule]);
      if (low_[rule] == order_[rule]) close(rule);
    }
  }

  void close(RuleId rule) {
    std::vector<RuleId> part;
    do {
      part.push_back(open_.back());
      is_open_[open_.back()] = false;
      open_.pop_back();
    } while (part.back() != rule);
    parts.push_back(std::move(part));
  }

  const std::vector<Dfa>& rules_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> low_;
  std::vector<bool> is_open_;
  std::vector<RuleId> open_;
  std::vector<Visit> visits_;
  uint32_t count_ = 0;
};

bool begins_with(const Dfa& dfa, RuleId rule) {
  if (dfa.states.empty()) return false;
  const auto& calls = dfa.states[0].calls;
  return std::any_of(calls.begin(), calls.end(), [rule](const CallEdge& call) { return call.rule == rule; });
}

// Appends a copy and returns where its states begin.
uint32_t copy_states(const Dfa& from, Nfa& to) {
  const auto base = static_cast<uint32_t>(to.states.size());
  for (const DfaState& state : from.states) {
    NfaState& copy = to.states.emplace_back();
    for (const ByteEdge& edge : state.bytes) copy.bytes.push_back({edge.low, edge.high, edge.target + base});
    for (const CallEdge& call : state.calls) copy.calls.push_back({call.rule, call.target + base});
    copy.is_final = state.is_final;
  }
  return base;
}

Status replace_dfa(const Nfa& nfa, Dfa& dfa, Budget& budget) {
  MOTE_RETURN_IF_ERROR(budget.spend_nfa_states(nfa.states.size()));
  MOTE_ASSIGN(dfa, determinize(nfa, budget));
  return {};
}

// Replaces the call of `rule` at the start of `dfa` by a copy of `callee`, the automaton of that rule.
Status inline_first_call(Dfa& dfa, RuleId rule, const Dfa& callee, Budget& budget) {
  Nfa nfa;
  copy_states(dfa, nfa);
  uint32_t target = 0;
  std::erase_if(nfa.states[0].calls, [&](const CallEdge& call) {
    if (call.rule == rule) target = call.target;
    return call.rule == rule;
  });
  const uint32_t base = copy_states(callee, nfa);
  nfa.states[0].empties.push_back(base);
  for (size_t i = base; i < nfa.states.size(); ++i) {
    if (nfa.states[i].is_final) nfa.states[i].empties.push_back(target);
    nfa.states[i].is_final = false;
  }
  return replace_dfa(nfa, dfa, budget);
}

// A = A x | y becomes A = y x*.
Status repeat_instead(Dfa& dfa, RuleId rule, Budget& budget) {
  Nfa nfa;
  copy_states(dfa, nfa);
  uint32_t target = 0;
  std::erase_if(nfa.states[0].calls, [&](const CallEdge& call) {
    if (call.rule == rule) target = call.target;
    return call.rule == rule;
  });
  for (NfaState& state : nfa.states) {
    if (state.is_final) state.empties.push_back(target);
  }
  return replace_dfa(nfa, dfa, budget);
}

}  // namespace

Status remove_left_recursion(std::vector<Dfa>& rules, Budget& budget) {
  for (const std::vector<RuleId>& part : Components(rules).parts) {
    if (part.size() == 1 && !begins_with(rules[part[0]], part[0])) continue;
    for (size_t i = 0; i < part.size(); ++i) {
      Dfa& dfa = rules[part[i]];
      for (size_t j = 0; j < i; ++j) {
        if (begins_with(dfa, part[j])) MOTE_RETURN_IF_ERROR(inline_first_call(dfa, part[j], rules[part[j]], budget));
      }
      if (begins_with(dfa, part[i])) MOTE_RETURN_IF_ERROR(repeat_instead(dfa, part[i], budget));
    }
  }
  return {};
}

std::vector<RuleId> order_of_calls(const std::vector<Dfa>& rules) {
  std::vector<RuleId> order;
  for (const std::vector<RuleId>& part : Components(rules).parts) order.push_back(part[0]);
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace mote::constraints
