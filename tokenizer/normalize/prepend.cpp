#include "tokenizer/normalize/prepend.h"

namespace mote::tokenizer {

Status Prepend::apply(AlignedText& text) const {
  text.prepend(prefix_);
  return {};
}

}  // namespace mote::tokenizer
