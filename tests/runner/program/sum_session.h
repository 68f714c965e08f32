// A session's parts over a model made of test ops, with one recurrent state.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "runner/program/executor.h"
#include "runner/program/thread_pool.h"
#include "tests/runner/program/test_ops.h"

namespace mote::test {

class SumSession {
 public:
  SumSession(Result<std::shared_ptr<const Bound>> bound, ExecutorOptions options, int num_threads = 2) {
    EXPECT_TRUE(bound.ok()) << bound.status().message();
    if (!bound.ok()) return;
    threads_ = *make_thread_pool(num_threads);
    auto executor = Executor::create(*bound, options, threads_.get());
    status = executor.status();
    if (executor.ok()) executor_ = *std::move(executor);
    bound_ = *bound;
    state_.tensor.data = sums_;
    state_.tensor.rank = 1;
    state_.tensor.sizes[0] = kDim;
    state_.tensor.set_contiguous_strides();
  }

  uint32_t index(const char* method) const { return *bound_->method_index(method); }
  Executor& executor() { return *executor_; }

  Status run(const char* method, const std::vector<int64_t>& ids) {
    const uint32_t chosen = index(method);
    MOTE_RETURN_IF_ERROR(executor_->prepare(chosen, static_cast<int64_t>(ids.size())));
    std::copy(ids.begin(), ids.end(), executor_->input(chosen, 0).begin());
    return executor_->run(chosen, {{&cache_, 1}, {&state_, 1}}, cancel_flag);
  }

  std::vector<float> logits(const char* method) {
    const auto span = executor_->output(index(method), 0);
    return {span.begin(), span.end()};
  }

  Status status;

 private:
  std::shared_ptr<const Bound> bound_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<Executor> executor_;
  KvCache cache_;
  RecurrentState state_;
  float sums_[kDim] = {};
};

}  // namespace mote::test
