// Ctrl-C.
#pragma once

#include "runner/capi/mote.h"

namespace mote::cli {

// From now on SIGINT is noted, and ends a read, for as long as this lives. One at a time.
class Interrupts {
 public:
  enum class Second { kIsNoted, kEndsTheProcess };  // what comes of the second one

  explicit Interrupts(Second second);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether there was one since the last `clear`.
  static bool happened();
  static void clear();
};

// While it lives, a SIGINT that is noted also cancels the session's call.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(mote_session* session);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;
};

}  // namespace mote::cli
