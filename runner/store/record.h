// Where a file of the store came from, noted beside it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "runner/store/catalog.h"

namespace mote::store {

// What a caller knows of a file: an object with "repo", "revision", "commit", "file", "source", "license", each of
// which may be absent. Errors: kInvalidArgument.
Result<Manifest> parse_known(std::string_view json);

// Writes the manifest of a file that is new in the store: what `known` says, and what the file itself and the clock do;
// its hash too where that is "". Errors: kFileUnreadable, kFileUnwritable. Cost: reads the file where there is no hash
Status record(const std::string& path, Manifest known);

}  // namespace mote::store
