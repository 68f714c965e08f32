// What a file is that is no .mote file, for whoever took it for one.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace mote {

// "it is a GGUF file: ...": what is known by its first bytes, and what to do about it.
std::string what_else(std::span<const std::byte> file);
// The status of a path that is no file, with what to do about it if it is a folder.
Status with_advice(const std::string& path, const Status& status);

}  // namespace mote
