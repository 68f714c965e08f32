#include "tokenizer/normalize/prepend.h"

namespace mote::tokenizer {

Status Prepend::apply(AlignedText& text) const {
  if (prefix_.empty())
    text.forget_first_origin();
  else
    text.prepend(prefix_);
  return {};
}

}  // namespace mote::tokenizer
