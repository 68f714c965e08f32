// Normalizer `Strip`: white space at the ends goes.
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  Status apply(AlignedText& text) const override;

 private:
  bool left_;
  bool right_;
};

}  // namespace mote::tokenizer
