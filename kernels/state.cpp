#include "kernels/state.h"

namespace mote {

namespace {

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Bytes of a block's scales: a float32 for each slot and group.
int64_t scale_bytes(int64_t width) { return (width + kKvGroup - 1) / kKvGroup * kKvBlockSlots * 4; }

}  // namespace

int64_t kv_key_block_bytes(KvType type, int32_t head_dim) {
  const int64_t width = head_dim < 0 ? 0 : head_dim;
  switch (type) {
    case KvType::kFloat32: return width * kKvBlockSlots * 4;
    case KvType::kFloat16: return width * kKvBlockSlots * 2;
    case KvType::kInt8: return round_up(width, 2) * kKvBlockSlots + scale_bytes(width);
    case KvType::kInt4: return round_up(width, 4) * kKvBlockSlots / 2 + scale_bytes(width);
  }
  return 0;
}

int64_t kv_value_block_bytes(KvType type, int32_t value_head_dim) {
  const int64_t width = round_up(value_head_dim < 0 ? 0 : value_head_dim, 16);
  switch (type) {
    case KvType::kFloat32: return width * kKvBlockSlots * 4;
    case KvType::kFloat16: return width * kKvBlockSlots * 2;
    case KvType::kInt8: return width * kKvBlockSlots + scale_bytes(width);
    case KvType::kInt4: return width * kKvBlockSlots / 2 + scale_bytes(width);
  }
  return 0;
}

Size KvCache::page_bytes() const {
  const Size block_bytes = kv_key_block_bytes(type, head_dim) + kv_value_block_bytes(type, value_head_dim);
  return block_bytes * kKvPageBlocks * num_heads;
}

}  // namespace mote
