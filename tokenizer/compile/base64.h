// Base64 as RFC 4648 has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mote::tokenizer {

// None if `text` is no base64. Padding may be absent.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace mote::tokenizer
