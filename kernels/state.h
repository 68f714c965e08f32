// Mutable state that ops read and write across calls: KV caches and recurrent states. Owned by a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/size.h"
#include "kernels/tensor.h"

namespace mote {

inline constexpr int kKvGroup = 32;       // elements of a slot that share a scale
inline constexpr int kKvBlockSlots = 16;  // slots of a block
inline constexpr int kKvPageSlots = 256;  // slots of a page, whose memory is one piece
inline constexpr int kKvPageBlocks = kKvPageSlots / kKvBlockSlots;

enum class KvType : uint8_t { kFloat32 = 0, kFloat16, kInt8, kInt4 };

// One layer's cache. Slots lie in pages of 256, so that sessions can share pages and memory grows with the text. A page
// holds 16 blocks of 16 slots of each head: the keys of head h start at h * 16 * kv_key_block_bytes, and its values,
// behind the keys of all heads, at h * 16 * kv_value_block_bytes. int8 and int4 hold codes and float32 scales, one for
// each slot and 32 elements. int8: scale = max |x| / 127, code = round(x / scale). int4: the element that is furthest
// from 0 gets the code -8, so its scale has a sign, and rows whose width is a multiple of 16 are rotated first
// (docs/ops.md); other codes are at most 7. A block of keys is
//   float32, float16   [head_dim][16 slots]
//   int8               [head_dim / 2][16 slots][2], then scales [head_dim / 32][16 slots]
//   int4               [head_dim / 4][16 slots] of two bytes: codes + 8 of elements 4j and 4j + 1 in the low nibbles,
//                      of 4j + 2 and 4j + 3 in the high ones; then scales as for int8
// A block of values, its width W = value_head_dim rounded up to 16, is
//   float32, float16   [16 slots][W]
//   int8               for each 32 elements: [8 pairs of slots][32][2], then scales [16 slots]
//   int4               for each 32 elements: [4 quads of slots][32] of two bytes: codes + 8 of slots 4j and 4j + 1 in
//                      the low nibbles, of 4j + 2 and 4j + 3 in the high ones; then scales [16 slots]
// The last 32 of a block of values are 16 where W is no multiple of 32. Quotients are rounded up; the rest is padding.
// window == 0: position p lies in slot p, and with a stride s, which keeps the last of each s positions only, in slot
// p / s; `positions` then has the slot's number in place of p. window > 0: positions below num_sinks lie in their own
// slot, the others in a ring that starts at the next block; capacity >= num_sinks + window + the largest call's tokens
// - 1, so that a chunk never overwrites keys that its own first query still sees.
struct KvCache {
  // [num_pages()]; the cache's page i starts at pages[i] + page_offset. nullptr: no slot of it is held nor written.
  std::byte* const* pages = nullptr;
  int64_t page_offset = 0;  // bytes, a multiple of 64 as is each address
  int64_t* positions =
      nullptr;  // [num_slots()], position held by a slot, -1 when empty; caches of one shape may share it
  KvType type = KvType::kFloat32;
  int32_t num_heads = 0;
  int32_t head_dim = 0;
  int32_t value_head_dim = 0;
  int32_t window = 0;
  int32_t num_sinks = 0;
  int32_t stride = 1;  // 1 with a window
  int64_t capacity = 0;

  int64_t sink_slots() const { return window == 0 ? 0 : whole_blocks(num_sinks); }
  int64_t num_slots() const {
    return sink_slots() + whole_blocks(window == 0 ? (capacity + stride - 1) / stride : capacity - num_sinks);
  }
  int64_t slot_of(int64_t position) const {
    if (window == 0 || position < num_sinks) return position / stride;
    return sink_slots() + position % whole_blocks(capacity - num_sinks);
  }
  // How many of the first `count` positions are kept, without a window.
  int64_t num_kept(int64_t count) const { return count / stride; }
  int64_t num_pages() const { return (num_slots() + kKvPageSlots - 1) / kKvPageSlots; }
  Size page_bytes() const;
  static int64_t whole_blocks(int64_t slots) { return (slots + kKvBlockSlots - 1) / kKvBlockSlots * kKvBlockSlots; }
};

// Bytes of 16 slots of one head.
int64_t kv_key_block_bytes(KvType type, int32_t head_dim);
int64_t kv_value_block_bytes(KvType type, int32_t value_head_dim);

// A float32 tensor that a recurrent op updates, and what it needs to do so again.
struct RecurrentState {
  Tensor tensor;
  int64_t offset = 0;     // of its elements among those of all states, as copies of all of them lie
  float* rows = nullptr;  // [RecurrentCall::num_rows, row_floats], a ring: what the op made of the latest tokens
  int64_t row_floats = 0;
};

// The states after the first `tokens` of a call, which the ops write to `to`.
struct RecurrentCopy {
  int64_t tokens = 0;
  float* to = nullptr;
};

// How a call treats the recurrent states of a sequence, where it does more than move each on in place.
struct RecurrentCall {
  int64_t num_rows = 0;  // of the rings
  // Before the call's first token the states are read from here (nullptr: in place) and brought through rows.
  const float* source = nullptr;
  int64_t first_replayed = 0, num_replayed = 0;
  int64_t num_kept = 0;  // the first tokens of the call, which the states hold after it
  // The last tokens of the call, of which rows are written. At most num_rows.
  int64_t first_recorded = 0, num_recorded = 0;
  std::span<const RecurrentCopy> copies{};  // at most num_kept tokens each
};

class AdapterWeights;  // kernels/adapters.h

// An adapter as one sequence uses it.
struct AdapterUse {
  const AdapterWeights* adapter = nullptr;
  float weight = 1.0f;  // what it adds is multiplied by this
};

// Some consecutive tokens of a call that belong to one sequence, and that sequence's states. Both spans are indexed by
// state; an entry whose state is of the other kind is unused.
struct SequenceStates {
  int64_t tokens = 0;
  std::span<KvCache> kv_caches;
  std::span<RecurrentState> recurrent_states;
  std::span<const AdapterUse> adapters{};    // in the order in which they are added
  const RecurrentCall* recurrent = nullptr;  // nullptr: the states move on in place and nothing is recorded
  int64_t num_kept = -1;                     // of the tokens, those that stay after the call; -1: all
};

}  // namespace mote
