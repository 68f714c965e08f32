// Normalizer `ByteLevel`: every byte becomes the character that spells it.
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class ByteLevelNormalizer final : public Normalizer {
 public:
  Status apply(AlignedText& text) const override;
};

// The same for other parts that spell bytes.
void spell_bytes(AlignedText& text);

}  // namespace mote::tokenizer
