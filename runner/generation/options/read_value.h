// JSON values to the types of options, and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/generation/options/option_table.h"

namespace mote {

// Errors of all: kInvalidArgument "top_k = \"many\": must be an integer, 0 or more".
Status wrong_value(const Option& option, const JsonTree& from);
Status read_value(const Option& option, const JsonTree& from, bool& to);
Status read_value(const Option& option, const JsonTree& from, int32_t& to);
Status read_value(const Option& option, const JsonTree& from, int64_t& to);
Status read_value(const Option& option, const JsonTree& from, uint64_t& to);
Status read_value(const Option& option, const JsonTree& from, float& to);
Status read_value(const Option& option, const JsonTree& from, double& to);
Status read_value(const Option& option, const JsonTree& from, std::string& to);
Status read_value(const Option& option, const JsonTree& from, std::optional<std::string>& to);
Status read_value(const Option& option, const JsonTree& from, std::vector<std::string>& to);
Status read_value(const Option& option, const JsonTree& from, std::vector<int32_t>& to);
// The place of the value among the option's choices; true, false and integers are choices of these names.
Result<size_t> read_choice(const Option& option, const JsonTree& from);

std::string json_of(bool value);
std::string json_of(int32_t value);
std::string json_of(int64_t value);
std::string json_of(uint64_t value);
std::string json_of(float value);
std::string json_of(double value);
std::string json_of(std::string_view value);
std::string json_of(const std::string& value);
std::string json_of(const std::optional<std::string>& value);
std::string json_of(const std::vector<std::string>& values);
std::string json_of(const std::vector<int32_t>& values);

}  // namespace mote
