// generation_config.json of the checkpoint: what generation does where the caller says nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runner/llm/sampling/options.h"

namespace mote {

struct GenerationConfig {
  SamplingOptions sampling;  // what the file leaves out has transformers' default: top_k 50, the rest off
  int64_t max_new_tokens = 0;  // 0: until the context is full
  std::string json;            // the file, with eos_token_id always a list
};

// Errors: kInvalidProgram if it is not a JSON object or a field has the wrong type.
Result<GenerationConfig> parse_generation_config(std::string_view json, std::span<const int32_t> eos_token_ids);

}  // namespace mote
