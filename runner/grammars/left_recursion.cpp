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
      if (!dfa.states.empty() && visits_.back().next_call < dfa.states[0].num_calls) {
        const RuleId callee = dfa.calls_of(dfa.states[0])[visits_.back().next_call++].rule;
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
  return std::ranges::any_of(dfa.calls_of(dfa.states[0]), [rule](const CallEdge& call) { return call.rule == rule; });
}

// An automaton, in which a call at its start gives place to something else.
class Rewriting {
 public:
  Rewriting(const Dfa& dfa, RuleId removed, WorkBudget& budget) : held_(budget), budget_(budget) {
    append(dfa, removed);
  }

  // The rule with `removed` repeated behind it: A = A x | y becomes A = y x*.
  Result<Nfa> with_repetition() {
    MOTE_RETURN_IF_ERROR(budget_.status());
    for (uint32_t i = 0; i < nfa_.num_states(); ++i) {
      if (nfa_.is_final(i)) nfa_.add_empty(i, behind_);
    }
    return std::move(nfa_);
  }

  // The rule with the automaton of `removed` in the place of its call.
  Result<Nfa> with(const Dfa& callee) {
    const auto base = static_cast<uint32_t>(nfa_.num_states());
    append(callee, kUnseen);
    MOTE_RETURN_IF_ERROR(budget_.status());
    nfa_.add_empty(0, base);
    return std::move(nfa_);
  }

 private:
  // Appends a copy. What ends in a second one goes on behind the call that was removed from the first.
  void append(const Dfa& dfa, RuleId removed) {
    const auto base = static_cast<uint32_t>(nfa_.num_states());
    budget_.count(dfa.states.size() + dfa.bytes.size() + dfa.calls.size());
    held_.add((dfa.states.size() + dfa.bytes.size() + dfa.calls.size()) * 2 * sizeof(DfaState));
    if (budget_.is_spent()) return;
    for (size_t i = 0; i < dfa.states.size(); ++i) nfa_.add_state();
    for (uint32_t i = 0; i < dfa.states.size(); ++i) {
      const DfaState& state = dfa.states[i];
      for (const ByteEdge& edge : dfa.bytes_of(state))
        nfa_.add_bytes(base + i, edge.low, edge.high, base + edge.target);
      for (const CallEdge& call : dfa.calls_of(state)) {
        if (i == 0 && call.rule == removed)
          behind_ = call.target;
        else
          nfa_.add_call(base + i, call.rule, base + call.target);
      }
      if (!state.is_final) continue;
      if (base == 0)
        nfa_.set_final(i);
      else
        nfa_.add_empty(base + i, behind_);
    }
  }

  HeldBytes held_;
  WorkBudget& budget_;
  Nfa nfa_;
  uint32_t behind_ = 0;  // the call that was removed
};

// Of the rules that `dfa` calls at its start, the first in the order of `places` that comes before `end`.
uint32_t first_called(const Dfa& dfa, const std::vector<uint32_t>& places, uint32_t end, uint32_t from) {
  uint32_t first = end;
  if (dfa.states.empty()) return first;
  for (const CallEdge& call : dfa.calls_of(dfa.states[0])) {
    const uint32_t place = places[call.rule];
    if (place >= from && place < first) first = place;
  }
  return first;
}

// Rules that all begin with each other, directly or not.
Status rewrite(const std::vector<RuleId>& part, std::vector<uint32_t>& places, std::vector<Dfa>& rules,
               Determinizing& shared) {
  for (uint32_t i = 0; i < part.size(); ++i) places[part[i]] = i;
  for (uint32_t i = 0; i < part.size(); ++i) {
    Dfa& dfa = rules[part[i]];
    for (uint32_t j = first_called(dfa, places, i, 0); j < i; j = first_called(dfa, places, i, j + 1)) {
      MOTE_RETURN_IF_ERROR(shared.budget.spend(1 + dfa.states[0].num_calls));
      MOTE_ASSIGN(const Nfa nfa, Rewriting(dfa, part[j], shared.budget).with(rules[part[j]]));
      MOTE_ASSIGN(dfa, determinize(nfa, shared));
    }
    if (!begins_with(dfa, part[i])) continue;
    MOTE_ASSIGN(const Nfa nfa, Rewriting(dfa, part[i], shared.budget).with_repetition());
    MOTE_ASSIGN(dfa, determinize(nfa, shared));
  }
  for (const RuleId rule : part) places[rule] = kUnseen;
  return {};
}

}  // namespace

Status remove_left_recursion(std::vector<Dfa>& rules, Determinizing& shared) {
  MOTE_RETURN_IF_ERROR(shared.budget.spend(rules.size()));
  std::vector<uint32_t> places(rules.size(), kUnseen);  // of the rules of a part, in it
  for (const std::vector<RuleId>& part : Components(rules).parts) {
    if (part.size() == 1 && !begins_with(rules[part[0]], part[0])) continue;
    MOTE_RETURN_IF_ERROR(rewrite(part, places, rules, shared));
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
