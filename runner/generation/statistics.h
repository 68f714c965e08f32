// What a generation cost.
#pragma once

#include <chrono>
#include <cstdint>

#include "runner/generation/speculation/options.h"

namespace mote {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of the whole process. Bytes; 0 where the system does not tell.
struct ProcessMemory {
  uint64_t peak_rss_bytes = 0;
  uint64_t peak_private_bytes = 0;      // anonymous memory: the largest seen by any call of process_memory
  uint64_t peak_file_backed_bytes = 0;  // pages of mapped files, which the system can drop: likewise
};

// Thread safety: any thread.
ProcessMemory process_memory();

struct Statistics {
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t forced_tokens = 0;  // of them, those that a grammar left no choice about and no model was run for
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;  // from the first token on: decode steps, sampling and text
  double time_to_first_token_seconds = 0.0;
  ProcessMemory memory;
  SpeculationStatistics speculation;
};

}  // namespace mote
