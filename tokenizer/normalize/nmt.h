// Normalizer `Nmt`: control characters go, odd spaces become spaces.
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class Nmt final : public Normalizer {
 public:
  Status apply(AlignedText& text) const override;
};

}  // namespace mote::tokenizer
