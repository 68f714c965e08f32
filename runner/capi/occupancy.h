// Who may call on an object that takes one call at a time.
#pragma once

#include <atomic>
#include <utility>

#include "base/status.h"

namespace mote::capi {

// Thread safety: any thread. Cost: one atomic exchange to enter.
class Occupancy {
 public:
  explicit Occupancy(const char* name) : name_(name) {}
  // Errors: kInvalidState saying what the object is busy with.
  Status enter();
  // From now on, and until leave, every call is told that a batch has the object. By who is in it.
  void lend_to_batch() { holder_.store(&kBatch, std::memory_order_relaxed); }
  void leave() { holder_.store(nullptr, std::memory_order_release); }

 private:
  static const char kBatch;
  const char* name_;
  std::atomic<const void*> holder_{nullptr};  // the thread in a call, by an address of its own
};

// Leaves at its end.
class Stay {
 public:
  explicit Stay(Occupancy& occupancy) : occupancy_(&occupancy) {}
  Stay(Stay&& other) noexcept : occupancy_(std::exchange(other.occupancy_, nullptr)) {}
  Stay& operator=(Stay&& other) noexcept {
    std::swap(occupancy_, other.occupancy_);
    return *this;
  }
  ~Stay() {
    if (occupancy_ != nullptr) occupancy_->leave();
  }

 private:
  Occupancy* occupancy_;
};

}  // namespace mote::capi
