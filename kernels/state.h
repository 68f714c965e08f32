// Mutable state that ops read and write across calls: KV caches and recurrent states. Owned by a session.
#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace mote {

inline constexpr int kKvGroup = 32;  // elements that share a scale

enum class KvType : uint8_t { kFloat32 = 0, kFloat16, kInt8, kInt4 };

// One layer's cache. Row `slot` of head h starts at data + (slot * num_heads + h) * row_bytes.
// int8 and int4 rows are codes, padded with zero bytes to a multiple of 4, then one float32 scale for each 32 elements
// (symmetric: scale = max |x| / 127 or / 7, code = round(x / scale)). int4: byte i holds code + 8 of element 2i in its low
// nibble and of element 2i + 1 in its high nibble.
// window == 0: position p lies in slot p. window > 0: positions below num_sinks lie in their own slot, the others in
// num_sinks + (p - num_sinks) % (capacity - num_sinks); capacity >= num_sinks + window + the largest call's tokens - 1,
// so that a chunk never overwrites keys that its own first query still sees.
struct KvCache {
  void* keys = nullptr;
  void* values = nullptr;
  int64_t* positions = nullptr;  // [capacity], position held by a slot, -1 when empty
  KvType type = KvType::kFloat32;
  int32_t num_heads = 0;
  int32_t head_dim = 0;
  int32_t value_head_dim = 0;
  int32_t window = 0;
  int32_t num_sinks = 0;
  int64_t capacity = 0;

  int64_t slot_of(int64_t position) const {
    if (window == 0 || position < num_sinks) return position;
    return num_sinks + (position - num_sinks) % (capacity - num_sinks);
  }
};

// Bytes of one head's row of `width` elements: a multiple of 4 but for float16 of odd width.
int64_t kv_row_bytes(KvType type, int32_t width);

// A float32 tensor that a recurrent op updates in place.
struct RecurrentState {
  Tensor tensor;
};

}  // namespace mote
