// The methods of a bound target as a program of parts, for a backend that tries its own parts among the CPU's
// instructions.
#pragma once

#include <memory>

#include "runner/program/program.h"

namespace mote {

// Its delegates have a pool of threads of their own and keep `bound`. Errors of their calls: as Executor.
Result<WholeMethods> whole_methods(std::shared_ptr<const Bound> bound);

}  // namespace mote
