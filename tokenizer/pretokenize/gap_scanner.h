// Scanners for patterns that do not match everywhere: the stretch up to the next match is a piece of its own.
#pragma once

#include "tokenizer/pretokenize/scanner.h"

namespace mote::tokenizer {

class GapScanner : public Scanner {
 public:
  size_t end_of_piece(std::string_view text, size_t begin) const final;

 protected:
  // Where a match at `position` ends; `position` itself: none starts here.
  virtual size_t end_of_match(const ClassReader& text, size_t position) const = 0;
};

// \p{N}{1,3}, or \p{N} with at_most 1.
class DigitsScanner final : public GapScanner {
 public:
  explicit DigitsScanner(int at_most) : at_most_(at_most) {}

 protected:
  size_t end_of_match(const ClassReader& text, size_t position) const override;

 private:
  int at_most_;
};

// [0-9][0-9][0-9]: Falcon
class ThreeDigitsScanner final : public GapScanner {
 protected:
  size_t end_of_match(const ClassReader& text, size_t position) const override;
};

// Runs of U+4E00..U+9FA5 and U+3040..U+30FF: DeepSeek
class CjkScanner final : public GapScanner {
 protected:
  size_t end_of_match(const ClassReader& text, size_t position) const override;
};

// DeepSeek's words:
// [!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
class DeepSeekScanner final : public GapScanner {
 protected:
  size_t end_of_match(const ClassReader& text, size_t position) const override;
};

}  // namespace mote::tokenizer
