#include "runner/grammars/automaton.h"

#include <algorithm>

#include "runner/grammars/budget.h"
#include "runner/grammars/left_recursion.h"
#include "runner/grammars/nfa_builder.h"
#include "runner/grammars/reachable.h"

namespace mote::constraints {
namespace {

// Removes the empty text from a rule. Edges that led into its start lead to a copy of the start, which may be final.
void begin_anew(Dfa& dfa) {
  if (dfa.states.empty()) return;
  const auto enters = [](const auto& edge) { return edge.target == 0; };
  if (std::ranges::any_of(dfa.bytes, enters) || std::ranges::any_of(dfa.calls, enters)) {
    const auto moved = static_cast<uint32_t>(dfa.states.size());
    const DfaState start = dfa.states[0];
    dfa.states.push_back(start);
    for (ByteEdge& edge : dfa.bytes) edge.target = edge.target == 0 ? moved : edge.target;
    for (CallEdge& call : dfa.calls) call.target = call.target == 0 ? moved : call.target;
  }
  dfa.states[0].is_final = false;
}

// Finds the rules that match any text. A state behind a call is reached once the called rule is found, and waits for
// that.
class ProductiveRules {
 public:
  explicit ProductiveRules(const std::vector<Dfa>& dfas)
      : dfas_(dfas), begins_(dfas.size()), is_found_(dfas.size()), waiting_(dfas.size()) {
    size_t count = 0;
    for (size_t rule = 0; rule < dfas.size(); ++rule) {
      begins_[rule] = count;
      count += dfas[rule].states.size();
    }
    is_reached_.resize(count);
  }

  std::vector<bool> run() {
    for (RuleId rule = 0; rule < dfas_.size(); ++rule) {
      if (!dfas_[rule].states.empty()) reach({rule, 0});
    }
    while (!reached_.empty()) {
      const Place at = reached_.back();
      reached_.pop_back();
      const Dfa& dfa = dfas_[at.rule];
      const DfaState& state = dfa.states[at.state];
      if (state.is_final) find(at.rule);
      for (const ByteEdge& edge : dfa.bytes_of(state)) reach({at.rule, edge.target});
      for (const CallEdge& call : dfa.calls_of(state)) {
        if (is_found_[call.rule])
          reach({at.rule, call.target});
        else
          places_.push(waiting_[call.rule], {at.rule, call.target});
      }
    }
    return is_found_;
  }

 private:
  struct Place {
    RuleId rule;
    uint32_t state;
  };

  void reach(const Place& place) {
    const size_t index = begins_[place.rule] + place.state;
    if (is_reached_[index]) return;
    is_reached_[index] = true;
    reached_.push_back(place);
  }

  void find(RuleId rule) {
    if (is_found_[rule]) return;
    is_found_[rule] = true;
    places_.for_each(waiting_[rule], [&](const Place& place) { reach(place); });
  }

  const std::vector<Dfa>& dfas_;
  std::vector<size_t> begins_;
  std::vector<bool> is_reached_;
  std::vector<bool> is_found_;
  std::vector<Place> reached_;
  EdgeLists<Place> places_;
  std::vector<uint32_t> waiting_;  // lists of places
};

// Empties the rules that match no text, and removes from the others the states that no text leads through.
Status trim_all(std::vector<Dfa>& dfas, Determinizing& shared) {
  size_t size = dfas.size();
  for (const Dfa& dfa : dfas) size += dfa.states.size() + dfa.bytes.size() + dfa.calls.size();
  MOTE_RETURN_IF_ERROR(shared.budget.spend(size));
  const std::vector<bool> is_productive = ProductiveRules(dfas).run();
  size = 0;
  for (Dfa& dfa : dfas) {
    trim(dfa, is_productive);
    size += dfa.num_bytes();
  }
  shared.held.set(size);
  return shared.budget.status();
}

// The automata of all rules that the root leads to.
Result<std::vector<Dfa>> determinized(const Rules& rules, const std::vector<bool>& is_nullable, Determinizing& shared) {
  Building building(rules, shared);
  const std::vector<bool> is_reached = reachable_rules(rules);
  std::vector<Dfa> dfas(rules.num_rules());
  shared.held.add(dfas.size() * sizeof(Dfa));
  for (RuleId rule = 0; rule < dfas.size(); ++rule) {
    if (!is_reached[rule]) continue;
    const auto make = [&]() -> Status {
      MOTE_ASSIGN(const Nfa nfa, make_nfa(rule, is_nullable, building));
      MOTE_ASSIGN(dfas[rule], determinize(nfa, shared));
      return shared.budget.status();
    };
    if (const Status status = make(); !status.ok()) {
      const std::string where = rules.describe(rule);
      return where.empty() || status.code() == Code::kCancelled
                 ? status
                 : Status(status.code(), where + ": " + status.message());
    }
    begin_anew(dfas[rule]);
    shared.held.add(dfas[rule].num_bytes());
  }
  return dfas;
}

}  // namespace

Result<Automaton> Automaton::compile(const Rules& rules) {
  MOTE_REQUIRE(rules.num_rules() <= kMaxRules, Code::kInvalidArgument,
               "the grammar has %zu rules: at most %zu are accepted", rules.num_rules(), kMaxRules);
  MOTE_RETURN_IF_ERROR(rules.budget().status());
  Determinizing shared(rules.budget());
  const std::vector<bool> is_nullable = nullable_rules(rules);
  MOTE_ASSIGN(std::vector<Dfa> dfas, determinized(rules, is_nullable, shared));
  MOTE_RETURN_IF_ERROR(trim_all(dfas, shared));
  MOTE_RETURN_IF_ERROR(remove_left_recursion(dfas, shared));
  MOTE_RETURN_IF_ERROR(trim_all(dfas, shared));

  Automaton result;
  result.accepts_empty_ = is_nullable[0];
  if (dfas[0].states.empty()) {
    MOTE_REQUIRE(result.accepts_empty_, Code::kInvalidArgument, "no text can match the grammar");
    return result;
  }
  size_t num_states = 0;
  for (const Dfa& dfa : dfas) num_states += dfa.states.size();
  MOTE_REQUIRE(num_states <= kMaxStates, Code::kInvalidArgument,
               "the grammar is too large: %zu states, at most %zu are accepted", num_states, kMaxStates);
  std::vector<RuleId> place(dfas.size());
  for (const RuleId rule : order_of_calls(dfas)) {
    if (dfas[rule].states.empty()) continue;
    place[rule] = static_cast<RuleId>(result.starts_.size());
    result.starts_.push_back(static_cast<uint32_t>(result.states_.size()));
    const auto base = static_cast<uint32_t>(result.states_.size());
    const Dfa& dfa = dfas[rule];
    for (const DfaState& from : dfa.states) {
      result.states_.push_back({static_cast<uint32_t>(result.bytes_.size()), from.num_bytes,
                                static_cast<uint32_t>(result.calls_.size()), from.num_calls, from.is_final});
      for (const ByteEdge& edge : dfa.bytes_of(from))
        result.bytes_.push_back({edge.low, edge.high, edge.target + base});
      for (const CallEdge& call : dfa.calls_of(from)) result.calls_.push_back({call.rule, call.target + base});
    }
  }
  for (CallEdge& call : result.calls_) call.rule = place[call.rule];
  result.root_ = place[0];
  return result;
}

}  // namespace mote::constraints
