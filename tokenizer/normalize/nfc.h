// Canonical composition (Unicode NFC).
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class Nfc final : public Normalizer {
 public:
  Result<std::string> normalize(std::string text) const override;
};

}  // namespace mote::tokenizer
