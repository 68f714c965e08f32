// Regular expressions: the part of Python's and ECMAScript's syntax that is regular. docs/constrained-output.md has the
// list.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

struct RegexOptions {
  bool searches = false;       // accepts any text that contains a match
  bool ignores_case = false;   // of ASCII letters
  bool dot_is_any = false;     // '.' is also a line feed
  const char* what = "regex";  // in errors
  // How one character of a set is written; empty: as UTF-8.
  std::function<ExpressionId(Rules&, std::vector<CodePointRange>)> encode{};
};

// One of the outermost alternatives, and whether other text may stand before or behind it.
struct RegexBranch {
  ExpressionId body = 0;
  bool is_open_before = false;
  bool is_open_behind = false;
};

// Adds the outermost alternatives of a regular expression to `rules`. `options`: searches, so that they may be open.
// Errors: those of append_regex.
Result<std::vector<RegexBranch>> append_regex_branches(std::string_view source, const RegexOptions& options,
                                                       Rules& rules);

// Adds a regular expression to `rules`. Errors: kInvalidArgument naming what is not supported and where.
Result<ExpressionId> append_regex(std::string_view source, const RegexOptions& options, Rules& rules);

Result<Rules> parse_regex(std::string_view source, WorkBudget& budget);

}  // namespace mote::constraints
