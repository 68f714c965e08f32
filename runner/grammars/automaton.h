// A compiled grammar: one deterministic automaton for each rule. Edges are bytes or calls of rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runner/grammars/nfa.h"

namespace mote::constraints {

struct State {
  uint32_t first_byte = 0;  // into the list of byte edges
  uint32_t num_bytes = 0;
  uint32_t first_call = 0;
  uint32_t num_calls = 0;
  bool is_final = false;

  bool is_tail() const { return is_final && num_bytes == 0 && num_calls == 0; }
};

// Every rule takes at least one byte. An end can be reached from every state. No rule can call itself before its first
// byte, directly or through others, so rules are numbered such that a rule that begins with a call of another has the
// lower number. Immutable.
class Automaton {
 public:
  // Draws on the budget of the rules. Errors: kInvalidArgument if nothing can match or the grammar is too large,
  // kCancelled.
  static Result<Automaton> compile(const Rules& rules);

  const State& state(uint32_t index) const { return states_[index]; }
  size_t num_states() const { return states_.size(); }
  std::span<const ByteEdge> bytes(const State& state) const {
    return {bytes_.data() + state.first_byte, state.num_bytes};
  }
  std::span<const CallEdge> calls(const State& state) const {
    return {calls_.data() + state.first_call, state.num_calls};
  }

  // The state in which a rule starts.
  uint32_t rule_start(RuleId rule) const { return starts_[rule]; }
  RuleId root() const { return root_; }
  bool has_texts() const { return !starts_.empty(); }  // whether any text but the empty one matches
  bool accepts_empty() const { return accepts_empty_; }
  size_t num_bytes() const {
    return states_.capacity() * sizeof(State) + bytes_.capacity() * sizeof(ByteEdge) +
           calls_.capacity() * sizeof(CallEdge) + starts_.capacity() * sizeof(uint32_t);
  }

 private:
  std::vector<State> states_;
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::vector<uint32_t> starts_;
  RuleId root_ = 0;
  bool accepts_empty_ = false;
};

}  // namespace mote::constraints
