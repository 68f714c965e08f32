// The XNNPACK of the process: linked or found at run time, and asked to prove itself.
#pragma once

#include <string>

#include "backends/xnnpack/api.h"
#include "base/status.h"

namespace mote::xnnpack {

// The first call finds the functions and asks the library to prove that it computes what this backend expects; later
// ones return the same. It is never unloaded. Errors: kInvalidArgument naming the library and what it lacks. Thread
// safety: any thread.
Result<const Api*> library();

struct Functions {
  std::string library;  // for messages
  Api api;
};

// linked.cpp: those of the library that the build was linked with. search.cpp: of MOTE_XNNPACK_LIBRARY, or else of a
// library by one of its well-known names. Errors: kInvalidArgument naming the library and what it lacks.
Result<Functions> find_functions();

}  // namespace mote::xnnpack
