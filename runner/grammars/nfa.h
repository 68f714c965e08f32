// Automata of one rule while a grammar is compiled: edges are bytes or calls of rules.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

struct ByteEdge {
  uint8_t low = 0;
  uint8_t high = 0;  // included
  uint32_t target = 0;
};

struct CallEdge {
  RuleId rule = 0;
  uint32_t target = 0;
};

struct NfaState {
  std::vector<ByteEdge> bytes;
  std::vector<CallEdge> calls;
  std::vector<uint32_t> empties;
  bool is_final = false;
};

struct Nfa {
  std::vector<NfaState> states;
  uint32_t start = 0;

  uint32_t add_state();
};

// `bytes` are ascending and disjoint; `calls` are ascending by rule, at most one for each rule.
struct DfaState {
  std::vector<ByteEdge> bytes;
  std::vector<CallEdge> calls;
  bool is_final = false;
};

// State 0 is the start. Without states there is no text at all.
struct Dfa {
  std::vector<DfaState> states;
};

// What compiling may still cost, shared by all rules of a grammar.
class Budget {
 public:
  // Errors: kInvalidArgument.
  Status spend_nfa_states(size_t count);
  Status spend_states(size_t count);
  Status spend_work(size_t count);

 private:
  size_t nfa_states_ = 0;
  size_t states_ = 0;
  size_t work_ = 0;
};

// Errors: kInvalidArgument if the budget is spent or an intersection has recursion.
Result<Nfa> make_nfa(const Rules& rules, RuleId rule, Budget& budget);
Result<Dfa> determinize(const Nfa& nfa, Budget& budget);
// Removes the states that no text leads through. `is_productive`: which rules match any text; unused without calls.
void trim(Dfa& dfa, const std::vector<bool>& is_productive);

}  // namespace mote::constraints
