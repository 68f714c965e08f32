// What Split and Replace look for: a literal text or a regular expression.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/pretokenize/regex.h"

namespace mote::tokenizer {

// Immutable.
class Pattern {
 public:
  // Errors: kInvalidTokenizer as Regex::compile.
  static Result<Pattern> make(std::string_view pattern, bool is_regex, RegexSyntax syntax = RegexSyntax::kOniguruma);

  // Cuts valid UTF-8 into matches and what lies between, in order and without gaps.
  // Errors: kInvalidArgument if a match takes too many steps.
  Result<std::vector<Span>> spans(std::string_view text) const;

 private:
  Pattern() = default;
  std::string literal_;
  std::optional<Regex> regex_;
};

}  // namespace mote::tokenizer
