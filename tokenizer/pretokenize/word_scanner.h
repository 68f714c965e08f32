// The scanners for GPT-2's pattern and its descendants: words with what precedes them, numbers, runs of signs, white
// space.
#pragma once

#include "tokenizer/pretokenize/scanner.h"

namespace mote::tokenizer {

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
class Gpt2Scanner final : public Scanner {
 public:
  size_t end_of_piece(std::string_view text, size_t begin) const override;
};

struct WordOptions {
  enum class Contractions { kNone, kFirst, kSuffix };
  Contractions contractions = Contractions::kFirst;
  int max_digits = 3;
  bool marks_in_words = false;      // [\p{L}\p{M}]+ instead of \p{L}+
  bool slash_behind_signs = false;  // [\r\n/]* instead of [\r\n]*
  bool last_space_whole = false;    // \s++$ before all other white space
};

// (?i:'s|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
class WordScanner final : public Scanner {
 public:
  explicit WordScanner(const WordOptions& options) : options_(options) {}
  size_t end_of_piece(std::string_view text, size_t begin) const override;

 private:
  WordOptions options_;
};

// The same with words that end where an upper case letter follows a lower case one:
// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ and
// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
class CasedWordScanner final : public Scanner {
 public:
  explicit CasedWordScanner(const WordOptions& options) : options_(options) {}
  size_t end_of_piece(std::string_view text, size_t begin) const override;

 private:
  WordOptions options_;
};

}  // namespace mote::tokenizer
