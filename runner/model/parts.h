// Which parts of Mote (base/parts.h) a program file needs, for a build that has no others.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "runner/program/verified.h"

namespace mote {

// The parts that every target of the file takes together, sorted: ops by their names, the rest by those of
// cmake/MoteParts.cmake. Errors: kInvalidTokenizer.
Result<std::vector<std::string>> parts_of(const Verified& verified);

}  // namespace mote
