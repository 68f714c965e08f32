// Splits a loop over threads. One pool a session; the calling thread works too.
#pragma once

#include <cstdint>
#include <functional>

namespace mote {

class ThreadPool {
 public:
  virtual ~ThreadPool() = default;
  virtual int num_threads() const = 0;
  // Calls body(begin, end, thread) over disjoint ranges that cover [0, count), each at least `grain` long
  // but for the last, and returns when all are done. Results must not depend on the split.
  virtual void parallel_for(int64_t count, int64_t grain,
                            const std::function<void(int64_t begin, int64_t end, int thread)>& body) = 0;

  // The same for a lambda, which is referred to and not copied: a std::function made from one that captures more than
  // two words would allocate in every decode step.
  template <typename Body>
  void parallel_for(int64_t count, int64_t grain, const Body& body) {
    const std::function<void(int64_t, int64_t, int)> reference(std::cref(body));
    parallel_for(count, grain, reference);
  }
};

}  // namespace mote
