#include "runner/program/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace mote {
namespace {

// About 20 us: longer than the serial work between two loops of a decode step, short beside a step.
constexpr int kSpins = 500;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// One loop at a time. `state_` holds the loop's epoch, whether it still admits workers, and how many are inside. The caller
// never waits for a worker that did not enter, so a sleeping or descheduled worker delays nobody.
class WorkerPool final : public ThreadPool {
 public:
  using Body = std::function<void(int64_t begin, int64_t end, int thread)>;

  ~WorkerPool() override {
    stop_.store(true, std::memory_order_relaxed);
    state_.store(next_epoch(state_.load(std::memory_order_relaxed)) | kClosed, std::memory_order_release);
    state_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // False when the system refuses a thread.
  bool start(int num_threads) {
    try {
      workers_.reserve(static_cast<size_t>(num_threads - 1));
      for (int thread = 1; thread < num_threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  int num_threads() const override { return static_cast<int>(workers_.size()) + 1; }

  void parallel_for(int64_t count, int64_t grain, const Body& body) override {
    if (count <= 0) return;
    grain = std::clamp<int64_t>(grain, 1, count);
    if (workers_.empty() || count == grain) {
      body(0, count, 0);
      return;
    }
    const int64_t share = count / (int64_t{4} * num_threads());
    chunk_ = share <= grain ? grain : share / grain * grain;
    count_ = count;
    body_ = &body;
    next_.store(0, std::memory_order_relaxed);
    state_.store(next_epoch(state_.load(std::memory_order_relaxed)), std::memory_order_release);
    state_.notify_all();
    run_chunks(0);
    wait_for_workers(state_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed);
  }

 private:
  static constexpr uint32_t kInside = 0x3FF;  // number of workers inside the loop
  static constexpr uint32_t kClosed = 0x400;  // no worker may enter any more
  static constexpr uint32_t kEpoch = 0x800;   // one step of the epoch
  static_assert(kMaxThreads < static_cast<int>(kInside));

  static uint32_t next_epoch(uint32_t state) { return (state & ~(kEpoch - 1)) + kEpoch; }
  static uint32_t epoch_of(uint32_t state) { return state & ~(kEpoch - 1); }

  void run_chunks(int thread) {
    for (;;) {
      const int64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= count_) return;
      (*body_)(begin, begin + std::min(chunk_, count_ - begin), thread);
    }
  }

  void wait_for_workers(uint32_t state) {
    for (int spin = 0; (state & kInside) != 0; ++spin) {
      if (spin < kSpins) {
        pause_cpu();
      } else {
        state_.wait(state, std::memory_order_acquire);
      }
      state = state_.load(std::memory_order_acquire);
    }
  }

  // Waits for a loop newer than `seen` and gives its state.
  uint32_t wait_for_loop(uint32_t seen) {
    uint32_t state = state_.load(std::memory_order_acquire);
    for (int spin = 0; epoch_of(state) == seen; ++spin) {
      if (spin < kSpins) {
        pause_cpu();
      } else {
        state_.wait(state, std::memory_order_acquire);
      }
      state = state_.load(std::memory_order_acquire);
    }
    return state;
  }

  void work(int thread) {
    uint32_t seen = 0;
    for (;;) {
      uint32_t state = wait_for_loop(seen);
      if (stop_.load(std::memory_order_relaxed)) return;
      seen = epoch_of(state);
      bool inside = false;
      while (!inside && epoch_of(state) == seen && (state & kClosed) == 0) {
        inside = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel, std::memory_order_acquire);
      }
      if (!inside) continue;
      run_chunks(thread);
      const uint32_t left = state_.fetch_sub(1, std::memory_order_acq_rel) - 1;
      if ((left & kClosed) != 0 && (left & kInside) == 0) state_.notify_all();
    }
  }

  std::atomic<uint32_t> state_{kClosed};
  std::atomic<int64_t> next_{0};
  std::atomic<bool> stop_{false};
  const Body* body_ = nullptr;
  int64_t count_ = 0;
  int64_t chunk_ = 1;
  std::vector<std::thread> workers_;
};

}  // namespace

Result<std::unique_ptr<ThreadPool>> make_thread_pool(int num_threads) {
  MOTE_REQUIRE(num_threads >= 1 && num_threads <= kMaxThreads, Code::kInvalidArgument, "num_threads = %d: must be 1..%d",
               num_threads, kMaxThreads);
  auto pool = std::make_unique<WorkerPool>();
  MOTE_REQUIRE(pool->start(num_threads), Code::kOutOfMemory, "num_threads = %d: the system refuses to start so many threads",
               num_threads);
  return std::unique_ptr<ThreadPool>(std::move(pool));
}

}  // namespace mote
