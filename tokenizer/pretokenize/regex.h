// Regular expressions of tokenizer.json (Oniguruma's syntax) and of tiktoken on PCRE2, with limits on time and memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote::tokenizer {

// Whose syntax a pattern is in: that of Oniguruma for Ruby, or of Rust's fancy-regex.
enum class RegexSyntax { kOniguruma, kFancy };

// A stretch of the text: what one match took, or what lies between matches.
struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool is_match = false;
};

// Thread safety: `spans` may be called from any number of threads.
class Regex {
 public:
  // Errors: kInvalidTokenizer if the pattern does not compile or uses syntax that PCRE2 reads differently.
  static Result<Regex> compile(std::string_view pattern, RegexSyntax syntax = RegexSyntax::kOniguruma);
  // Errors: kInvalidTokenizer if the pattern gives up on one of some short texts that make patterns backtrack.
  Status check_backtracking() const;
  // Cuts valid UTF-8 into matches and what lies between, in order and without gaps.
  // Errors: kInvalidArgument if a match takes too many steps.
  Result<std::vector<Span>> spans(std::string_view text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  static Result<Regex> compile_translated(const std::string& pattern);

  std::shared_ptr<const Compiled> compiled_;
};

inline constexpr size_t kMaxTranslatedBytes = 1 << 18;  // what a pattern may become

// `pattern` as PCRE2 must be given it so that it means what it means in its own syntax.
Result<std::string> translate_to_pcre2(std::string_view pattern, RegexSyntax syntax);

}  // namespace mote::tokenizer
