// Where a text stands in a grammar: the states that it may be in, each with what is to come after its rule.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runner/grammars/automaton.h"

namespace mote::constraints {

struct Stack;
using StackPointer = std::shared_ptr<const Stack>;

// Where a rule returns to.
struct Return {
  uint32_t state = 0;
  StackPointer rest;
};

// Everything that may follow a rule: returns by state, and whether the text may end. Immutable, shared.
struct Stack {
  std::vector<Return> returns;
  bool may_end = false;
  uint32_t depth = 0;
  uint64_t hash = 0;
};

struct Item {
  uint32_t state = 0;
  StackPointer stack;
};

// Cheap to copy: stacks are shared.
struct Configuration {
  std::vector<Item> items;  // at most one for each state
  size_t num_kernel = 0;    // of them in front: those that are not there by a call from another
  bool may_end = false;     // the text may end here
  bool exhausted = false;   // the grammar is too ambiguous to follow this text

  bool is_empty() const { return items.empty() && !may_end; }
};

StackPointer bottom();  // the text ends

// At the beginning of a text.
Configuration begin(const Automaton& automaton);
// In `state`, before any byte, with `stack` to come after its rule.
Configuration at_state(const Automaton& automaton, uint32_t state, const StackPointer& stack);
// After one byte more; empty if no text goes on so.
Configuration step(const Automaton& automaton, const Configuration& from, uint8_t byte);
// The only byte that a text can go on with, -1 if there are several, or it may end.
int only_byte(const Automaton& automaton, const Configuration& from);
// The state that one byte leads to; false: none.
bool find_edge(const Automaton& automaton, const State& state, uint8_t byte, uint32_t* target);

}  // namespace mote::constraints
