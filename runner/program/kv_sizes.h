// How much memory the keys and values of a state take.
#pragma once

#include <cstdint>

#include "base/size.h"
#include "kernels/state.h"
#include "runner/program/program.h"

namespace mote {

// The number of positions that a KV cache holds: the whole context, or for a layer with a window its sinks and a ring.
int64_t kv_capacity(const fb::State& state, int64_t context_length, int64_t prefill_chunk);
// Bytes of keys and values for one position, of a cache with a stride on average.
Size kv_position_bytes(const fb::State& state, KvType type);

}  // namespace mote
