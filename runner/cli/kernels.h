// `--kernels` of run and inspect.
#pragma once

#include <string>

namespace mote::cli {

// Prints the kernels that were chosen for the file, or where `file` is empty every kernel of this build.
void print_kernels(const std::string& file);

}  // namespace mote::cli
