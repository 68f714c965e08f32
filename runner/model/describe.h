// The file as JSON, for `mote inspect`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/program/target.h"

namespace mote {

// Everything there is to know about a file, as a JSON object.
// target: the one that runs here; empty: none works   passed_over: the others, and why
// found: see findings
// Errors: kInvalidProgram for the generation config, kInvalidTokenizer. Cost: O(program), and reads the tokenizer.
Result<std::string> describe(const Verified& verified, std::string_view target,
                             const std::vector<PassedOver>& passed_over, const std::vector<Finding>& found);

// The same for a file that perhaps works on other devices only. Errors: those of map and verify too.
Result<std::string> describe_file(const std::string& path);

}  // namespace mote
