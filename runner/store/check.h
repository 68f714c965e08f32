// What can be said of a .mote file before all of it has come, and when it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace mote::store {

// Whether this build and this device can run a file of which the header and the program have come.
// name: for messages   first_bytes: up to the program's end   file_bytes: of the whole file
// Errors: those of map and verify; where the file can be run in none of its ways for want of a backend or an op, what
// bind says of that. What only the rest of the file can tell, such as whether a backend takes what it was lowered to,
// is no error here. Cost: O(program)
Status check_program(const std::string& name, std::span<const std::byte> first_bytes, int64_t file_bytes);

// Whether all of the file is what its own checksums say. Errors: those of map, verify and check_segments.
Status check_contents(const std::string& path);

}  // namespace mote::store
