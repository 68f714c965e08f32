#include "backends/xnnpack/threads.h"

#include <new>
#include <thread>

namespace mote::xnnpack {
namespace {

constexpr int kSpins = 2000;  // before the CPU is offered to others

void pause(int* idle) {
  if (++*idle > kSpins) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

std::unique_ptr<Threads> Threads::make(const Api& api, ThreadPool* pool) {
  std::unique_ptr<Threads> threads(new (std::nothrow) Threads(api, pool));
  if (threads == nullptr || !threads->start()) return nullptr;
  return threads;
}

bool Threads::start() {
  const int num_threads = pool_ == nullptr ? 1 : pool_->num_threads();
  if (num_threads == 1) return true;
  tasks_.reserve(static_cast<size_t>(num_threads));
  is_borrowing_ = api_.pthreadpool_create_v2 != nullptr && api_.pthreadpool_release_executor_threads != nullptr;
  const Executor executor{num_others, schedule};
  threadpool_ = is_borrowing_ ? api_.pthreadpool_create_v2(&executor, this, static_cast<size_t>(num_threads))
                              : api_.pthreadpool_create(static_cast<size_t>(num_threads));
  return threadpool_ != nullptr;
}

Threads::~Threads() {
  if (threadpool_ == nullptr) return;
  if (is_borrowing_) api_.pthreadpool_release_executor_threads(threadpool_);
  while (run_task()) {  // what was scheduled outside of a run: it would be waited for
  }
  api_.pthreadpool_destroy(threadpool_);
}

// A thread of the pthreadpool is scheduled again only after its task has returned, so tasks_ never grows.
void Threads::schedule(void* self, void* argument, void (*function)(void*)) {
  auto& threads = *static_cast<Threads*>(self);
  const std::lock_guard lock(threads.mutex_);
  threads.tasks_.push_back({function, argument});
  threads.num_tasks_.store(threads.tasks_.size(), std::memory_order_release);
}

bool Threads::run_task() {
  if (num_tasks_.load(std::memory_order_acquire) == 0) return false;
  Task task;
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return false;
    task = tasks_.back();
    tasks_.pop_back();
    num_tasks_.store(tasks_.size(), std::memory_order_release);
  }
  task.function(task.argument);
  return true;
}

void Threads::take_part(Runtime* runtime) {
  if (!is_begun_.exchange(true)) {
    status_ = api_.invoke_runtime(runtime);
    api_.pthreadpool_release_executor_threads(threadpool_);
    is_finished_.store(true, std::memory_order_release);
    return;
  }
  for (int idle = 0; !is_finished_.load(std::memory_order_acquire);) {
    if (run_task())
      idle = 0;
    else
      pause(&idle);
  }
}

XnnStatus Threads::run(Runtime* runtime) {
  if (!is_borrowing_) return api_.invoke_runtime(runtime);
  is_begun_ = false;
  is_finished_ = false;
  const auto body = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) take_part(runtime);
  };
  pool_->parallel_for(pool_->num_threads(), 1, body);
  while (run_task()) {  // tasks that nobody came to do: they find that all is done
  }
  return status_;
}

}  // namespace mote::xnnpack
