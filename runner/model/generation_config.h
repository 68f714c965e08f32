// The checkpoint's generation_config.json, which a .mote file carries unchanged.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace mote {

// Parses it. Errors: kInvalidProgram if it is not a JSON object, or nests too deeply.
Result<JsonTree> parse_generation_config(std::string_view json);

// The object as JSON, with eos_token_id as the list of these ids. Errors: the same.
Result<std::string> generation_config_with_eos(std::string_view json, std::span<const int32_t> eos_token_ids);

}  // namespace mote
