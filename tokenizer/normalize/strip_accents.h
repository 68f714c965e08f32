// Normalizer `StripAccents`: combining marks go.
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class StripAccents final : public Normalizer {
 public:
  Status apply(AlignedText& text) const override;
};

}  // namespace mote::tokenizer
