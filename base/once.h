// Something that is done once.
#pragma once

#include <atomic>
#include <mutex>

namespace mote {

// As std::once_flag with std::call_once, which hangs after an exception with some C libraries and under
// ThreadSanitizer: here the next call tries again.
class Once {
 public:
  // Others that call meanwhile wait for the end. `make` must not call it again.
  template <typename Make>
  void call(const Make& make) {
    if (is_done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    make();
    is_done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> is_done_ = false;
};

}  // namespace mote
