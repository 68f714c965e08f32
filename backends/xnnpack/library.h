// The XNNPACK library that this process uses. It is linked, or found at run time, and tested before it is used.
#pragma once

#include <string>

#include "backends/xnnpack/api.h"
#include "base/status.h"

namespace mote::xnnpack {

// The first call finds the functions and tests that the library computes what this backend expects; later calls return
// what the first one did. It is never unloaded. Errors: kInvalidArgument naming the library and what it lacks. Thread
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
