// The checks that a compiled tokenizer passes when it is opened.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

// Checks that the bytes are a segment whose tables lie inside of them and belong together; what the tables say is
// checked when it is read. Errors: kInvalidTokenizer. Cost: O(components), not O(vocabulary)
Result<const fb::Segment*> verify_segment(std::span<const std::byte> bytes);

}  // namespace mote::tokenizer
