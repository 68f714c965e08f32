// greedy FILE [TOKENS]: continues each golden sample's prompt of a .mote file greedily, without tokenizer or session.
// Prints the kernels' CPU features, then for each sample the ids and a hash of the bits of all logits.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/machine/cpu_features.h"
#include "runner/program/executor.h"
#include "runner/program/program.h"
#include "runner/program/thread_pool.h"
#include "runner/session/state/memory.h"

namespace mote::test {
namespace {

constexpr int64_t kContext = 256;

class Greedy {
 public:
  static Result<std::unique_ptr<Greedy>> open(const char* path) {
    std::unique_ptr<Greedy> greedy(new Greedy);
    MOTE_ASSIGN(Mapped mapped, map(path));
    MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
    MOTE_ASSIGN(greedy->bound_, bind(std::move(verified)));
    MOTE_ASSIGN(greedy->threads_, make_thread_pool(2));
    MOTE_ASSIGN(greedy->executor_, Executor::create(greedy->bound_, {.max_tokens = kContext}, greedy->threads_.get()));
    return greedy;
  }

  const fb::Program& program() const { return bound_->program(); }

  Status run_sample(const fb::GoldenSample& sample, int64_t tokens) {
    MOTE_ASSIGN(StateMemory states, StateMemory::allocate(*bound_, {kContext, kContext, KvType::kFloat32}));
    const auto& prompt = *sample.prompt_ids();
    std::vector<int32_t> ids(prompt.begin(), prompt.end());
    MOTE_ASSIGN(int32_t id, step("prefill", states, ids, 0));
    int64_t position = static_cast<int64_t>(ids.size());
    for (int64_t i = 0; i < tokens; ++i) {
      std::printf("%d ", id);
      MOTE_ASSIGN(id, step("decode", states, {id}, position++));
    }
    std::printf("logits %016llx\n", static_cast<unsigned long long>(hash_));
    return {};
  }

 private:
  // The id of the largest logit after `ids`.
  Result<int32_t> step(const char* name, StateMemory& states, const std::vector<int32_t>& ids, int64_t position) {
    MOTE_ASSIGN(const uint32_t method, bound_->method_index(name));
    MOTE_RETURN_IF_ERROR(executor_->prepare(method, static_cast<int64_t>(ids.size())));
    for (size_t i = 0; i < ids.size(); ++i) {
      executor_->input(method, 0)[i] = ids[i];
      executor_->input(method, 1)[i] = position + static_cast<int64_t>(i);
    }
    MOTE_RETURN_IF_ERROR(states.reserve(position, static_cast<int64_t>(ids.size())));
    MOTE_RETURN_IF_ERROR(executor_->run(method, {states.kv_caches(), states.recurrent_states()}, cancelled_));
    const std::span<const float> logits = executor_->output(method, 0);
    for (const float logit : logits) hash_ = (hash_ ^ std::bit_cast<uint32_t>(logit)) * 1099511628211u;  // FNV-1a
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

  std::shared_ptr<const Bound> bound_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<Executor> executor_;
  std::atomic<bool> cancelled_{false};
  uint64_t hash_ = 14695981039346656037u;
};

Status run(const char* path, int64_t tokens) {
  if (!cpu_features().ok()) return cpu_features().status();
  std::printf("features %s\n", to_string(*cpu_features()).c_str());
  MOTE_ASSIGN(const std::unique_ptr<Greedy> greedy, Greedy::open(path));
  for (const fb::GoldenSample* sample : *greedy->program().golden_samples()) {
    MOTE_RETURN_IF_ERROR(greedy->run_sample(*sample, tokens));
  }
  return {};
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: greedy FILE [TOKENS]\n");
    return 2;
  }
  const mote::Status status = mote::test::run(argv[1], argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 24);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
