// Strings of a flatbuffer that may be absent.
#pragma once

#include <string_view>

#include "segment_generated.h"

namespace mote::tokenizer {

inline std::string_view text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : text->string_view();
}

}  // namespace mote::tokenizer
