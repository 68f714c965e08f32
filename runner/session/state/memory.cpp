#include "runner/session/state/memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runner/program/kv_sizes.h"

namespace mote {
namespace {

constexpr int64_t kAlignment = 64;

// Gives out consecutive aligned parts of a block. Without a block it gives out nothing and counts how large one must
// be.
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

KvCache cache_of(const fb::State& state, const StateMemoryOptions& options) {
  KvCache cache;
  cache.type = options.kv_dtype;
  cache.num_heads = state.num_heads();
  cache.head_dim = state.head_dim();
  cache.value_head_dim = state.value_head_dim();
  cache.window = state.window();
  cache.num_sinks = state.num_sink_positions();
  cache.stride = state.stride();
  cache.capacity = kv_capacity(state, options.context_length, options.prefill_chunk);
  return cache;
}

// The slot in which a ring with sinks keeps a position, counted as KvCache counts slots.
int64_t ring_slot(const StateSnapshot::Group& group, int64_t position) {
  if (position < group.num_sinks) return position;
  const int64_t sink_slots = KvCache::whole_blocks(group.num_sinks);
  return sink_slots + position % (group.num_slots - sink_slots);
}

// Whether is_there(p) holds for all positions p that a token at `position` sees through a window, sinks left out.
template <typename Body>
bool all_seen(int64_t position, int64_t window, int64_t num_sinks, const Body& is_there) {
  for (int64_t p = std::max(num_sinks, position - window + 1); p < position; ++p) {
    if (!is_there(p)) return false;
  }
  return true;
}

}  // namespace

Result<StateMemory> StateMemory::allocate(const Bound& bound, const StateMemoryOptions& options) {
  const fb::Program& program = bound.program();
  StateMemory memory(program.states()->size());
  Size page_bytes = 0;
  std::vector<uint32_t> recurrent;
  for (uint32_t i = 0; i < program.states()->size(); ++i) {
    const fb::State& state = *program.states()->Get(i);
    memory.has_recurrent_ |= state.kind() == fb::StateKind::recurrent;
    if (bound.head_of(i) != options.head || !bound.keeps_state(i)) continue;
    if (state.kind() != fb::StateKind::kv_cache) {
      recurrent.push_back(i);
      continue;
    }
    KvCache& cache = memory.kv_caches_[i] = cache_of(state, options);
    auto group = std::find_if(memory.groups_.begin(), memory.groups_.end(), [&](const Group& other) {
      const KvCache& shape = memory.shape(other);
      return shape.window == cache.window && shape.num_sinks == cache.num_sinks && shape.stride == cache.stride;
    });
    if (group == memory.groups_.end()) group = memory.groups_.insert(group, Group{});
    cache.page_offset = static_cast<int64_t>(group->slab_bytes);
    const Size slab_bytes = Size(group->slab_bytes) + cache.page_bytes().align_up(kAlignment);
    page_bytes = page_bytes + cache.page_bytes().align_up(kAlignment) * cache.num_pages();
    MOTE_REQUIRE(page_bytes.valid() && slab_bytes.at_most(PTRDIFF_MAX), Code::kOutOfMemory,
                 "a context of %lld positions needs more memory than can be addressed",
                 static_cast<long long>(options.context_length));
    group->slab_bytes = slab_bytes.unsigned_value();
    group->members.push_back(i);
  }
  const auto place = [&](std::byte* block) {
    Carver carver(block);
    for (const Group& group : memory.groups_) {
      auto* positions = carver.take<int64_t>(memory.shape(group).num_slots());
      for (const uint32_t i : group.members) memory.kv_caches_[i].positions = positions;
    }
    return carver.end();
  };
  const Size needed = place(nullptr);
  MOTE_REQUIRE((page_bytes + needed).at_most(PTRDIFF_MAX), Code::kOutOfMemory,
               "a context of %lld positions needs more memory than can be addressed",
               static_cast<long long>(options.context_length));
  memory.bytes_ = (page_bytes + needed).unsigned_value();
  MOTE_ASSIGN(memory.recurrent_, RecurrentMemory::allocate(program, std::move(recurrent)));
  MOTE_RETURN_IF_ERROR(memory.check_size(options.context_length));
  const auto bytes = static_cast<size_t>(std::max<uint64_t>(needed.unsigned_value(), 1));
  memory.block_ = ReservedPages(reserve_pages(bytes), ReleasePages{bytes});
  MOTE_REQUIRE(memory.block_ != nullptr, Code::kOutOfMemory, "the states need %zu bytes, more than the system has",
               bytes);
  (void)place(memory.block_.get());
  for (Group& group : memory.groups_) {
    const auto num_pages = static_cast<size_t>(memory.shape(group).num_pages());
    group.slabs.resize(num_pages);
    group.table.resize(num_pages);
    for (const uint32_t i : group.members) memory.kv_caches_[i].pages = group.table.data();
  }
  memory.clear();
  return memory;
}

// Refuses at once a context that the system cannot hold, which else would fail when it is half full.
Status StateMemory::check_size(int64_t context_length) const {
  const auto bytes = static_cast<size_t>(std::max<uint64_t>(bytes_, 1));
  std::byte* probe = reserve_pages(bytes);
  MOTE_REQUIRE(probe != nullptr, Code::kOutOfMemory,
               "a context of %lld positions needs %llu bytes: choose a smaller context_length or a smaller kv type",
               static_cast<long long>(context_length), static_cast<unsigned long long>(bytes_));
  release_pages(probe, bytes);
  return {};
}

uint64_t StateMemory::held_bytes() const {
  uint64_t bytes = recurrent_.held_bytes();
  for (const Group& group : groups_) {
    bytes += group.slab_bytes *
             static_cast<uint64_t>(std::count_if(group.slabs.begin(), group.slabs.end(),
                                                 [](const Slab& slab) { return static_cast<bool>(slab); }));
  }
  return bytes;
}

void StateMemory::set_slab(Group& group, size_t page, Slab slab) {
  group.table[page] = slab ? slab.data() : nullptr;
  group.slabs[page] = std::move(slab);
}

int64_t StateMemory::used_slots(size_t group, int64_t page, int64_t position) const {
  const KvCache& cache = shape(groups_[group]);
  const int64_t end = cache.window == 0 ? cache.num_kept(position) : cache.num_slots();
  return std::clamp<int64_t>(end - page * kKvPageSlots, 0, kKvPageSlots);
}

int64_t StateMemory::used_pages(size_t group, int64_t position) const {
  const KvCache& cache = shape(groups_[group]);
  return cache.window == 0 ? (cache.num_kept(position) + kKvPageSlots - 1) / kKvPageSlots : cache.num_pages();
}

Status StateMemory::reserve_page(size_t index, int64_t page, int64_t position, bool is_filled) {
  Group& group = groups_[index];
  const Slab& present = group.slabs[static_cast<size_t>(page)];
  if (present && present.is_writable()) return {};
  Slab slab = Slab::allocate(group.slab_bytes, is_filled);
  MOTE_REQUIRE(static_cast<bool>(slab), Code::kOutOfMemory,
               "no memory for %llu more bytes of keys and values at position %lld: close other sessions or choose a "
               "smaller kv type",
               static_cast<unsigned long long>(group.slab_bytes), static_cast<long long>(position));
  if (present) {
    for_each_piece(index, used_slots(index, page, position), [&](int64_t offset, int64_t bytes) {
      std::memcpy(slab.data() + offset, present.data() + offset, static_cast<size_t>(bytes));
    });
  }
  set_slab(group, static_cast<size_t>(page), std::move(slab));
  return {};
}

// Before a new page is begun, the one before it is full.
void StateMemory::merge_before(const Group& group, int64_t position) {
  const Slab& full = group.slabs[static_cast<size_t>(shape(group).slot_of(position - 1) / kKvPageSlots)];
  if (full) full.merge();
}

Status StateMemory::reserve(int64_t position, int64_t tokens) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    int64_t last = -1;
    for (int64_t p = position; p < position + tokens; ++p) {
      const KvCache& cache = shape(groups_[i]);
      const int64_t slot = cache.slot_of(p), page = slot / kKvPageSlots;
      if (page == last) continue;
      if (slot % kKvPageSlots == 0 && p > 0) merge_before(groups_[i], p);
      const bool is_filled = slot % kKvPageSlots == 0 && position + tokens - p >= kKvPageSlots * cache.stride;
      MOTE_RETURN_IF_ERROR(reserve_page(i, page, position, is_filled));
      last = page;
    }
  }
  return {};
}

bool StateMemory::rewind(int64_t from, int64_t to) {
  if (!recurrent_.is_empty() && recurrent_.nearest(to) != to) return false;
  if (!rewind_caches(from, to)) return false;
  if (!recurrent_.is_empty()) recurrent_.rewind(to);
  return true;
}

bool StateMemory::rewind_caches(int64_t from, int64_t to) {
  if (from == to) return true;
  for (const Group& group : groups_) {
    const KvCache& cache = shape(group);
    const auto is_there = [&](int64_t p) { return cache.positions[cache.slot_of(p)] == p; };
    if (cache.window != 0 && !all_seen(to, cache.window, cache.num_sinks, is_there)) return false;
  }
  for (Group& group : groups_) {
    const KvCache& cache = shape(group);
    if (cache.window != 0) {
      for (int64_t p = to; p < from; ++p) {
        int64_t& held = cache.positions[cache.slot_of(p)];
        if (held == p) held = -1;
      }
      continue;
    }
    std::fill(cache.positions + cache.num_kept(to), cache.positions + cache.num_kept(from), int64_t{-1});
    // The page of the next position stays, so that going back and on again at its start costs nothing.
    for (auto page = static_cast<size_t>(cache.slot_of(to) / kKvPageSlots) + 1;
         page < group.slabs.size() && group.slabs[page]; ++page) {
      set_slab(group, page, Slab());
    }
  }
  return true;
}

void StateMemory::clear() {
  for (Group& group : groups_) {
    std::fill_n(shape(group).positions, shape(group).num_slots(), int64_t{-1});
    for (size_t page = 0; page < group.slabs.size(); ++page) {
      if (group.slabs[page]) set_slab(group, page, Slab());
    }
  }
  recurrent_.clear();
}

StateSnapshot StateMemory::snapshot(int64_t position) const {
  StateSnapshot snapshot;
  snapshot.position = position;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const KvCache& cache = shape(groups_[i]);
    snapshot.kv_dtype = cache.type;
    StateSnapshot::Group& group = snapshot.groups.emplace_back();
    group.window = cache.window;
    group.num_sinks = cache.num_sinks;
    group.stride = cache.stride;
    const auto num_pages = static_cast<size_t>(used_pages(i, position));
    group.slabs.reserve(num_pages);
    for (size_t page = 0; page < num_pages; ++page) group.slabs.push_back(groups_[i].slabs[page].share());
    if (cache.window == 0) continue;
    group.num_slots = cache.num_slots();
    group.positions.assign(cache.positions, cache.positions + cache.num_slots());
  }
  recurrent_.copy_to(snapshot.recurrent, snapshot.checkpoints);
  return snapshot;
}

int64_t StateMemory::adoptable(const StateSnapshot& snapshot, int64_t position) const {
  if (position < 1 || position > snapshot.position || snapshot.groups.size() != groups_.size()) return 0;
  if (snapshot.recurrent.size() != static_cast<size_t>(recurrent_.num_floats())) return 0;
  if (!recurrent_.is_empty()) position = recurrent_.nearest_in(snapshot.checkpoints, snapshot.position, position);
  if (recurrent_.is_empty() && has_recurrent() && position != snapshot.position) return 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const KvCache& cache = shape(groups_[i]);
    const StateSnapshot::Group& group = snapshot.groups[i];
    if (snapshot.kv_dtype != cache.type || group.window != cache.window || group.num_sinks != cache.num_sinks) return 0;
    if (group.stride != cache.stride) return 0;
    if (cache.window == 0 && position > cache.capacity) return 0;
    if (cache.window != 0 && group.num_slots != cache.num_slots()) return 0;
    const auto is_there = [&](int64_t p) { return group.positions[static_cast<size_t>(ring_slot(group, p))] == p; };
    if (cache.window != 0 && !all_seen(position, cache.window, cache.num_sinks, is_there)) return 0;
  }
  return position;
}

void StateMemory::adopt(const StateSnapshot& snapshot, int64_t position) {
  clear();
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    const StateSnapshot::Group& from = snapshot.groups[i];
    const auto pages = static_cast<size_t>(used_pages(i, position));
    for (size_t page = 0; page < pages; ++page) set_slab(group, page, from.slabs[page].share());
    int64_t* positions = shape(group).positions;
    if (from.window == 0) {
      std::iota(positions, positions + shape(group).num_kept(position), int64_t{0});
    } else {
      std::transform(from.positions.begin(), from.positions.end(), positions,
                     [&](int64_t p) { return p < position ? p : -1; });
    }
  }
  recurrent_.adopt(snapshot.recurrent, snapshot.checkpoints, snapshot.position, position);
}

}  // namespace mote
