// Qualcomm's libQnnHtp.so, found and checked once a process.
#pragma once

#include <chrono>
#include <string>

#include "backends/qnn/api.h"
#include "base/status.h"

namespace mote::qnn {

// Opened once and never closed: the library does not survive being unloaded. Thread safety: immutable; the library says
// that handles may be used by any thread.
struct Library {
  Functions functions{};
  Handle backend = nullptr;
  Handle device = nullptr;
  std::string build;  // its version and the SoC: what was compiled with another one is not used
  // How long a call is waited for, and one that compiles.
  std::chrono::nanoseconds patience{}, patience_to_compile{};
};

// Errors: kUnsupportedBackend saying what is missing, or which versions would be accepted.
Result<const Library*> library();

// Success, or kInternal: what failed, the library's number for it, and what it logged last.
Status qnn_status(ErrorHandle error, const char* what);

}  // namespace mote::qnn
