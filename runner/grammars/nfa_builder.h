// Automata of rules, as they are written.
#pragma once

#include <unordered_map>
#include <vector>

#include "runner/grammars/nfa.h"

namespace mote::constraints {

// Edges between the bytes of one character; state 0 is before it, state 1 behind.
struct CharacterGraph {
  struct Edge {
    uint32_t from;
    uint32_t to;
    uint8_t low;
    uint8_t high;
  };
  uint32_t num_states = 2;
  std::vector<Edge> edges{};
};

// Graphs of sets of characters, which come again and again. Keeps the last ones.
class CharacterGraphs {
 public:
  const CharacterGraph& of(const std::vector<CodePointRange>& ranges, WorkBudget& budget);

 private:
  struct Hash {
    size_t operator()(const std::vector<CodePointRange>& ranges) const;
  };
  std::unordered_map<std::vector<CodePointRange>, CharacterGraph, Hash> known_;
};

// What making the automata of all rules of a grammar shares.
struct Building {
  Building(const Rules& r, Determinizing& d) : rules(r), determinizing(d) {}

  const Rules& rules;
  Determinizing& determinizing;
  CharacterGraphs characters{};
};

// Calls of rules in `is_nullable` may also be left out. Errors: kInvalidArgument if the budget is spent or an
// intersection has recursion.
Result<Nfa> make_nfa(RuleId rule, const std::vector<bool>& is_nullable, Building& building);

}  // namespace mote::constraints
