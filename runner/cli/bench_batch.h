// How fast sequences decode together.
#pragma once

#include <vector>

#include "runner/cli/option_flags.h"

namespace mote::cli {

struct BatchCase {
  int sequences = 1;
  int tokens = 0;  // that each generates
  int depth = 0;   // tokens in the context before
};

// Positions that a sequence of the case needs.
int positions_of(const BatchCase& test, int prefill_chunk);

// Seconds of the decode steps, after the prompts of all sequences, which start one after the other.
double time_batch(const BatchCase& test, const Model& model, const Options& options);

}  // namespace mote::cli
