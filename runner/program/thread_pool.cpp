#include "runner/program/thread_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/atomic_wait.h"
#include "runner/program/shares.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace mote {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// Longer than the serial work between two loops of a decode step, and short compared with the step.
constexpr nanoseconds kLongestSpin{50'000};
constexpr int kPausesPerLook = 8;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on most cores
#endif
}

// Spins until done() or for `limit`. Returns whether it is done.
template <typename Done>
bool spin(nanoseconds limit, const Done& done) {
  const Clock::time_point start = Clock::now();
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (done()) return true;
      pause_cpu();
    }
  } while (Clock::now() - start < limit);
  return done();
}

// How long a thread should spin: twice as long as would have been enough the last time, and less each time that no
// spinning would have been enough.
class SpinTime {
 public:
  nanoseconds limit() const { return limit_; }
  void waited(nanoseconds time) {
    limit_ = time > kLongestSpin ? limit_ / 2 : std::min(kLongestSpin, std::max(limit_, 2 * time));
  }

 private:
  nanoseconds limit_ = kLongestSpin;
};

// One loop at a time. `state_` holds the loop's epoch, whether it still admits workers, and how many are inside. The
// caller closes the loop when no share has work left and waits for those inside only, so a sleeping worker delays
// nobody.
class WorkerPool final : public ThreadPool {
 public:
  using Body = std::function<void(int64_t begin, int64_t end, int thread)>;

  explicit WorkerPool(const ThreadPoolOptions& options)
      : options_(options), shares_(options.num_threads), parked_(static_cast<size_t>(options.num_threads)) {
    const int num_cpus = options.cpus.empty() ? num_usable_cpus() : static_cast<int>(options.cpus.size());
    most_running_ = std::min(options.num_threads, options.num_cpus > 0 ? options.num_cpus : num_cpus);
  }

  ~WorkerPool() override {
    stop_.store(true);
    open_loop();
    for (int thread = 1; thread < num_threads(); ++thread) wake(thread);
    for (std::thread& worker : workers_) worker.join();
  }

  Status start() {
    try {
      workers_.reserve(static_cast<size_t>(options_.num_threads - 1));
      for (int thread = 1; thread < options_.num_threads; ++thread)
        workers_.emplace_back([this, thread] { work(thread); });
    } catch (const std::exception&) {
      return {Code::kOutOfMemory,
              format("num_threads = %d: the system refuses to start so many threads", options_.num_threads)};
    }
    if (options_.cpus.empty() && options_.priority == ThreadPriority::kNormal) return {};
    for (size_t waited = 0; waited < workers_.size(); waited = num_set_up_.load())
      wait_on(num_set_up_, static_cast<uint32_t>(waited));
    return set_up_failed_.exchange(false) ? set_up_status_ : Status();
  }

  int num_threads() const override { return static_cast<int>(workers_.size()) + 1; }

  void parallel_for(int64_t count, int64_t grain, const Body& body) override {
    if (count <= 0) return;
    grain = std::clamp<int64_t>(grain, 1, count);
    if (most_running_ == 1 || count == grain) {
      body(0, count, 0);
      return;
    }
    body_ = &body;
    const int64_t num_units = shares_.divide(count, grain, most_running_);
    open_loop();
    const auto running = static_cast<int>(std::min<int64_t>(num_units, most_running_));
    for (int thread = 1; thread < running; ++thread) wake(thread);
    shares_.run(0, body);
    wait_for_workers(state_.fetch_or(kClosed) | kClosed);
  }

 private:
  static constexpr uint32_t kInside = 0x3FF;  // number of workers inside the loop
  static constexpr uint32_t kClosed = 0x400;  // no worker may enter any more
  static constexpr uint32_t kEpoch = 0x800;   // one step of the epoch
  static_assert(kMaxThreads < static_cast<int>(kInside));

  struct alignas(64) Parked {
    std::atomic<uint32_t> flag{0};
  };

  static uint32_t epoch_of(uint32_t state) { return state & ~(kEpoch - 1); }

  // Sequentially consistent, as is `park`: either the worker sees the new epoch or the caller sees its flag.
  void open_loop() { state_.store(epoch_of(state_.load()) + kEpoch); }

  void wake(int thread) {
    std::atomic<uint32_t>& flag = parked_[static_cast<size_t>(thread)].flag;
    if (flag.load() == 0) return;
    flag.store(0);
    wake_one(flag);
  }

  void park(int thread, uint32_t seen) {
    std::atomic<uint32_t>& flag = parked_[static_cast<size_t>(thread)].flag;
    flag.store(1);
    while (epoch_of(state_.load()) == seen && flag.load() == 1) wait_on(flag, 1);
    flag.store(0);
  }

  void wait_for_workers(uint32_t state) {
    const auto done = [&] {
      state = state_.load(std::memory_order_acquire);
      return (state & kInside) == 0;
    };
    if (done()) return;
    const Clock::time_point start = Clock::now();
    if (!spin(caller_spin_.limit(), done)) {
      while (!done()) wait_on(state_, state);
    }
    caller_spin_.waited(Clock::now() - start);
  }

  // Waits for a loop newer than `seen`.
  uint32_t wait_for_loop(int thread, uint32_t seen, SpinTime& spin_time) {
    const Clock::time_point start = Clock::now();
    const auto is_newer = [&] { return epoch_of(state_.load(std::memory_order_relaxed)) != seen; };
    if (thread >= most_running_ || !spin(spin_time.limit(), is_newer)) {
      while (!is_newer()) park(thread, seen);
    }
    spin_time.waited(Clock::now() - start);
    return state_.load(std::memory_order_acquire);
  }

  Status bind_and_prioritise() const try {
    if (!options_.cpus.empty()) MOTE_RETURN_IF_ERROR(bind_this_thread(options_.cpus));
    return set_this_threads_priority(options_.priority);
  } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "out of memory"}; }

  void set_up_this_thread() {
    name_this_thread("mote");
    Status status = bind_and_prioritise();
    if (!status.ok() && !set_up_failed_.exchange(true)) set_up_status_ = std::move(status);
    num_set_up_.fetch_add(1);
    wake_one(num_set_up_);
  }

  void work(int thread) {
    set_up_this_thread();
    SpinTime spin_time;
    uint32_t seen = 0;
    for (;;) {
      uint32_t state = wait_for_loop(thread, seen, spin_time);
      if (stop_.load()) return;
      seen = epoch_of(state);
      bool inside = false;
      while (!inside && epoch_of(state) == seen && (state & kClosed) == 0) {
        inside = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel, std::memory_order_acquire);
      }
      if (!inside) continue;
      shares_.run(thread, *body_);
      const uint32_t left = state_.fetch_sub(1, std::memory_order_acq_rel) - 1;
      if ((left & kClosed) != 0 && (left & kInside) == 0) wake_one(state_);
    }
  }

  ThreadPoolOptions options_;
  int most_running_ = 1;  // threads that can run at once, the caller included
  alignas(64) std::atomic<uint32_t> state_{kClosed};
  std::atomic<bool> stop_{false};
  const Body* body_ = nullptr;
  Shares shares_;
  std::vector<Parked> parked_;  // [threads]
  SpinTime caller_spin_;
  std::atomic<uint32_t> num_set_up_{0};
  std::atomic<bool> set_up_failed_{false};
  Status set_up_status_;
  std::vector<std::thread> workers_;
};

}  // namespace

Result<std::unique_ptr<ThreadPool>> make_thread_pool(const ThreadPoolOptions& options) {
  MOTE_REQUIRE(options.num_threads >= 1 && options.num_threads <= kMaxThreads, Code::kInvalidArgument,
               "num_threads = %d: must be 1..%d", options.num_threads, kMaxThreads);
  auto pool = std::make_unique<WorkerPool>(options);
  MOTE_RETURN_IF_ERROR(pool->start());
  return std::unique_ptr<ThreadPool>(std::move(pool));
}

}  // namespace mote
