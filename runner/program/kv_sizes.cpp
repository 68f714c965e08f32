#include "runner/program/kv_sizes.h"

namespace mote {

int64_t kv_capacity(const fb::State& state, int64_t context_length, int64_t prefill_chunk) {
  if (state.window() == 0) return context_length;
  return int64_t{state.num_sink_positions()} + state.window() + prefill_chunk - 1;
}

Size kv_position_bytes(const fb::State& state, KvType type) {
  const int64_t block_bytes =
      kv_key_block_bytes(type, state.head_dim()) + kv_value_block_bytes(type, state.value_head_dim());
  return block_bytes / kKvBlockSlots * state.num_heads() / state.stride();
}

}  // namespace mote
