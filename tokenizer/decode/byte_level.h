// Decoder `ByteLevel`: ids back to bytes.
// Source: tokenizers pre_tokenizers/byte_level.rs (Decoder)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/json.h"

namespace mote::tokenizer {

// The bytes of every id, in one block. Immutable once filled.
class ByteLevelDecoder {
 public:
  // Errors: kInvalidTokenizer unless `field` is ByteLevel, or a Sequence of only that.
  static Status check(const Field& field);

  // `spelled[id]`: the token as the file spells it; "" for an id that no token has. A token outside the byte-level
  // alphabet (most added tokens) stands for itself.
  explicit ByteLevelDecoder(const std::vector<std::string>& spelled);

  int32_t num_ids() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  // The bytes of `id`, which need not be whole characters; empty for an id that no token has.
  std::string_view bytes(int32_t id) const;

 private:
  std::string block_;
  std::vector<uint32_t> offsets_;
};

}  // namespace mote::tokenizer
