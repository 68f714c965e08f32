// Tokens that are found in text as they are spelled, before the model sees it.
// Source: tokenizers tokenizer/added_vocabulary.rs
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/segment/tables.h"
#include "tokenizer/text/aligned_text.h"

namespace mote {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

namespace tokenizer {

// Part of a text: an added token, or (id -1) what lies between.
struct Segment {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = -1;
};

struct AddedOptions {
  bool parse_special = true;           // false: the spelling of a special token is ordinary text
  std::span<const TextRange> plain{};  // ascending; what touches one of these ranges is ordinary text, special or not
};

// Finds the tokens of one kind: those looked for in the text as it is, or those looked for in normalised text.
class AddedTokens {
 public:
  AddedTokens() = default;
  // Errors: kInvalidTokenizer naming the entry whose id is too large.
  static Result<AddedTokens> make(const fb::Segment& segment, const fb::Trie* trie);

  bool empty() const { return trie_.empty(); }
  // Cuts `text` at the tokens; the longest that starts leftmost wins. An empty text has no segments.
  // `origins`: of the bytes of the text, if it was changed; ranges of `plain` count in the original.
  std::vector<Segment> split(std::string_view text, const AddedOptions& options, const AlignedText* origins) const;

 private:
  struct Flags {
    int32_t id = 0;
    bool special = false;
    bool single_word = false;
    bool lstrip = false;
    bool rstrip = false;
  };

  std::vector<Flags> tokens_;
  TrieView trie_;
  std::array<bool, 256> starts_{};  // bytes that some token starts with
};

}  // namespace tokenizer
}  // namespace mote
