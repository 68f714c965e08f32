// Normalizer `Lowercase`.
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class Lowercase final : public Normalizer {
 public:
  Status apply(AlignedText& text) const override;
};

// The same without the class, for normalizers that lower case among other things.
void lowercase(AlignedText& text);

}  // namespace mote::tokenizer
