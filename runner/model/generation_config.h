// generation_config.json of the checkpoint as the file has it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runner/model/json_tree.h"

namespace mote {

// Errors: kInvalidProgram if it is not a JSON object, or a very deep one.
Result<JsonTree> parse_generation_config(std::string_view json);

// The object as JSON, with eos_token_id as the list of these ids. Errors: the same.
Result<std::string> generation_config_with_eos(std::string_view json, std::span<const int32_t> eos_token_ids);

}  // namespace mote
