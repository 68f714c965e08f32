// Tokens to a Program. Source: jinja2 parser.py
#pragma once

#include "runner/templates/ast.h"
#include "runner/templates/lexer.h"

namespace mote::jinja {

// The program points into `tokens`. Errors: throws Error with Jinja2's message, or when the source nests deeper than
// kMaxSourceNesting.
Program parse(const Tokens& tokens);

}  // namespace mote::jinja
