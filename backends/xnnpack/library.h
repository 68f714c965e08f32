// Finds XNNPACK at run time. One library a process, never unloaded.
#pragma once

#include "backends/xnnpack/api.h"
#include "base/status.h"

namespace mote::xnnpack {

// Loads MOTE_XNNPACK_LIBRARY, or else a library by one of its well-known names, looks up every function and asks it to
// prove that it computes what this backend expects. The first call decides; later ones return the same.
// Errors: kInvalidArgument naming the library and what it lacks. Thread safety: any thread.
Result<const Api*> library();

}  // namespace mote::xnnpack
