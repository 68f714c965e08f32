// Normalizer `Prepend`: a fixed text in front of every text that is not empty.
#pragma once

#include <string>

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Status apply(AlignedText& text) const override;

 private:
  std::string prefix_;
};

}  // namespace mote::tokenizer
