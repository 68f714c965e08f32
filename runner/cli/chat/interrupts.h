// Ctrl-C while a chat runs: it stops a reply or clears a line, and never ends the process.
#pragma once

#include "runner/capi/mote.h"

namespace mote::cli {

// From now on SIGINT is noted, and interrupts a read, for as long as this lives. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether there was one since the last `clear`.
  static bool happened();
  static void clear();
};

// While it lives, SIGINT also cancels the session's call.
class CancelReply {
 public:
  explicit CancelReply(mote_session* session);
  ~CancelReply();
  CancelReply(const CancelReply&) = delete;
  CancelReply& operator=(const CancelReply&) = delete;
};

}  // namespace mote::cli
