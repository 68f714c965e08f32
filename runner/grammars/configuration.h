// How far a text has come in a grammar: the states that it may be in, each with what must follow the rule of that
// state.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runner/grammars/automaton.h"

namespace mote::constraints {

struct Stack;
using StackPointer = std::shared_ptr<const Stack>;

// Where the text goes on after a rule: in a state of the rule that called it, and then as `rest` says.
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
  size_t num_kernel = 0;    // the first ones, which were reached by a byte and not by the call of a rule
  bool may_end = false;     // the text may end here
  bool exhausted = false;   // the grammar is too ambiguous to follow this text
  uint32_t work = 0;        // that it took to get here by the last byte

  bool is_empty() const { return items.empty() && !may_end; }
};

StackPointer bottom();  // the stack of the root rule, after which the text ends

// The configuration at the beginning of a text.
Configuration begin(const Automaton& automaton);
// The configuration in `state`, with `stack` for what follows its rule.
Configuration at_state(const Automaton& automaton, uint32_t state, const StackPointer& stack);
// The configuration after one byte more; empty if no text of the grammar goes on with it.
Configuration step(const Automaton& automaton, const Configuration& from, uint8_t byte);
// The only byte that the text can go on with; -1 if there are several, or if it may end.
int only_byte(const Automaton& automaton, const Configuration& from);
// Finds the state that one byte leads to. False: there is none.
bool find_edge(const Automaton& automaton, const State& state, uint8_t byte, uint32_t* target);

}  // namespace mote::constraints
