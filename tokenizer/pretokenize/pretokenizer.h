// Splits normalised text into the pieces that the model merges on its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/json.h"

namespace mote::tokenizer {

class Pretokenizer {
 public:
  virtual ~Pretokenizer() = default;
  // Appends the non-empty pieces of `text` (UTF-8, not empty) to `pieces`.
  virtual Status split(std::string text, std::vector<std::string>& pieces) const = 0;
};

// The chain of pre-tokenizers that `field` describes. Supported: ByteLevel, which comes last, and Split before it.
// The pieces hold raw bytes: spelling them in the byte-level alphabet is left to the model, which undoes it.
Result<std::vector<std::unique_ptr<Pretokenizer>>> make_pretokenizers(const Field& field);

}  // namespace mote::tokenizer
