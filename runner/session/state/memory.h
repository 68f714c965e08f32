// The memory of a session's KV caches and recurrent states. Docs: docs/sessions.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "kernels/state.h"
#include "runner/program/program.h"
#include "runner/session/state/recurrent.h"
#include "runner/session/state/slab.h"

namespace mote {

struct StateMemoryOptions {
  int64_t context_length = 0;
  int64_t prefill_chunk = 0;  // the most tokens of a call
  KvType kv_dtype = KvType::kFloat32;
  std::optional<size_t> head{};  // the states of the head of this depth, instead of those of none
};

// What the states hold after `position` tokens. Its pages are shared with the memory that it was taken from.
struct StateSnapshot {
  // Caches with the same window, sinks and stride; page i of all of them lies in slabs[i].
  struct Group {
    int64_t window = 0;
    int64_t num_sinks = 0;
    int64_t stride = 1;
    int64_t num_slots = 0;  // of a ring; 0 without a window
    std::vector<Slab> slabs{};
    std::vector<int64_t> positions{};  // [num_slots]
  };

  KvType kv_dtype = KvType::kFloat32;
  int64_t position = 0;
  std::vector<Group> groups{};
  std::vector<float> recurrent{};  // all recurrent states, one after another
  std::vector<RecurrentCheckpoint> checkpoints{};
};

// A page that no token has reached takes no memory. A page that a snapshot has too is shared until a token is to be
// written to it, and copied then.
class StateMemory {
 public:
  // Memory without tokens, of states that no delegate keeps. Errors: kOutOfMemory naming the bytes.
  static Result<StateMemory> allocate(const Bound& bound, const StateMemoryOptions& options);

  std::vector<KvCache>& kv_caches() { return kv_caches_; }
  std::vector<RecurrentState>& recurrent_states() { return recurrent_.states(); }
  RecurrentMemory& recurrent() { return recurrent_; }
  const RecurrentMemory& recurrent() const { return recurrent_; }
  // Whether a state is recurrent, those that delegates keep included.
  bool has_recurrent() const { return has_recurrent_; }
  // Bytes of caches and recurrent states when the context is full.
  uint64_t bytes() const { return bytes_ + recurrent_.bytes(); }
  // Bytes of the pages that exist now, shared ones included. The system gives memory only to the parts of them that
  // were touched.
  uint64_t held_bytes() const;

  // To be called before the tokens [position, position + tokens) are computed: makes the pages that they are written
  // to, and copies those that are shared. Errors: kOutOfMemory, after which nothing has changed for the tokens before.
  Status reserve(int64_t position, int64_t tokens);

  // Forgets all tokens and gives their pages back.
  void clear();

  // Goes back from `from` positions to the first `to`, of at least 1. False, and nothing changes, where that is more
  // than the states still hold: a ring that has written over what the next token sees, or a recurrent state.
  bool rewind(int64_t from, int64_t to);
  // The same for the caches alone, after a call that failed.
  bool rewind_caches(int64_t from, int64_t to);

  StateSnapshot snapshot(int64_t position) const;
  // The last of the first `position` positions that adopt can go to, of at least 1 and at most snapshot.position; 0:
  // none.
  int64_t adoptable(const StateSnapshot& snapshot, int64_t position) const;
  // Afterwards the memory holds the first `position` tokens of the snapshot and nothing else. Cost: no copy of pages.
  void adopt(const StateSnapshot& snapshot, int64_t position);

  // Bytes of one slab of a group.
  uint64_t slab_bytes(size_t group) const { return groups_[group].slab_bytes; }
  // Calls body(offset in the slab, bytes) for the pieces of a page that its first `slots` slots use.
  template <typename Body>
  void for_each_piece(size_t group, int64_t slots, const Body& body) const {
    const int64_t blocks = KvCache::whole_blocks(slots) / kKvBlockSlots;
    for (const uint32_t index : groups_[group].members) {
      const KvCache& cache = kv_caches_[index];
      const int64_t key_bytes = kv_key_block_bytes(cache.type, cache.head_dim);
      const int64_t value_bytes = kv_value_block_bytes(cache.type, cache.value_head_dim);
      for (int64_t head = 0; head < cache.num_heads; ++head) {
        body(cache.page_offset + head * kKvPageBlocks * key_bytes, blocks * key_bytes);
        body(cache.page_offset + kKvPageBlocks * (cache.num_heads * key_bytes + head * value_bytes),
             blocks * value_bytes);
      }
    }
  }
  // How many slots of a page of a group the first `position` tokens use.
  int64_t used_slots(size_t group, int64_t page, int64_t position) const;
  int64_t slot_of(size_t group, int64_t position) const { return shape(groups_[group]).slot_of(position); }
  size_t num_groups() const { return groups_.size(); }
  int64_t used_pages(size_t group, int64_t position) const;

 private:
  // Caches of the same window, sinks and stride, which hold the same positions in the same slots.
  struct Group {
    std::vector<uint32_t> members;  // indices of states
    uint64_t slab_bytes = 0;        // a page of each
    std::vector<Slab> slabs;        // [pages], empty where nothing was written
    std::vector<std::byte*> table;  // [pages], the addresses of slabs
  };

  explicit StateMemory(size_t num_states) : kv_caches_(num_states) {}
  const KvCache& shape(const Group& group) const { return kv_caches_[group.members[0]]; }
  Status check_size(int64_t context_length) const;
  Status reserve_page(size_t group, int64_t page, int64_t position, bool is_filled);
  void merge_before(const Group& group, int64_t position);
  void set_slab(Group& group, size_t page, Slab slab);

  std::vector<KvCache> kv_caches_;
  RecurrentMemory recurrent_;
  bool has_recurrent_ = false;
  std::vector<Group> groups_;
  ReservedPages block_;  // positions
  uint64_t bytes_ = 0;   // of the caches
};

}  // namespace mote
