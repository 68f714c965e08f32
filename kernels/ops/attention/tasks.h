// How attention over a cache is cut into tasks.
#pragma once

#include <span>

#include "kernels/op.h"
#include "kernels/ops/attention/kernel.h"

namespace mote {

enum AttentionInput : size_t { kQuery = 0, kKey, kValue, kPositions, kSinks, kSlopes };

struct AttentionParams {
  int64_t state = 0;
  int64_t window = 0;
  float scale = 1;
  float softcap = 0;
  const AttentionKernel* kernel = nullptr;
};

// Bytes of scratch that attend_all needs.
size_t attention_scratch_bytes(const Call& call, int num_threads);

// Appends k and v, if there are any, and writes the attention of all queries, those of a sequence over its own cache.
// Parallel regions: one in decode (one more for each 128 splits of 256 positions, fewer where many heads or tokens are
// wide), two in prefill; so many for each sequence where they are too few to keep the threads busy, else for all
// together.
void append_and_attend(const Call& call, const KernelContext& context);

}  // namespace mote
