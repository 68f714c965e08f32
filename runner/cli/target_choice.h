// Which of a file's targets runs, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runner/cli/handles.h"

namespace mote::cli {

using Json = nlohmann::ordered_json;

// What mote_model_describe tells of the model.
Json describe(const Model& model);

// Whether a described file was exported for more than the CPU.
bool has_backends(const Json& about);

// "runs on cpu; not on xnnpack: why"; empty for a file that was exported for the CPU alone.
std::string choice_text(const Json& about);

}  // namespace mote::cli
