// Tokens that are found in text as they are spelled, before the model sees it.
// Source: tokenizers tokenizer/added_vocabulary.rs
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "tokenizer/json.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/normalize/normalizer.h"

namespace mote {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

}  // namespace mote

namespace mote::tokenizer {

inline constexpr size_t kMaxAddedTokenBytes = 1024;

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = false;   // is looked for in normalised text
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;
  bool single_word = false;  // only where no word character touches it
};

// Part of a text: an added token, or (id -1) what lies between.
struct Segment {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = -1;
};

// Strings to look for at once; the longest that starts leftmost wins.
class Trie {
 public:
  void insert(std::string_view text, size_t value);
  bool empty() const { return nodes_.size() == 1; }
  // The longest entry that `text` starts with; length 0: none.
  struct Found {
    size_t value = 0;
    size_t length = 0;
  };
  Found longest_prefix(std::string_view text) const;

 private:
  static constexpr size_t kNone = ~size_t{0};
  struct Node {
    size_t value = kNone;
  };
  std::vector<Node> nodes_{Node{}};
  std::unordered_map<uint64_t, size_t> edges_;  // node << 8 | byte -> node
};

class AddedTokens {
 public:
  // Reads the list `added_tokens`. `normalizer` (may be nullptr) is applied to the tokens that are `normalized`. A token
  // that the model's vocabulary has too keeps the id that it has there, whatever the list says.
  static Result<AddedTokens> make(const Field& field, const Normalizer* normalizer,
                                  const std::vector<VocabularyEntry>& vocabulary);

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  bool is_special(int32_t id) const { return special_.contains(id); }

  // Cuts `text` at the added tokens that are looked for in raw (or normalised) text. Without parse_special the
  // spelling of a special token is ordinary text, as it is where it touches one of `plain` (ascending).
  std::vector<Segment> split(std::string_view text, bool normalized, bool parse_special, std::span<const TextRange> plain) const;

 private:
  void take_ids(const std::vector<VocabularyEntry>& vocabulary);

  std::vector<AddedToken> tokens_;
  std::unordered_set<int32_t> special_;
  Trie raw_;
  Trie normalized_;
};

}  // namespace mote::tokenizer
