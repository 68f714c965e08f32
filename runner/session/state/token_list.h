// The ids of a session, whose number any thread may ask for.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace mote {

// Thread safety: one thread at a time, but for count.
class TokenList {
 public:
  // Any thread, also while another changes the list.
  int64_t count() const { return count_.load(std::memory_order_relaxed); }

  std::span<const int32_t> ids() const { return ids_; }
  size_t size() const { return ids_.size(); }
  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }
  int32_t back() const { return ids_.back(); }

  void reserve(size_t count) { ids_.reserve(count); }
  void assign(std::span<const int32_t> ids) {
    ids_.assign(ids.begin(), ids.end());
    publish();
  }
  void append(std::span<const int32_t> ids) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    publish();
  }
  // To the first `count`.
  void truncate(size_t count) {
    ids_.resize(count);
    publish();
  }

 private:
  void publish() { count_.store(static_cast<int64_t>(ids_.size()), std::memory_order_relaxed); }

  std::vector<int32_t> ids_;
  std::atomic<int64_t> count_{0};
};

}  // namespace mote
