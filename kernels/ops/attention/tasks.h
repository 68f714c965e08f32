// How attention over a cache is cut into tasks.
#pragma once

#include <span>

#include "kernels/op.h"
#include "kernels/ops/attention/kernel.h"

namespace mote {

enum AttentionInput : size_t { kQuery = 0, kKey, kValue, kPositions, kSinks, kSlopes, kChosen, kBias };

struct AttentionParams {
  int64_t state = 0;
  int64_t window = 0;
  float scale = 1;
  float softcap = 0;
  bool bidirectional = false;
  bool is_chunked = false;
  int64_t value_dim = 0;  // not 0: the values are so many first elements of the keys
  int64_t stride = 1;     // of the keys, those at the end of each `stride` positions are seen
  const AttentionKernel* kernel = nullptr;
};

// One head of keys and values in the pages of a cache.
KvHead head_of(const KvCache& cache, int64_t index);

// Bit i: slot i holds position first + i. positions: those of the block's 16 slots
inline uint32_t held_slots(const int64_t* positions, int64_t first) {
  int64_t other = 0;
  for (int64_t i = 0; i < kKvBlockSlots; ++i) other |= positions[i] ^ (first + i);
  if (other == 0) return 0xFFFF;
  uint32_t held = 0;
  for (int64_t i = 0; i < kKvBlockSlots; ++i) held |= static_cast<uint32_t>(positions[i] == first + i) << i;
  return held;
}

// Bit i: position first + i is the last of `stride` positions.
inline uint32_t ends_of_strides(int64_t first, int64_t stride) {
  uint32_t ends = 0;
  for (int64_t i = stride - 1 - first % stride; i < kKvBlockSlots; i += stride) ends |= 1u << i;
  return ends;
}

// Bytes of scratch that append_and_attend needs.
size_t attention_scratch_bytes(const Call& call, int num_threads);

// Appends k and v, if there are any, and writes the attention of all queries, those of a sequence over its own cache,
// and where there is a second output the logarithms of their softmaxes' divisors. Parallel regions: one, and one more
// to append unless each head's queries are one tile (decode). If tiles are too few for the threads, contexts are split:
// each sequence then has regions of its own, one for each 128 splits of 256 positions (fewer if heads or tokens are
// many or wide) and one to append to a ring.
void append_and_attend(const Call& call, const KernelContext& context);

}  // namespace mote
