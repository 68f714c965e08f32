// XNNPACK on the threads of a session's ThreadPool.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/xnnpack/api.h"
#include "kernels/thread_pool.h"

namespace mote::xnnpack {

// XNNPACK divides its work through a pthreadpool, and a pthreadpool borrows threads from an executor: this one. A run
// is one loop over the ThreadPool; the thread that begins first runs the graph, the others do what the pthreadpool
// schedules. An older pthreadpool knows no executors: then it has threads of its own. Thread safety: one thread at a
// time.
class Threads {
 public:
  // nullptr: there is no memory.
  static std::unique_ptr<Threads> make(const Api& api, ThreadPool* pool);
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads();

  Threadpool* threadpool() const { return threadpool_; }  // nullptr: one thread
  XnnStatus run(Runtime* runtime);

 private:
  struct Task {
    void (*function)(void*) = nullptr;
    void* argument = nullptr;
  };

  Threads(const Api& api, ThreadPool* pool) : api_(api), pool_(pool) {}
  bool start();
  static int num_others(void* self) { return static_cast<Threads*>(self)->pool_->num_threads() - 1; }
  static void schedule(void* self, void* argument, void (*function)(void*));
  void take_part(Runtime* runtime);
  bool run_task();

  const Api& api_;
  ThreadPool* pool_;
  Threadpool* threadpool_ = nullptr;
  bool is_borrowing_ = false;
  XnnStatus status_ = XnnStatus::kSuccess;
  std::atomic<bool> is_begun_ = false;
  std::atomic<bool> is_finished_ = false;
  std::atomic<size_t> num_tasks_ = 0;
  std::mutex mutex_;
  std::vector<Task> tasks_;  // guarded by mutex_; room for one a thread
};

}  // namespace mote::xnnpack
