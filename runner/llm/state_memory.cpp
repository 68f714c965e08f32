#include "runner/llm/state_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define MOTE_HAS_MMAP 1
#endif

namespace mote {
namespace {

constexpr int64_t kAlignment = 64;

// Zeroed memory whose pages are made when they are first touched; nullptr: refused.
std::byte* reserve(size_t bytes) {
#if defined(MOTE_HAS_MMAP)
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : static_cast<std::byte*>(block);
#else
  return static_cast<std::byte*>(std::calloc(bytes, 1));
#endif
}

// Gives out consecutive aligned parts of a block; first without one, to learn how large it must be.
class Carver {
 public:
  explicit Carver(std::byte* block) : block_(block) {}
  template <typename T> T* take(Size count) {
    const Size offset = end_;
    end_ = (end_ + count * sizeof(T)).align_up(kAlignment);
    return block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + offset.unsigned_value());
  }
  Size end() const { return end_; }

 private:
  std::byte* block_;
  Size end_ = 0;
};

void place_kv_cache(const fb::State& state, const StateMemoryOptions& options, Carver& carver, KvCache& cache) {
  cache.type = options.kv_type;
  cache.num_heads = state.num_heads();
  cache.head_dim = state.head_dim();
  cache.value_head_dim = state.value_head_dim();
  cache.window = state.window();
  cache.num_sinks = state.num_sink_positions();
  cache.capacity = kv_capacity(state, options.context_length, options.prefill_chunk);
  const Size blocks = Size(cache.num_slots() / kKvBlockSlots) * cache.num_heads;
  cache.keys = carver.take<std::byte>(blocks * kv_key_block_bytes(cache.type, cache.head_dim));
  cache.values = carver.take<std::byte>(blocks * kv_value_block_bytes(cache.type, cache.value_head_dim));
  cache.positions = carver.take<int64_t>(cache.num_slots());
}

void place_recurrent(const fb::State& state, Carver& carver, Tensor& tensor) {
  Size elements = 1;
  tensor.rank = static_cast<int>(state.shape()->size());
  for (uint32_t i = 0; i < state.shape()->size(); ++i) {
    tensor.sizes[i] = state.shape()->Get(i);
    elements = elements * tensor.sizes[i];
  }
  tensor.dtype = DType::kFloat32;
  tensor.set_contiguous_strides();
  tensor.data = carver.take<float>(elements);
}

// Whether every position that a token at `position` sees is there.
bool holds_context(const KvCache& cache, int64_t position) {
  if (cache.window == 0) return true;
  for (int64_t p = std::max<int64_t>(cache.num_sinks, position - cache.window + 1); p < position; ++p) {
    if (cache.positions[cache.slot_of(p)] != p) return false;
  }
  return true;
}

}  // namespace

int64_t kv_capacity(const fb::State& state, int64_t context_length, int64_t prefill_chunk) {
  if (state.window() == 0) return context_length;
  return int64_t{state.num_sink_positions()} + state.window() + prefill_chunk - 1;
}

Size kv_position_bytes(const fb::State& state, KvType type) {
  const int64_t block_bytes = kv_key_block_bytes(type, state.head_dim()) + kv_value_block_bytes(type, state.value_head_dim());
  return Size(block_bytes / kKvBlockSlots) * state.num_heads();
}

void UnmapBlock::operator()(std::byte* block) const {
#if defined(MOTE_HAS_MMAP)
  munmap(block, bytes);
#else
  std::free(block);
#endif
}

Result<StateMemory> StateMemory::allocate(const fb::Program& program, const StateMemoryOptions& options) {
  StateMemory memory(program.states()->size());
  const auto place = [&](std::byte* block) {
    Carver carver(block);
    for (uint32_t i = 0; i < program.states()->size(); ++i) {
      const fb::State& state = *program.states()->Get(i);
      if (state.kind() == fb::StateKind::kv_cache) {
        place_kv_cache(state, options, carver, memory.kv_caches_[i]);
      } else {
        place_recurrent(state, carver, memory.recurrent_states_[i].tensor);
        memory.has_recurrent_ = true;
      }
    }
    return carver.end();
  };
  const Size needed = place(nullptr);
  MOTE_REQUIRE(needed.at_most(PTRDIFF_MAX), Code::kOutOfMemory,
               "a context of %lld positions needs more memory than can be addressed",
               static_cast<long long>(options.context_length));
  memory.bytes_ = needed.unsigned_value();
  const auto bytes = static_cast<size_t>(std::max<uint64_t>(memory.bytes_, 1));
  memory.block_ = std::unique_ptr<std::byte[], UnmapBlock>(reserve(bytes), UnmapBlock{bytes});
  MOTE_REQUIRE(memory.block_ != nullptr, Code::kOutOfMemory,
               "a context of %lld positions needs %llu bytes: choose a smaller context_length or a smaller kv type",
               static_cast<long long>(options.context_length), static_cast<unsigned long long>(bytes));
  (void)place(memory.block_.get());
  memory.clear();
  return memory;
}

bool StateMemory::rewind(int64_t from, int64_t to) {
  if (has_recurrent_) return from == to;
  for (const KvCache& cache : kv_caches_) {
    if (!holds_context(cache, to)) return false;
  }
  for (KvCache& cache : kv_caches_) {
    for (int64_t p = to; p < from; ++p) {
      int64_t& held = cache.positions[cache.slot_of(p)];
      if (held == p) held = -1;
    }
  }
  return true;
}

void StateMemory::clear() {
  for (KvCache& cache : kv_caches_) {
    if (cache.positions != nullptr) std::fill_n(cache.positions, cache.num_slots(), int64_t{-1});
  }
  for (RecurrentState& state : recurrent_states_) {
    if (state.tensor.data == nullptr) continue;
    std::memset(state.tensor.data, 0, static_cast<size_t>(state.tensor.num_elements()) * sizeof(float));
  }
}

}  // namespace mote
