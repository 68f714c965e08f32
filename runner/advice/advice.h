// What a file would do on this device.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "runner/program/source.h"
#include "runner/session/options.h"

namespace mote {

struct AdviceOptions {
  SessionOptions session{};
  int64_t prompt_tokens = 256;
  int64_t depth = 256;  // tokens before the one that is decoded
};

struct Advice {
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;
  int num_threads = 0;
  int64_t context_length = 0;
  uint64_t file_bytes = 0;     // pages of the file, which the system can drop
  uint64_t state_bytes = 0;    // caches when the context is full
  uint64_t working_bytes = 0;  // program, activations and what kernels pack
  uint64_t device_bytes = 0;   // memory of this device; 0: not known
};

// Runs the file's instructions on weights that stand in for its own (stand_in.h). Cost: a prompt and some tokens, but
// of a slow prompt a few seconds only, from which the rest is told. Errors: those of open_stand_in; kInvalidArgument
// naming the option.
Result<Advice> advise(const Source& beginning, const AdviceOptions& options);

}  // namespace mote
