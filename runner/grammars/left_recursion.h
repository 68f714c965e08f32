// Rewrites rules that begin with a call of themselves into rules that repeat.
#pragma once

#include <vector>

#include "runner/grammars/nfa.h"

namespace mote::constraints {

// Afterwards no rule can call itself before its first byte. The start of every rule has no edge into it and is not
// final. Errors: those of determinize. Source: Paull's algorithm, on automata
Status remove_left_recursion(std::vector<Dfa>& rules, Determinizing& shared);

// The rules in an order in which each comes before those that it can call before its first byte.
std::vector<RuleId> order_of_calls(const std::vector<Dfa>& rules);

}  // namespace mote::constraints
