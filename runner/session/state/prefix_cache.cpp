#include "runner/session/state/prefix_cache.h"

#include <algorithm>

namespace mote {
namespace {

int64_t common_length(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t count = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(count), b.begin()).first - a.begin();
}

// Whether a session can adopt any number of its first tokens, or all of them only.
bool can_be_cut(const SessionSnapshot& snapshot) {
  const StateSnapshot& states = snapshot.states;
  return snapshot.delegates.empty() && states.recurrent.empty() &&
         std::all_of(states.groups.begin(), states.groups.end(),
                     [](const StateSnapshot::Group& group) { return group.window == 0; });
}

}  // namespace

template <typename Body>
void PrefixCache::for_each_part(const SessionSnapshot& snapshot, const Body& body) {
  size_t num_floats = snapshot.logits.size() + snapshot.states.recurrent.size();
  const auto add_slabs = [&](const StateSnapshot& states) {
    for (const StateSnapshot::Group& group : states.groups) {
      for (const Slab& slab : group.slabs) {
        if (slab) body(slab.data(), slab.bytes());
      }
    }
  };
  add_slabs(snapshot.states);
  for (const DraftHeadSnapshot::Layer& layer : snapshot.head.layers) {
    add_slabs(layer.states);
    num_floats += layer.rows.size();
  }
  for (const RecurrentCheckpoint& checkpoint : snapshot.states.checkpoints) {
    body(checkpoint.states.data(), checkpoint.states.bytes());
    if (checkpoint.rows) body(checkpoint.rows.data(), checkpoint.rows.bytes());
  }
  for (const NamedSnapshot& delegate : snapshot.delegates)
    body(delegate.snapshot.get(), delegate.snapshot->held_bytes());
  body(&snapshot, sizeof(snapshot) + snapshot.tokens.size() * sizeof(int32_t) + num_floats * sizeof(float));
}

PrefixCache::Match PrefixCache::find(const Bound& bound, const AdapterMix& adapters, std::span<const int32_t> ids,
                                     const StateMemory& states, int64_t least) {
  const std::lock_guard lock(mutex_);
  auto best = entries_.end();
  int64_t longest = least;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if ((*entry)->bound.get() != &bound || !is_same_mix((*entry)->adapters, adapters)) continue;
    const int64_t common = common_length((*entry)->tokens, ids);
    const int64_t length = common <= longest ? 0 : states.adoptable((*entry)->states, common);
    if (length <= longest) continue;
    best = entry;
    longest = length;
  }
  if (best == entries_.end()) {
    ++statistics_.misses;
    return {};
  }
  ++statistics_.hits;
  statistics_.reused_tokens += longest;
  entries_.splice(entries_.begin(), entries_, best);
  return {entries_.front(), longest};
}

void PrefixCache::insert(std::shared_ptr<const SessionSnapshot> snapshot) {
  Entries removed;
  const std::lock_guard lock(mutex_);
  uint64_t needed = 0;
  for_each_part(*snapshot, [&](const void*, uint64_t bytes) { needed += bytes; });
  if (needed > max_bytes_) return;
  const auto size = static_cast<int64_t>(snapshot->tokens.size());
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto present = entry++;
    if ((*present)->bound != snapshot->bound || (*present)->states.kv_dtype != snapshot->states.kv_dtype ||
        !is_same_mix((*present)->adapters, snapshot->adapters))
      continue;
    const auto present_size = static_cast<int64_t>((*present)->tokens.size());
    const int64_t length = common_length((*present)->tokens, snapshot->tokens);
    if (length == size && (present_size == size || can_be_cut(**present))) {
      entries_.splice(entries_.begin(), entries_, present);
      return;
    }
    if (length == present_size && can_be_cut(*snapshot)) remove(present, removed);
  }
  try {
    entries_.push_front(std::move(snapshot));
    add(*entries_.front());
  } catch (const std::bad_alloc&) {
    removed.splice(removed.end(), entries_);
    owners_.clear();
    statistics_.bytes = 0;
  }
  while (statistics_.bytes > max_bytes_) remove(std::prev(entries_.end()), removed);
}

void PrefixCache::add(const SessionSnapshot& snapshot) {
  for_each_part(snapshot, [&](const void* part, uint64_t bytes) {
    if (++owners_[part] == 1) statistics_.bytes += bytes;
  });
}

void PrefixCache::remove(Entries::iterator entry, Entries& removed) {
  for_each_part(**entry, [&](const void* part, uint64_t bytes) {
    const auto owners = owners_.find(part);
    if (--owners->second > 0) return;
    owners_.erase(owners);
    statistics_.bytes -= bytes;
  });
  removed.splice(removed.end(), entries_, entry);
}

void PrefixCache::clear() {
  Entries removed;
  const std::lock_guard lock(mutex_);
  while (!entries_.empty()) remove(entries_.begin(), removed);
}

PrefixCache::Statistics PrefixCache::statistics() const {
  const std::lock_guard lock(mutex_);
  Statistics statistics = statistics_;
  statistics.snapshots = static_cast<int64_t>(entries_.size());
  return statistics;
}

}  // namespace mote
