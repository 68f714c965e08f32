#include "runner/grammars/automaton.h"

#include <algorithm>

#include "runner/grammars/budget.h"
#include "runner/grammars/left_recursion.h"

namespace mote::constraints {
namespace {

std::vector<bool> reachable_rules(const std::vector<Nfa>& nfas) {
  std::vector<bool> is_reached(nfas.size());
  std::vector<RuleId> reached = {0};
  is_reached[0] = true;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const NfaState& state : nfas[reached[i]].states) {
      for (const CallEdge& call : state.calls) {
        if (!is_reached[call.rule]) reached.push_back(call.rule);
        is_reached[call.rule] = true;
      }
    }
  }
  return is_reached;
}

bool reaches_end_without_bytes(const Nfa& nfa, const std::vector<bool>& is_nullable) {
  std::vector<bool> is_reached(nfa.states.size());
  std::vector<uint32_t> reached = {nfa.start};
  is_reached[nfa.start] = true;
  const auto reach = [&](uint32_t state) {
    if (!is_reached[state]) reached.push_back(state);
    is_reached[state] = true;
  };
  for (size_t i = 0; i < reached.size(); ++i) {
    const NfaState& state = nfa.states[reached[i]];
    if (state.is_final) return true;
    for (const uint32_t next : state.empties) reach(next);
    for (const CallEdge& call : state.calls) {
      if (is_nullable[call.rule]) reach(call.target);
    }
  }
  return false;
}

// Finds the rules that match the empty text, by passes over all rules until nothing changes.
Result<std::vector<bool>> nullable_rules(const std::vector<Nfa>& nfas, Budget& budget) {
  std::vector<bool> is_nullable(nfas.size());
  size_t size = 0;
  for (const Nfa& nfa : nfas) size += nfa.states.size();
  for (bool changed = true; changed;) {
    changed = false;
    MOTE_RETURN_IF_ERROR(budget.spend_work(size / 4 + 1));
    for (RuleId rule = 0; rule < nfas.size(); ++rule) {
      if (is_nullable[rule] || nfas[rule].states.empty() || !reaches_end_without_bytes(nfas[rule], is_nullable))
        continue;
      is_nullable[rule] = changed = true;
    }
  }
  return is_nullable;
}

// Removes the empty text from a rule. Edges that led into its start lead to a copy of the start, which may be final.
void begin_anew(Dfa& dfa) {
  if (dfa.states.empty()) return;
  const bool is_entered = std::any_of(dfa.states.begin(), dfa.states.end(), [](const DfaState& state) {
    const auto enters = [](const auto& edge) { return edge.target == 0; };
    return std::any_of(state.bytes.begin(), state.bytes.end(), enters) ||
           std::any_of(state.calls.begin(), state.calls.end(), enters);
  });
  if (!is_entered) {
    dfa.states[0].is_final = false;
    return;
  }
  const auto moved = static_cast<uint32_t>(dfa.states.size());
  DfaState again = dfa.states[0];
  dfa.states.push_back(std::move(again));
  dfa.states[0].is_final = false;
  for (DfaState& state : dfa.states) {
    for (ByteEdge& edge : state.bytes) edge.target = edge.target == 0 ? moved : edge.target;
    for (CallEdge& call : state.calls) call.target = call.target == 0 ? moved : call.target;
  }
}

// Empties the rules that match no text, and removes from the others the states that no text leads through.
Status trim_all(std::vector<Dfa>& dfas, Budget& budget) {
  std::vector<bool> is_productive(dfas.size(), true);
  // A rule is found once it reaches an end through calls of found rules only, so the search starts with none.
  std::vector<bool> found(dfas.size(), false);
  size_t size = 0;
  for (const Dfa& dfa : dfas) size += dfa.states.size();
  for (bool changed = true; changed;) {
    changed = false;
    MOTE_RETURN_IF_ERROR(budget.spend_work(size / 4 + 1));
    for (RuleId rule = 0; rule < dfas.size(); ++rule) {
      if (found[rule] || dfas[rule].states.empty()) continue;
      std::vector<bool> is_reached(dfas[rule].states.size());
      std::vector<uint32_t> reached = {0};
      is_reached[0] = true;
      const auto reach = [&](uint32_t state) {
        if (!is_reached[state]) reached.push_back(state);
        is_reached[state] = true;
      };
      for (size_t i = 0; i < reached.size() && !found[rule]; ++i) {
        const DfaState& state = dfas[rule].states[reached[i]];
        if (state.is_final) found[rule] = changed = true;
        for (const ByteEdge& edge : state.bytes) reach(edge.target);
        for (const CallEdge& call : state.calls) {
          if (found[call.rule]) reach(call.target);
        }
      }
    }
  }
  is_productive = found;
  for (Dfa& dfa : dfas) trim(dfa, is_productive);
  return {};
}

}  // namespace

Result<Automaton> Automaton::compile(const Rules& rules) {
  MOTE_REQUIRE(rules.num_rules() <= kMaxRules, Code::kInvalidArgument,
               "the grammar has %zu rules: at most %zu are accepted", rules.num_rules(), kMaxRules);
  MOTE_REQUIRE(rules.num_expressions() <= kMaxExpressions, Code::kInvalidArgument,
               "the grammar has %zu parts: at most %zu are accepted", rules.num_expressions(), kMaxExpressions);
  Budget budget;
  std::vector<Nfa> nfas;
  for (RuleId rule = 0; rule < rules.num_rules(); ++rule) {
    MOTE_ASSIGN(Nfa nfa, make_nfa(rules, rule, budget));
    nfas.push_back(std::move(nfa));
  }
  const std::vector<bool> is_reached = reachable_rules(nfas);
  for (RuleId rule = 0; rule < nfas.size(); ++rule) {
    if (!is_reached[rule]) nfas[rule] = Nfa();
  }
  MOTE_ASSIGN(const std::vector<bool> is_nullable, nullable_rules(nfas, budget));
  std::vector<Dfa> dfas;
  for (Nfa& nfa : nfas) {
    for (NfaState& state : nfa.states) {
      for (const CallEdge& call : state.calls) {
        if (is_nullable[call.rule]) state.empties.push_back(call.target);
      }
    }
    MOTE_ASSIGN(Dfa dfa, determinize(nfa, budget));
    begin_anew(dfa);
    dfas.push_back(std::move(dfa));
    nfa = Nfa();
  }
  MOTE_RETURN_IF_ERROR(trim_all(dfas, budget));
  MOTE_RETURN_IF_ERROR(remove_left_recursion(dfas, budget));
  MOTE_RETURN_IF_ERROR(trim_all(dfas, budget));

  Automaton result;
  result.accepts_empty_ = is_nullable[0];
  if (dfas[0].states.empty()) {
    MOTE_REQUIRE(result.accepts_empty_, Code::kInvalidArgument, "no text can match the grammar");
    return result;
  }
  std::vector<RuleId> place(dfas.size());
  for (const RuleId rule : order_of_calls(dfas)) {
    if (dfas[rule].states.empty()) continue;
    place[rule] = static_cast<RuleId>(result.starts_.size());
    result.starts_.push_back(static_cast<uint32_t>(result.states_.size()));
    const auto base = static_cast<uint32_t>(result.states_.size());
    for (const DfaState& from : dfas[rule].states) {
      result.states_.push_back({static_cast<uint32_t>(result.bytes_.size()), static_cast<uint32_t>(from.bytes.size()),
                                static_cast<uint32_t>(result.calls_.size()), static_cast<uint32_t>(from.calls.size()),
                                from.is_final});
      for (const ByteEdge& edge : from.bytes) result.bytes_.push_back({edge.low, edge.high, edge.target + base});
      for (const CallEdge& call : from.calls) result.calls_.push_back({call.rule, call.target + base});
    }
  }
  for (CallEdge& call : result.calls_) call.rule = place[call.rule];
  result.root_ = place[0];
  return result;
}

}  // namespace mote::constraints
