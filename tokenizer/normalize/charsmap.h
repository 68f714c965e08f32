// The character map of a SentencePiece model: a double array of spellings and what they become.
// Source: sentencepiece normalizer.cc (precompiled_charsmap); darts-clone darts.h
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"

namespace mote::tokenizer {

// Does not own its bytes. Every access is checked, so that any bytes will do.
class Charsmap {
 public:
  Charsmap() = default;
  // Errors: kInvalidTokenizer if the sizes do not fit.
  static Result<Charsmap> open(std::span<const uint8_t> bytes);

  bool empty() const { return num_units_ == 0; }

  struct Found {
    size_t length = 0;  // bytes of the text
    std::string_view replacement;
  };
  // The shortest or longest spelling that `text` starts with.
  std::optional<Found> shortest_prefix(std::string_view text) const { return prefix(text, false); }
  std::optional<Found> longest_prefix(std::string_view text) const { return prefix(text, true); }

  // Walks the whole map. Errors: kInvalidTokenizer naming the unit that leads out of it or the replacement that is no
  // UTF-8.
  Status check() const;

 private:
  std::optional<Found> prefix(std::string_view text, bool longest) const;
  uint32_t unit(size_t index) const;
  std::string_view replacement_at(uint32_t value) const;
  Status check_replacement(size_t unit_index) const;

  const uint8_t* units_ = nullptr;  // four bytes each, not aligned
  size_t num_units_ = 0;
  std::string_view replacements_;  // each ends with a zero byte
};

}  // namespace mote::tokenizer
