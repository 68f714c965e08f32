// Pre-tokenizer `FixedLength`: pieces of so many characters.
#pragma once

#include "tokenizer/pretokenize/pretokenizer.h"

namespace mote::tokenizer {

class FixedLength final : public Cutter {
 public:
  // length: characters, at least 1
  explicit FixedLength(uint32_t length) : length_(length) {}

 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;

 private:
  uint32_t length_;
};

}  // namespace mote::tokenizer
