// What the fuzz target of the reply parser does with an input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote::test {

// The first byte names the format, the second whether the prompt began the reasoning, the third how the text is cut;
// the rest is the reply. kInternal: the message depends on the pieces, the events do not add up to it, it is no JSON,
// or text was lost.
Status run_reply(std::string_view input);

// A reply with reasoning, content and calls in every format, as seeds.
const std::vector<std::string>& reply_seeds();
// Marks and parts of calls, to be put anywhere.
const std::vector<std::string>& reply_pieces();

}  // namespace mote::test
