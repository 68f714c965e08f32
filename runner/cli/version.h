#pragma once

#include <string>

namespace mote::cli {

// What `--version` prints: version, commit, and what the build can do.
std::string version_text();

}  // namespace mote::cli
