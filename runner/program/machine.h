// What this machine offers, whatever the model: its limits and the kernels that were chosen for it.
#pragma once

#include <string>

#include "base/status.h"
#include "kernels/machine/limits.h"

namespace mote {

// Measures what the machine can do at most. num_threads = 0: the physical cores. Errors: kInvalidArgument,
// kOutOfMemory. Cost: about a second.
Result<Limits> measure_machine(int num_threads);

// Every kernel of this build, and which ones this process has chosen so far, as a JSON object (runner/capi/mote.h has
// its form). Errors: kInvalidArgument if MOTE_CPU_FEATURES names no feature.
Result<std::string> describe_kernels();

}  // namespace mote
