#include "tokenizer/batch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mote::tokenizer {
namespace {

constexpr size_t kMaxThreads = 256;

// The first exception in the order of items.
class FirstFailure {
 public:
  void note(size_t index) {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr && index > index_) return;
    failure_ = std::current_exception();
    index_ = index;
  }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  size_t index_ = 0;
};

}  // namespace

void for_each_in_threads(size_t count, size_t num_threads, const std::function<void(size_t)>& work) {
  if (num_threads == 0) num_threads = std::max(1u, std::thread::hardware_concurrency());
  num_threads = std::min({num_threads, count, kMaxThreads});
  std::atomic<size_t> next = 0;
  FirstFailure failure;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) { failure.note(i); }
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(num_threads);
  try {
    while (threads.size() + 1 < num_threads) threads.emplace_back(run);
  } catch (const std::exception&) {
    // the threads that there are do the work
  }
  run();
  for (std::thread& thread : threads) thread.join();
  failure.rethrow();
}

}  // namespace mote::tokenizer
