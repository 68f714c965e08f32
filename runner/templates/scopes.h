// Gives every variable of a program its place, by the rules by which Jinja2 turns variables into those of Python
// functions. Source: jinja2 idtracking.py, compiler.py
#pragma once

#include "runner/templates/ast.h"

namespace mote::jinja {

// Errors: throws Error with Jinja2's message for what it refuses when it compiles: filters and tests that do not exist,
// assignments to `loop`, break and continue outside of loops.
void resolve_scopes(Program& program);

}  // namespace mote::jinja
