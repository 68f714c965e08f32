#include "runner/session/state/carry.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/memory.h"
#include "kernels/ops/attention/rows.h"

namespace mote {
namespace {

// The rows of one cache on their way.
class Rows {
 public:
  // False: there is no memory.
  bool reserve(const fb::State& state, int64_t positions, DType dtype) {
    const int64_t width = positions * state.num_heads() * dtype_bytes(dtype);
    key_bytes_ = static_cast<size_t>(width * state.head_dim());
    value_bytes_ = static_cast<size_t>(width * state.value_head_dim());
    dtype_ = dtype;
    if (key_bytes_ + value_bytes_ <= bytes_) return true;
    memory_.reset();
    bytes_ = key_bytes_ + value_bytes_;
    memory_ = allocate_aligned(bytes_);
    return memory_ != nullptr;
  }
  CacheRows rows() const { return {dtype_, {memory_.get(), key_bytes_}, {memory_.get() + key_bytes_, value_bytes_}}; }

  // Of a cache with a `stride`, the first rows are those of its slots; delegates keep one for each position, and read
  // those that end a block.
  void spread(int64_t positions, int64_t stride) const {
    for_both(
        [&](std::byte* first, size_t width) {
          for (int64_t p = positions - 1; p >= 0; --p) {
            std::byte* to = first + static_cast<size_t>(p) * width;
            if ((p + 1) % stride == 0)
              std::memmove(to, first + static_cast<size_t>((p + 1) / stride - 1) * width, width);
            if ((p + 1) % stride != 0) std::memset(to, 0, width);
          }
        },
        positions);
  }
  void gather(int64_t positions, int64_t stride) const {
    for_both(
        [&](std::byte* first, size_t width) {
          for (int64_t i = 0; i < positions / stride; ++i)
            std::memmove(first + static_cast<size_t>(i) * width,
                         first + static_cast<size_t>((i + 1) * stride - 1) * width, width);
        },
        positions);
  }

 private:
  // Calls body(first row, its bytes) for keys and for values.
  template <typename Body>
  void for_both(const Body& body, int64_t positions) const {
    body(memory_.get(), key_bytes_ / static_cast<size_t>(positions));
    body(memory_.get() + key_bytes_, value_bytes_ / static_cast<size_t>(positions));
  }

  AlignedMemory memory_;
  size_t bytes_ = 0, key_bytes_ = 0, value_bytes_ = 0;
  DType dtype_ = DType::kFloat32;
};

bool keeps_all(const Bound& bound) {
  for (size_t i = 0; i < bound.state_shapes().size(); ++i) {
    if (!bound.keeps_state(i)) return false;
  }
  return true;
}

DType dtype_of(const Delegate* delegate, int32_t state, DType without) {
  return delegate == nullptr ? without : delegate->cache_dtype(state).value_or(without);
}

// Carries one cache.
bool carry_cache(const StateHolder& from, const StateHolder& to, uint32_t index, int64_t positions, ThreadPool& threads,
                 Rows& rows) {
  const auto state = static_cast<int32_t>(index);
  const fb::State& shape = *from.bound.program().states()->Get(index);
  const int64_t stride = std::max<int64_t>(1, shape.stride()), slots = positions / stride;
  KvCache source = from.memory.kv_caches()[index], target = to.memory.kv_caches()[index];
  source.stride = target.stride = 1;  // rows are those of slots
  Delegate* giver = from.bound.keeps_state(index) ? nullptr : from.delegates.cache_holder(state);
  Delegate* taker = to.bound.keeps_state(index) ? nullptr : to.delegates.cache_holder(state);
  if (giver == nullptr && (!from.bound.keeps_state(index) || !can_load_rows(source, slots))) return false;
  if (taker == nullptr && !to.bound.keeps_state(index)) return false;
  const DType wanted = dtype_of(taker, state, DType::kFloat32), dtype = dtype_of(giver, state, wanted);
  if (taker != nullptr && dtype != wanted) return false;
  if (!rows.reserve(shape, positions, dtype)) return false;
  const CacheRows on_the_way = rows.rows();
  if (giver == nullptr) {
    load_rows(source, slots, on_the_way, threads);
  } else if (!giver->read_cache(state, on_the_way.keys, on_the_way.values).ok()) {
    return false;
  }
  if (stride > 1 && giver == nullptr && taker != nullptr) rows.spread(positions, stride);
  if (stride > 1 && giver != nullptr && taker == nullptr) rows.gather(positions, stride);
  if (taker != nullptr) return taker->write_cache(state, positions, on_the_way.keys, on_the_way.values).ok();
  return store_rows(target, slots, on_the_way, threads).ok();
}

// Elements of the states of a target that the session keeps, as adopt takes them.
using Elements = std::vector<float>;

std::span<std::byte> elements_of(StateMemory& memory, uint32_t index, Elements& elements) {
  const RecurrentState& state = memory.recurrent_states()[index];
  return std::as_writable_bytes(
      std::span(elements).subspan(static_cast<size_t>(state.offset), static_cast<size_t>(state.tensor.num_elements())));
}

size_t num_bytes(const fb::State& state) {
  size_t bytes = sizeof(float);
  for (const int64_t size : *state.shape()) bytes *= static_cast<size_t>(size);
  return bytes;
}

// Carries one recurrent state; `kept`: those of `to` that the session keeps.
bool carry_recurrent(const StateHolder& from, const StateHolder& to, uint32_t index, int64_t positions,
                     Elements& kept) {
  const auto state = static_cast<int32_t>(index);
  std::vector<std::byte> on_the_way;
  std::span<const std::byte> elements;
  if (from.bound.keeps_state(index)) {
    const Tensor& tensor = from.memory.recurrent_states()[index].tensor;
    elements = std::as_bytes(std::span(tensor.as<float>(), static_cast<size_t>(tensor.num_elements())));
  } else {
    const Delegate* giver = from.delegates.recurrent_holder(state);
    on_the_way.resize(num_bytes(*from.bound.program().states()->Get(index)));
    if (giver == nullptr || !giver->read_recurrent(state, on_the_way).ok()) return false;
    elements = on_the_way;
  }
  if (to.bound.keeps_state(index)) {
    std::ranges::copy(elements, elements_of(to.memory, index, kept).begin());
    return true;
  }
  Delegate* taker = to.delegates.recurrent_holder(state);
  return taker != nullptr && taker->write_recurrent(state, positions, elements).ok();
}

}  // namespace

bool carry_states(const StateHolder& from, const StateHolder& to, int64_t positions, ThreadPool& threads) {
  if (keeps_all(from.bound) && keeps_all(to.bound)) {
    const StateSnapshot snapshot = from.memory.snapshot(positions);
    if (to.memory.adoptable(snapshot, positions) != positions) return false;
    to.memory.adopt(snapshot, positions);
    return true;
  }
  if (!to.memory.reserve(0, positions).ok()) return false;
  Rows rows;
  Elements kept(static_cast<size_t>(to.memory.recurrent().num_floats()));
  for (uint32_t i = 0; i < from.bound.state_shapes().size(); ++i) {
    if (from.bound.head_of(i).has_value()) continue;
    const bool is_cache = from.bound.program().states()->Get(i)->kind() == fb::StateKind::kv_cache;
    if (!(is_cache ? carry_cache(from, to, i, positions, threads, rows)
                   : carry_recurrent(from, to, i, positions, kept)))
      return false;
  }
  to.memory.recurrent().adopt(kept, {}, positions, positions);
  return true;
}

}  // namespace mote
