#include "tests/fuzz/run_program.h"

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "base/size.h"
#include "runner/program/executor.h"
#include "runner/program/thread_pool.h"

namespace mote::test {
namespace {

constexpr int64_t kTokens = 2;
constexpr int64_t kContext = 4;
constexpr int64_t kMaxBytes = int64_t{64} << 20;

// The memory of a session's states, within kMaxBytes.
class StateMemory {
 public:
  Status allocate(const Bound& bound) {
    const auto& states = *bound.program().states();
    caches_.resize(states.size());
    recurrent_.resize(states.size());
    for (uint32_t i = 0; i < states.size(); ++i) {
      const bool is_cache = bound.state_shapes()[i].is_kv_cache;
      MOTE_RETURN_IF_ERROR(is_cache ? add_cache(*states[i], caches_[i])
                                    : add_recurrent(bound.state_shapes()[i], recurrent_[i]));
    }
    return {};
  }

  States states() { return {caches_, recurrent_}; }

 private:
  Result<std::byte*> take(Size bytes) {
    used_ = used_ + bytes;
    MOTE_REQUIRE(used_.at_most(kMaxBytes), Code::kOutOfMemory, "the states need more than %lld bytes",
                 static_cast<long long>(kMaxBytes));
    blocks_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes.value())));
    return blocks_.back().get();
  }

  Status add_cache(const fb::State& state, KvCache& cache) {
    cache.num_heads = state.num_heads();
    cache.head_dim = state.head_dim();
    cache.value_head_dim = state.value_head_dim();
    cache.window = state.window();
    cache.num_sinks = state.num_sink_positions();
    cache.stride = state.stride();
    cache.capacity = cache.window == 0 ? kContext : int64_t{cache.num_sinks} + cache.window + kTokens - 1;
    MOTE_ASSIGN(std::byte * memory, take(cache.page_bytes() * cache.num_pages()));
    std::vector<std::byte*>& pages = pages_.emplace_back();
    for (int64_t i = 0; i < cache.num_pages(); ++i) pages.push_back(memory + i * cache.page_bytes().value());
    cache.pages = pages.data();
    MOTE_ASSIGN(std::byte * positions, take(Size(cache.num_slots()) * sizeof(int64_t)));
    cache.positions = reinterpret_cast<int64_t*>(positions);
    std::fill_n(cache.positions, cache.num_slots(), -1);
    return {};
  }

  Status add_recurrent(const StateShape& shape, RecurrentState& state) {
    Size elements = 1;
    for (int i = 0; i < shape.recurrent.rank; ++i) elements = elements * shape.recurrent.size(i);
    state.tensor = shape.recurrent;
    MOTE_ASSIGN(state.tensor.data, take(elements * sizeof(float)));
    return {};
  }

  Size used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::list<std::vector<std::byte*>> pages_;
  std::vector<KvCache> caches_;
  std::vector<RecurrentState> recurrent_;
};

Status run_method(Executor& executor, const Bound& bound, States states, const char* name, int64_t position,
                  int64_t tokens) {
  const std::atomic<bool> cancelled{false};
  MOTE_ASSIGN(const uint32_t method, bound.method_index(name));
  MOTE_RETURN_IF_ERROR(executor.prepare(method, tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    executor.input(method, 0)[static_cast<size_t>(t)] = (position + t) % bound.program().vocab_size();
    executor.input(method, 1)[static_cast<size_t>(t)] = position + t;
  }
  MOTE_RETURN_IF_ERROR(executor.run(method, states, cancelled));
  const std::span<const float> logits = executor.output(method, 0);
  MOTE_REQUIRE(logits.size() == static_cast<size_t>(bound.program().vocab_size()), Code::kInternal,
               "logits of another size");
  return {};
}

}  // namespace

Status run_program(std::span<const std::byte> file) {
  MOTE_ASSIGN(Mapped mapped, map_bytes("mutated.mote", file));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  MOTE_ASSIGN(const std::shared_ptr<const Bound> bound, bind(std::move(verified)));
  MOTE_ASSIGN(const std::unique_ptr<ThreadPool> threads, make_thread_pool(1));
  const ExecutorOptions options{.max_tokens = kTokens, .max_arena_bytes = kMaxBytes};
  MOTE_ASSIGN(const std::unique_ptr<Executor> executor, Executor::create(bound, options, threads.get()));
  StateMemory memory;
  MOTE_RETURN_IF_ERROR(memory.allocate(*bound));
  MOTE_RETURN_IF_ERROR(run_method(*executor, *bound, memory.states(), "prefill", 0, kTokens));
  return run_method(*executor, *bound, memory.states(), "decode", kTokens, 1);
}

}  // namespace mote::test
