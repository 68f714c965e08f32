// Instructions of a file as lines for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace mote::cli {

using Json = nlohmann::ordered_json;

inline std::string integer(const Json& value) { return std::to_string(value.get<int64_t>()); }
// "4 mote.linear, aten.add": how many instructions there are of each op.
std::string ops_text(const Json& ops);

// Prints an instruction with the module that it is of, and under it the weights that it reads. about: the file;
// runner_width: of the column that says who runs it; 0: there is none
void print_instruction(const Json& about, const Json& instruction, size_t index, size_t runner_width);

}  // namespace mote::cli
