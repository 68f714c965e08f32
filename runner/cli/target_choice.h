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

// Where a session runs: "cpu", and behind a comma why, where it left another backend by itself.
std::string place_text(const Session& session);

// "moved to cpu: why"; empty for a session that has left no backend by itself.
std::string moved_text(const Session& session);

// For what is said of a backend. Errors: InputError if the session left it by itself.
void require_unmoved(const Session& session);

}  // namespace mote::cli
