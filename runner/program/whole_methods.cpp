#include "runner/program/whole_methods.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "runner/program/cpu_count.h"
#include "runner/program/executor.h"
#include "runner/program/thread_pool.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

// A sequence whose states the delegates keep.
class MethodsDelegate final : public Delegate {
 public:
  MethodsDelegate(std::unique_ptr<ThreadPool> threads, std::unique_ptr<Executor> executor)
      : threads_(std::move(threads)),
        executor_(std::move(executor)),
        kv_caches_(executor_->bound()->state_shapes().size()),
        recurrent_states_(kv_caches_.size()) {}

  Result<size_t> prepare(size_t method, const Call&, int64_t tokens) override {
    MOTE_RETURN_IF_ERROR(executor_->prepare(static_cast<uint32_t>(method), tokens));
    return size_t{0};
  }

  Status execute(size_t part, const Call& call, KernelContext& context) override {
    const auto method = static_cast<uint32_t>(part);
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const std::span<int64_t> input = executor_->input(method, i);
      std::copy_n(call.inputs[i]->as<int64_t>(), input.size(), input.begin());
    }
    SequenceStates states = context.sequences.front();
    states.kv_caches = kv_caches_;
    states.recurrent_states = recurrent_states_;
    MOTE_RETURN_IF_ERROR(executor_->run_together(method, {&states, 1}, cancelled_));
    std::ranges::copy(executor_->output(method, 0), call.outputs.front()->as<float>());
    return {};
  }

  bool seek(int64_t position) override { return executor_->delegates().seek(position); }
  int64_t most_taken_back() const override { return executor_->delegates().most_taken_back(); }

 private:
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<Executor> executor_;
  std::vector<KvCache> kv_caches_;  // which no kernel uses
  std::vector<RecurrentState> recurrent_states_;
  std::atomic<bool> cancelled_{false};
};

class MethodsProgram final : public DelegateProgram {
 public:
  MethodsProgram(std::shared_ptr<const Bound> bound, int64_t longest) : bound_(std::move(bound)), longest_(longest) {}

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions& options) const override {
    MOTE_ASSIGN(std::unique_ptr<ThreadPool> threads, make_thread_pool(std::min(available_cores(), kMaxThreads)));
    ExecutorOptions own;
    own.max_tokens = std::max(options.max_tokens, longest_);
    own.context_length = options.context_length;
    MOTE_ASSIGN(std::unique_ptr<Executor> executor, Executor::create(bound_, own, threads.get()));
    return std::unique_ptr<Delegate>(std::make_unique<MethodsDelegate>(std::move(threads), std::move(executor)));
  }
  bool has_state() const override { return bound_->has_delegate_state(); }

 private:
  std::shared_ptr<const Bound> bound_;
  int64_t longest_;  // of methods with calls of one length
};

}  // namespace

Result<WholeMethods> whole_methods(std::shared_ptr<const Bound> bound) {
  WholeMethods made;
  int64_t longest = 1;
  for (uint32_t i = 0; i < bound->num_methods(); ++i) {
    const fb::Method& method = bound->method(i);
    if (std::ranges::find(kGenerating, text_of(*method.name())) == std::end(kGenerating)) continue;
    bool keeps_states = false;
    for (size_t state = 0; state < bound->state_shapes().size(); ++state)
      keeps_states = keeps_states || uses_state(method, static_cast<int64_t>(state));
    if (keeps_states) continue;
    const int64_t tokens = method.min_tokens() == method.max_tokens() ? method.max_tokens() : 0;
    const auto& shape = *method.values()->Get(static_cast<uint32_t>(method.outputs()->Get(0)))->shape();
    const fb::Dim& rows = *shape.Get(shape.size() - 2);
    const bool every_row = rows.tokens() != 0 || (tokens > 0 && rows.constant() == tokens);
    made.parts.push_back({i, 0, 1, tokens, shape.Get(shape.size() - 1)->constant(), every_row});
    longest = std::max(longest, tokens);
  }
  made.program = std::make_shared<MethodsProgram>(std::move(bound), longest);
  return made;
}

}  // namespace mote
