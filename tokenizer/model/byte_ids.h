// The ids of single bytes.
#pragma once

#include <array>

#include "base/status.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

// Ids of the 256 bytes, -1 where there is none. Errors: kInvalidTokenizer if the table has another size or an id that
// is too large.
Status read_byte_ids(const fb::Segment& segment, std::array<int32_t, 256>& ids);

}  // namespace mote::tokenizer
