// Variables of chat templates on the command line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mote::cli {

// A value that is no JSON is a string.
nlohmann::ordered_json template_value(const std::string& text);
// --set NAME=VALUE pairs as an object. Errors: InputError.
nlohmann::ordered_json template_variables(const std::vector<std::string>& pairs);

}  // namespace mote::cli
