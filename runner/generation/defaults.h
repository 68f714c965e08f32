// What generation does where the caller says nothing: generation_config.json as options.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "runner/generation/sampling/options.h"
#include "runner/model/model.h"

namespace mote {

struct GenerationDefaults {
  SamplingOptions sampling;    // what the file leaves out has transformers' default: top_k 50, the rest off
  int64_t max_new_tokens = 0;  // 0: until the context is full
};

// Errors: kInvalidProgram if it is not a JSON object or a field has the wrong type.
Result<GenerationDefaults> read_generation_defaults(std::string_view json, std::span<const int32_t> eos_token_ids);

// Those of a model. Errors: the same, naming the file. Cost: the first call reads the JSON.
Result<std::shared_ptr<const GenerationDefaults>> generation_defaults(const Model& model);

}  // namespace mote
