#include "kernels/ops/attention/rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/ops/attention/tasks.h"
#include "kernels/support/float_bits.h"

namespace mote {
namespace {

// Positions that one task moves: whole blocks, whose slots no other task writes.
constexpr int64_t kTaskPositions = kKvPageSlots;

// Places of a head's elements in rows.
struct Places {
  int64_t key_row, value_row;  // elements from a position to the next
  int64_t key, value;          // of the head's first element

  Places(const KvCache& cache, int64_t head)
      : key_row(int64_t{cache.num_heads} * cache.head_dim),
        value_row(int64_t{cache.num_heads} * cache.value_head_dim),
        key(head * cache.head_dim),
        value(head * cache.value_head_dim) {}
};

// Slots [slot, slot + count) of one block get consecutive rows, whose elements are the cache's.
template <typename T>
void put_block(const KvHead& head, const Places& at, int64_t slot, int64_t count, const T* keys, const T* values) {
  T* key_block = reinterpret_cast<T*>(head.key_block(slot / kKvBlockSlots)) + slot % kKvBlockSlots;
  for (int64_t i = 0; i < head.head_dim; ++i) {
    for (int64_t s = 0; s < count; ++s) key_block[i * kKvBlockSlots + s] = keys[s * at.key_row + i];
  }
  const int64_t width = padded_width(head.value_head_dim);
  T* value_block = reinterpret_cast<T*>(head.value_block(slot / kKvBlockSlots)) + slot % kKvBlockSlots * width;
  for (int64_t s = 0; s < count; ++s) {
    std::memcpy(value_block + s * width, values + s * at.value_row,
                static_cast<size_t>(head.value_head_dim) * sizeof(T));
  }
}

template <typename T>
void take_block(const KvHead& head, const Places& at, int64_t slot, int64_t count, T* keys, T* values) {
  const T* key_block = reinterpret_cast<const T*>(head.key_block(slot / kKvBlockSlots)) + slot % kKvBlockSlots;
  for (int64_t s = 0; s < count; ++s) {
    for (int64_t i = 0; i < head.head_dim; ++i) keys[s * at.key_row + i] = key_block[i * kKvBlockSlots + s];
  }
  const int64_t width = padded_width(head.value_head_dim);
  const T* value_block =
      reinterpret_cast<const T*>(head.value_block(slot / kKvBlockSlots)) + slot % kKvBlockSlots * width;
  for (int64_t s = 0; s < count; ++s) {
    std::memcpy(values + s * at.value_row, value_block + s * width,
                static_cast<size_t>(head.value_head_dim) * sizeof(T));
  }
}

// Elements of a block's keys as floats, [head_dim, 16 slots].
void read_keys(const KvHead& head, const std::byte* block, float* to) {
  const int64_t width = head.head_dim;
  if (head.type != KvType::kInt8)
    return to_float32(block, head.type == KvType::kFloat16 ? DType::kFloat16 : DType::kFloat32, width * kKvBlockSlots,
                      to);
  const auto* scales = reinterpret_cast<const float*>(block + (width + 1) / 2 * 2 * kKvBlockSlots);
  const auto* codes = reinterpret_cast<const int8_t*>(block);
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t s = 0; s < kKvBlockSlots; ++s) {
      to[i * kKvBlockSlots + s] =
          static_cast<float>(codes[(i / 2 * kKvBlockSlots + s) * 2 + i % 2]) * scales[i / kKvGroup * kKvBlockSlots + s];
    }
  }
}

// Elements of one slot's value.
void read_value(const KvHead& head, const std::byte* block, int64_t slot, float* to) {
  const int64_t width = padded_width(head.value_head_dim), count = head.value_head_dim;
  if (head.type != KvType::kInt8) {
    const DType dtype = head.type == KvType::kFloat16 ? DType::kFloat16 : DType::kFloat32;
    return to_float32(block + slot * width * dtype_bytes(dtype), dtype, count, to);
  }
  for (int64_t first = 0; first < count; first += kKvGroup) {
    const int64_t columns = std::min<int64_t>(width - first, kKvGroup),
                  used = std::min<int64_t>(count - first, columns);
    const std::byte* group = block + first / kKvGroup * kKvBlockSlots * (kKvGroup + 4);
    const float scale = reinterpret_cast<const float*>(group + columns * kKvBlockSlots)[slot];
    const auto* codes = reinterpret_cast<const int8_t*>(group) + slot / 2 * columns * 2 + slot % 2;
    for (int64_t i = 0; i < used; ++i) to[first + i] = static_cast<float>(codes[2 * i]) * scale;
  }
}

bool has_same_elements(const KvCache& cache, const CacheRows& rows) {
  return (cache.type == KvType::kFloat32 && rows.dtype == DType::kFloat32) ||
         (cache.type == KvType::kFloat16 && rows.dtype == DType::kFloat16);
}

// Calls body(head, first, end) for parts of the positions in which no two share a block.
template <typename Body>
void for_each_part(const KvCache& cache, int64_t positions, ThreadPool& threads, const Body& body) {
  const int64_t parts = (positions + kTaskPositions - 1) / kTaskPositions;
  threads.parallel_for(parts * cache.num_heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task / cache.num_heads * kTaskPositions;
      body(task % cache.num_heads, first, std::min(first + kTaskPositions, positions));
    }
  });
}

// Calls body(position, slot, count) for runs of positions whose slots are neighbours in one block. may_join: of a ring
// too, whose runs have one position otherwise.
template <typename Body>
void for_each_run(const KvCache& cache, int64_t first, int64_t end, bool may_join, const Body& body) {
  for (int64_t p = first; p < end;) {
    const int64_t slot = cache.slot_of(p);
    const int64_t most = std::min(kKvBlockSlots - slot % kKvBlockSlots, end - p);
    int64_t count = cache.window == 0 ? most : 1;  // sinks and the ring have borders within blocks
    if (may_join) {
      while (count < most && cache.slot_of(p + count) == slot + count) ++count;
    }
    body(p, slot, count);
    p += count;
  }
}

// Positions of which a ring keeps others in their slots.
bool is_overwritten(const KvCache& cache, int64_t position, int64_t positions) {
  return cache.window != 0 && position >= cache.num_sinks &&
         position + KvCache::whole_blocks(cache.capacity - cache.num_sinks) < positions;
}

template <typename T>
void store_same(const KvCache& cache, int64_t head, int64_t first, int64_t end, int64_t positions,
                const CacheRows& rows) {
  const KvHead to = head_of(cache, head);
  const Places at(cache, head);
  const T* keys = reinterpret_cast<const T*>(rows.keys.data()) + at.key;
  const T* values = reinterpret_cast<const T*>(rows.values.data()) + at.value;
  for_each_run(cache, first, end, false, [&](int64_t p, int64_t slot, int64_t count) {
    if (is_overwritten(cache, p, positions)) return;
    put_block(to, at, slot, count, keys + p * at.key_row, values + p * at.value_row);
  });
}

void store_others(const KvCache& cache, int64_t head, int64_t first, int64_t end, int64_t positions,
                  const CacheRows& rows, const AttentionKernel& kernel) {
  const KvHead to = head_of(cache, head);
  const Places at(cache, head);
  const int64_t width = dtype_bytes(rows.dtype);
  std::vector<float> key(static_cast<size_t>(cache.head_dim)), value(static_cast<size_t>(cache.value_head_dim));
  for (int64_t p = first; p < end; ++p) {
    if (is_overwritten(cache, p, positions)) continue;
    to_float32(rows.keys.data() + (p * at.key_row + at.key) * width, rows.dtype, cache.head_dim, key.data());
    to_float32(rows.values.data() + (p * at.value_row + at.value) * width, rows.dtype, cache.value_head_dim,
               value.data());
    kernel.append(to, cache.slot_of(p), key.data(), value.data(), key.data(), value.data());
  }
}

template <typename T>
void load_same(const KvCache& cache, int64_t head, int64_t first, int64_t end, const CacheRows& rows) {
  const KvHead from = head_of(cache, head);
  const Places at(cache, head);
  T* keys = reinterpret_cast<T*>(rows.keys.data()) + at.key;
  T* values = reinterpret_cast<T*>(rows.values.data()) + at.value;
  for_each_run(cache, first, end, true, [&](int64_t p, int64_t slot, int64_t count) {
    take_block(from, at, slot, count, keys + p * at.key_row, values + p * at.value_row);
  });
}

// Elements [n] of type T, from floats.
void convert(const float* from, int64_t n, uint16_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = float32_to_float16(from[i]);
}
void convert(const float* from, int64_t n, float* to) { std::copy_n(from, n, to); }

// The same of a cache with other elements than the rows'.
template <typename T>
void load_others(const KvCache& cache, int64_t head, int64_t first, int64_t end, const CacheRows& rows) {
  const KvHead from = head_of(cache, head);
  const Places at(cache, head);
  T* keys = reinterpret_cast<T*>(rows.keys.data()) + at.key;
  T* values = reinterpret_cast<T*>(rows.values.data()) + at.value;
  const auto elements = static_cast<size_t>(cache.head_dim * kKvBlockSlots);
  std::vector<float> floats(std::max(elements, static_cast<size_t>(cache.value_head_dim)));
  std::vector<T> converted(elements);
  for_each_run(cache, first, end, true, [&](int64_t p, int64_t slot, int64_t count) {
    const int64_t block = slot / kKvBlockSlots, in_block = slot % kKvBlockSlots;
    read_keys(from, from.key_block(block), floats.data());
    convert(floats.data(), static_cast<int64_t>(elements), converted.data());
    for (int64_t s = 0; s < count; ++s) {
      T* key = keys + (p + s) * at.key_row;
      for (int64_t i = 0; i < cache.head_dim; ++i)
        key[i] = converted[static_cast<size_t>(i * kKvBlockSlots + in_block + s)];
      read_value(from, from.value_block(block), in_block + s, floats.data());
      convert(floats.data(), cache.value_head_dim, values + (p + s) * at.value_row);
    }
  });
}

}  // namespace

Status store_rows(const KvCache& cache, int64_t positions, const CacheRows& rows, ThreadPool& threads) {
  MOTE_ASSIGN(const AttentionKernel* kernel, select_functions<AttentionKernel>({}, 1));
  // Where a ring begins anew, tasks for different positions meet in one block.
  const bool is_same = has_same_elements(cache, rows);
  const auto store = [&](int64_t head, int64_t first, int64_t end) {
    if (!is_same) return store_others(cache, head, first, end, positions, rows, *kernel);
    if (cache.type == KvType::kFloat16) return store_same<uint16_t>(cache, head, first, end, positions, rows);
    store_same<float>(cache, head, first, end, positions, rows);
  };
  if (cache.window == 0) {
    for_each_part(cache, positions, threads, store);
  } else {
    threads.parallel_for(cache.num_heads, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t head = begin; head < end; ++head) store(head, 0, positions);
    });
  }
  for (int64_t p = 0; p < positions; ++p) {
    if (!is_overwritten(cache, p, positions)) cache.positions[cache.slot_of(p)] = p;
  }
  return {};
}

bool can_load_rows(const KvCache& cache, int64_t positions) {
  if (cache.type == KvType::kInt4) return false;
  for (int64_t p = 0; p < positions; ++p) {
    if (cache.positions[cache.slot_of(p)] != p) return false;
  }
  return true;
}

void load_rows(const KvCache& cache, int64_t positions, const CacheRows& rows, ThreadPool& threads) {
  const bool is_same = has_same_elements(cache, rows);
  for_each_part(cache, positions, threads, [&](int64_t head, int64_t first, int64_t end) {
    if (!is_same && rows.dtype == DType::kFloat16) return load_others<uint16_t>(cache, head, first, end, rows);
    if (!is_same) return load_others<float>(cache, head, first, end, rows);
    if (cache.type == KvType::kFloat16) return load_same<uint16_t>(cache, head, first, end, rows);
    load_same<float>(cache, head, first, end, rows);
  });
}

}  // namespace mote
