// Keeps what sessions have computed for other sessions whose texts begin alike, such as with one system prompt.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "runner/session/state/session_snapshot.h"

namespace mote {

// Holds snapshots up to a number of bytes and drops the least recently used ones first. Pages that several snapshots
// share count once. Thread safety: any number of threads.
class PrefixCache {
 public:
  explicit PrefixCache(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  struct Match {
    std::shared_ptr<const SessionSnapshot> snapshot;  // nullptr: nothing fits
    int64_t length = 0;                               // how many of its first tokens are those of the text
  };
  // The snapshot of the same model and adapters of which `states` can adopt the longest beginning in common with `ids`.
  // Nothing fits if it is no longer than `least`.
  Match find(const Bound& bound, const AdapterMix& adapters, std::span<const int32_t> ids, const StateMemory& states,
             int64_t least);

  // If `snapshot` can be cut anywhere, those that are a beginning of it are dropped. A snapshot larger than max_bytes
  // is not kept.
  void insert(std::shared_ptr<const SessionSnapshot> snapshot);
  void clear();

  struct Statistics {
    uint64_t bytes = 0;
    int64_t snapshots = 0;
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t reused_tokens = 0;
  };
  Statistics statistics() const;
  uint64_t max_bytes() const { return max_bytes_; }

 private:
  using Entries = std::list<std::shared_ptr<const SessionSnapshot>>;  // the most recently used first
  void add(const SessionSnapshot& snapshot);
  // Into `removed`, which the caller lets go of without the mutex: a snapshot may be the last to hold its model.
  void remove(Entries::iterator entry, Entries& removed);
  // Calls body(address, bytes) for each piece of memory that the snapshot holds.
  template <typename Body> static void for_each_part(const SessionSnapshot& snapshot, const Body& body);

  const uint64_t max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::unordered_map<const void*, int64_t> owners_;  // by address of a part: how many snapshots hold it
  Statistics statistics_;
};

}  // namespace mote
