// The indices of a loop, divided among threads that take from each other's shares when their own is done.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace mote {

// Thread safety: divide while nobody runs; then run from any number of threads, each with its own number.
// A thread takes its share from the front, in pieces that get smaller, so that what it reads is contiguous; a thief
// takes the back half of what is left of another's.
class Shares {
 public:
  explicit Shares(int num_threads) : shares_(static_cast<size_t>(num_threads)) {}

  // Divides [0, count), count > 0, into units of at least `grain`, the last one shorter, and the units into a share for
  // each of the first `num_shares` threads; the others own nothing. Returns how many units there are.
  int64_t divide(int64_t count, int64_t grain, int num_shares) {
    count_ = count;
    unit_ = std::max(grain, (count - 1) / kMaxUnits + 1);
    const int64_t num_units = (count - 1) / unit_ + 1;
    for (int i = 0; i < num_shares; ++i) {
      shares_[static_cast<size_t>(i)].range.store(pack(num_units * i / num_shares, num_units * (i + 1) / num_shares),
                                                  std::memory_order_relaxed);
    }
    return num_units;
  }

  // Calls body(begin, end, thread) for pieces of the loop until every index is done or in a piece that another thread
  // is working on.
  template <typename Body>
  void run(int thread, const Body& body) {
    int64_t begin = 0;
    int64_t end = 0;
    do {
      while (take(thread, begin, end)) body(begin * unit_, std::min(end * unit_, count_), thread);
    } while (steal(thread));
  }

 private:
  static constexpr int64_t kMaxUnits = int64_t{1} << 31;
  // A piece is this part of what is left: small enough that no thread waits for one on a core of an eighth of its
  // speed.
  static constexpr int64_t kPieces = 8;

  // The units that are left of a share, as [low half, high half) of one word, so that owner and thieves agree by
  // compare-and-exchange. The word is the whole state, so it does no harm if it changed and changed back meanwhile.
  struct alignas(64) Share {
    std::atomic<uint64_t> range{0};
  };

  static uint64_t pack(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(end) << 32 | static_cast<uint64_t>(begin);
  }
  static int64_t begin_of(uint64_t range) { return static_cast<int64_t>(range & 0xFFFFFFFF); }
  static int64_t end_of(uint64_t range) { return static_cast<int64_t>(range >> 32); }

  bool take(int thread, int64_t& begin, int64_t& end) {
    std::atomic<uint64_t>& own = shares_[static_cast<size_t>(thread)].range;
    uint64_t range = own.load(std::memory_order_relaxed);
    do {
      begin = begin_of(range);
      const int64_t left = end_of(range) - begin;
      if (left <= 0) return false;
      end = begin + (left + kPieces - 1) / kPieces;
    } while (!own.compare_exchange_weak(range, pack(end, end_of(range)), std::memory_order_relaxed));
    return true;
  }

  // Moves the back half of some other thread's share into this thread's, which is empty.
  bool steal(int thread) {
    const size_t num_shares = shares_.size();
    for (size_t step = 1; step < num_shares; ++step) {
      std::atomic<uint64_t>& victim = shares_[(static_cast<size_t>(thread) + step) % num_shares].range;
      uint64_t range = victim.load(std::memory_order_relaxed);
      while (begin_of(range) < end_of(range)) {
        const int64_t middle = begin_of(range) + (end_of(range) - begin_of(range)) / 2;
        if (!victim.compare_exchange_weak(range, pack(begin_of(range), middle), std::memory_order_relaxed)) continue;
        shares_[static_cast<size_t>(thread)].range.store(pack(middle, end_of(range)), std::memory_order_relaxed);
        return true;
      }
    }
    return false;
  }

  int64_t count_ = 0;
  int64_t unit_ = 1;
  std::vector<Share> shares_;  // [threads]
};

}  // namespace mote
