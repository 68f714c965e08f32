// The tokens of a text.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/text/aligned_text.h"

namespace mote {

struct Encoding {
  std::vector<int32_t> ids;
  // Of each id, where it was asked for: what it stands for in the text, in bytes or characters. {0, 0}: a token that
  // was put around the text.
  std::vector<tokenizer::Origin> offsets;
  // Of each id, where it was asked for: which text it belongs to, as the post-processor numbers them.
  std::vector<uint32_t> type_ids;
};

namespace tokenizer {

// An encoding on its way through the post-processors. `spaces`: of each id, where they are asked for, the white space
// that its text starts and ends with, in characters.
struct Spaces {
  uint32_t leading = 0;
  uint32_t trailing = 0;
};
struct EncodingPart {
  Encoding encoding;
  std::vector<Spaces> spaces;
};

}  // namespace tokenizer
}  // namespace mote
