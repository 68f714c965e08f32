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

float key_element(const KvHead& head, int64_t slot, int64_t i) {
  const std::byte* block = head.key_block(slot / kKvBlockSlots);
  const int64_t s = slot % kKvBlockSlots;
  if (head.type == KvType::kFloat32) return reinterpret_cast<const float*>(block)[i * kKvBlockSlots + s];
  if (head.type == KvType::kFloat16)
    return float16_to_float32(reinterpret_cast<const uint16_t*>(block)[i * kKvBlockSlots + s]);
  const int64_t padded = (int64_t{head.head_dim} + 1) / 2 * 2;
  const auto* scales = reinterpret_cast<const float*>(block + padded * kKvBlockSlots);
  const int code = reinterpret_cast<const int8_t*>(block)[(i / 2 * kKvBlockSlots + s) * 2 + i % 2];
  return static_cast<float>(code) * scales[i / kKvGroup * kKvBlockSlots + s];
}

float value_element(const KvHead& head, int64_t slot, int64_t i) {
  const std::byte* block = head.value_block(slot / kKvBlockSlots);
  const int64_t s = slot % kKvBlockSlots, width = padded_width(head.value_head_dim);
  if (head.type == KvType::kFloat32) return reinterpret_cast<const float*>(block)[s * width + i];
  if (head.type == KvType::kFloat16) return float16_to_float32(reinterpret_cast<const uint16_t*>(block)[s * width + i]);
  const int64_t group = i / kKvGroup, columns = std::min<int64_t>(width - group * kKvGroup, kKvGroup);
  const std::byte* codes = block + group * kKvBlockSlots * (kKvGroup + 4);
  const auto* scales = reinterpret_cast<const float*>(codes + columns * kKvBlockSlots);
  const int code = reinterpret_cast<const int8_t*>(codes)[(s / 2 * columns + i % kKvGroup) * 2 + s % 2];
  return static_cast<float>(code) * scales[s];
}

void put_element(const CacheRows& rows, std::span<std::byte> to, int64_t index, float value) {
  if (rows.dtype == DType::kFloat16) {
    reinterpret_cast<uint16_t*>(to.data())[index] = float32_to_float16(value);
  } else {
    reinterpret_cast<float*>(to.data())[index] = value;
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

// Calls body(position, slot, count) for runs of positions whose slots are neighbours in one block.
template <typename Body>
void for_each_run(const KvCache& cache, int64_t first, int64_t end, const Body& body) {
  for (int64_t p = first; p < end;) {
    const int64_t slot = cache.slot_of(p);
    int64_t count = std::min(kKvBlockSlots - slot % kKvBlockSlots, end - p);
    if (cache.window != 0) count = 1;  // sinks and the ring have borders within blocks
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
  for_each_run(cache, first, end, [&](int64_t p, int64_t slot, int64_t count) {
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
  for_each_run(cache, first, end, [&](int64_t p, int64_t slot, int64_t count) {
    take_block(from, at, slot, count, keys + p * at.key_row, values + p * at.value_row);
  });
}

void load_others(const KvCache& cache, int64_t head, int64_t first, int64_t end, const CacheRows& rows) {
  const KvHead from = head_of(cache, head);
  const Places at(cache, head);
  for (int64_t p = first; p < end; ++p) {
    const int64_t slot = cache.slot_of(p);
    for (int64_t i = 0; i < cache.head_dim; ++i)
      put_element(rows, rows.keys, p * at.key_row + at.key + i, key_element(from, slot, i));
    for (int64_t i = 0; i < cache.value_head_dim; ++i)
      put_element(rows, rows.values, p * at.value_row + at.value + i, value_element(from, slot, i));
  }
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
    if (!is_same) return load_others(cache, head, first, end, rows);
    if (cache.type == KvType::kFloat16) return load_same<uint16_t>(cache, head, first, end, rows);
    load_same<float>(cache, head, first, end, rows);
  });
}

}  // namespace mote
