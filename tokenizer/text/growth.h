// How long a tokenizer's own replacements may make a text.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace mote::tokenizer {

// The limit is far above what any real tokenizer needs. Without it, a file whose replacements feed each other could
// fill the memory from a few bytes.
constexpr size_t growth_limit(size_t bytes) { return 256 * bytes + (size_t{1} << 20); }

// Errors: kInvalidTokenizer.
inline Status check_growth(size_t bytes, size_t limit) {
  MOTE_REQUIRE(bytes <= limit, Code::kInvalidTokenizer,
               "the tokenizer's replacements make more than %zu bytes of the text: at most 256 times as many and 1 MiB "
               "are accepted",
               limit);
  return {};
}

}  // namespace mote::tokenizer
