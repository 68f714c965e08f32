#include <algorithm>
#include <map>
#include <numeric>

#include "runner/program/validation.h"

namespace mote {
namespace {

// The values of one arena that live at one moment, by offset. They never overlap, so a new one can only meet its
// neighbours.
class Occupied {
 public:
  // The value that shares bytes with [offset, offset + bytes), or -1 after adding the new one.
  int64_t add(uint32_t value, uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return -1;
    const auto after = intervals_.lower_bound(offset);
    if (after != intervals_.end() && after->first < offset + bytes) return after->second.value;
    if (after != intervals_.begin()) {
      const auto before = std::prev(after);
      if (before->second.end > offset) return before->second.value;
    }
    intervals_.emplace_hint(after, offset, Interval{offset + bytes, value});
    return -1;
  }

  void remove(uint64_t offset, uint64_t bytes) {
    if (bytes != 0) intervals_.erase(offset);
  }

 private:
  struct Interval {
    uint64_t end;
    uint32_t value;
  };
  std::map<uint64_t, Interval> intervals_;
};

}  // namespace

Status verify_memory(const Path& path, const fb::Method& method, const std::vector<LiveRange>& live) {
  std::vector<uint32_t> starts;
  for (uint32_t i = 0; i < live.size(); ++i) {
    const bool planned = method.values()->Get(i)->kind() != fb::ValueKind::weight && live[i].first >= 0;
    if (planned) starts.push_back(i);
  }
  std::vector<uint32_t> ends = starts;
  std::stable_sort(starts.begin(), starts.end(), [&](uint32_t a, uint32_t b) { return live[a].first < live[b].first; });
  std::stable_sort(ends.begin(), ends.end(), [&](uint32_t a, uint32_t b) { return live[a].last < live[b].last; });
  Occupied occupied[2];
  size_t next_end = 0;
  for (const uint32_t index : starts) {
    // A value whose last use is the instruction that defines `index` still lives while that instruction runs.
    for (; next_end < ends.size() && live[ends[next_end]].last < live[index].first; ++next_end) {
      const fb::Value& ended = *method.values()->Get(ends[next_end]);
      occupied[static_cast<size_t>(ended.arena())].remove(ended.offset(), ended.bytes());
    }
    const fb::Value& value = *method.values()->Get(index);
    const int64_t other = occupied[static_cast<size_t>(value.arena())].add(index, value.offset(), value.bytes());
    if (other < 0) continue;
    return invalid(Path{&path, "values", index},
                   "shares bytes %llu..%llu of arena %s with values[%lld], which lives at the same time",
                   static_cast<unsigned long long>(value.offset()),
                   static_cast<unsigned long long>(value.offset() + value.bytes()), fb::EnumNameArena(value.arena()),
                   static_cast<long long>(other));
  }
  return {};
}

}  // namespace mote
