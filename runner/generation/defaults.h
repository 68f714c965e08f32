// What generation does where the caller says nothing: generation_config.json as options.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "runner/generation/generation_options.h"
#include "runner/model/model.h"

namespace mote {

// Every option of a generation that the file names, over default_values(). Errors: kInvalidProgram if it is not a JSON
// object or a field has a value that the option does not take.
Result<GenerationOptions> read_generation_defaults(std::string_view json, const Model* model = nullptr);

// Those of a model. Errors: the same, naming the file. Cost: the first call reads the JSON.
Result<std::shared_ptr<const GenerationOptions>> generation_defaults(const Model& model);

}  // namespace mote
