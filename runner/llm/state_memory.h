// The memory of a session's KV caches and recurrent states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/size.h"
#include "base/status.h"
#include "kernels/state.h"
#include "runner/program/program.h"

namespace mote {

struct StateMemoryOptions {
  int64_t context_length = 0;
  int64_t prefill_chunk = 0;  // the most tokens of a call
  KvType kv_type = KvType::kFloat32;
};

struct UnmapBlock {
  size_t bytes = 0;
  void operator()(std::byte* block) const;
};

// One zeroed mapping: pages that no token has reached cost nothing.
class StateMemory {
 public:
  // Errors: kOutOfMemory naming the bytes.
  static Result<StateMemory> allocate(const fb::Program& program, const StateMemoryOptions& options);

  std::vector<KvCache>& kv_caches() { return kv_caches_; }
  std::vector<RecurrentState>& recurrent_states() { return recurrent_states_; }
  bool has_recurrent() const { return has_recurrent_; }
  uint64_t bytes() const { return bytes_; }

  // As newly allocated.
  void clear();

  // Goes back from `from` positions to the first `to`, of at least 1. False, and nothing changes, where that is more than the
  // states still hold: a ring that has written over what the next token sees, or a recurrent state.
  bool rewind(int64_t from, int64_t to);

 private:
  explicit StateMemory(size_t num_states) : kv_caches_(num_states), recurrent_states_(num_states) {}

  std::vector<KvCache> kv_caches_;
  std::vector<RecurrentState> recurrent_states_;
  std::unique_ptr<std::byte[], UnmapBlock> block_;
  uint64_t bytes_ = 0;
  bool has_recurrent_ = false;
};

// Positions that a KV cache holds: all of them, or for a layer with a window its sinks and a ring.
int64_t kv_capacity(const fb::State& state, int64_t context_length, int64_t prefill_chunk);
// Bytes of keys and values for one position.
Size kv_position_bytes(const fb::State& state, KvType type);

}  // namespace mote
