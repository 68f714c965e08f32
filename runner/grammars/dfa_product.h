// Operations on the texts of two deterministic automata that call no rules.
#pragma once

#include "runner/grammars/nfa.h"

namespace mote::constraints {

// Errors: those of determinize.
Result<Dfa> intersect(const Dfa& a, const Dfa& b, Determinizing& shared);
// The texts of `a` that are not texts of `b`.
Result<Dfa> subtract(const Dfa& a, const Dfa& b, Determinizing& shared);

}  // namespace mote::constraints
