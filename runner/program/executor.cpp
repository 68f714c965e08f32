#include "runner/program/executor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <vector>

#include "base/large_files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/adapters.h"
#include "runner/program/invocation.h"

namespace mote {
namespace {

// Some of a file's pages must then make room for others, and those of experts that nobody chose are best.
bool exceeds_memory(const Mapped& file) {
  static const int64_t memory = memory_limit_bytes();  // asked once: sessions and forks open often
  size_t bytes = 0;
  for (const std::span<const std::byte> pages : file.mapped_pages()) bytes += pages.size();
  const bool exceeds = static_cast<int64_t>(bytes) > memory / 4 * 3;
  if (exceeds) {
    MOTE_LOG_LINE(kInfo,
                  "%s: %zu bytes are more than three quarters of the memory for them: chosen experts are read ahead",
                  file.name().c_str(), bytes);
  }
  return exceeds;
}

constexpr size_t kAlignment = 64;

// The instructions of a method, and what runs each of them.
struct Instructions {
  std::span<const Op* const> ops;
  std::span<const std::optional<DelegateCall>> delegate_calls;
  Delegates& delegates;
  std::vector<DelegateStep>* steps = nullptr;  // what delegates measure is added to it
  std::optional<size_t> asked{};               // the instruction whose `count` largest elements are enough
  size_t count = 0;

  Status run(size_t index, const Call& call, KernelContext& context) const {
    if (asked == index) return delegates.execute_largest(*delegate_calls[index], call, context, count, steps);
    if (!delegate_calls.empty() && delegate_calls[index].has_value())
      return delegates.execute(*delegate_calls[index], call, context, steps);
    return ops[index]->run(call, context);
  }
};

// Runs a method's instructions in order and calls after(index) after each one, which returns whether to go on. Views
// run nothing.
template <typename After>
Status run_instructions(const Invocation& invocation, const Instructions& instructions, const KernelContext& memory,
                        const std::atomic<bool>& cancelled, const After& after) {
  KernelContext context = memory;
  for (size_t i = 0; i < instructions.ops.size(); ++i) {
    MOTE_REQUIRE(!cancelled.load(std::memory_order_relaxed), Code::kCancelled, "cancelled");
    if (!instructions.ops[i]->is_view) {
      context.maxima = invocation.maxima_source() == i ? memory.maxima : nullptr;
      if (const Status status = instructions.run(i, invocation.calls()[i], context); !status.ok()) {
        return Status(status.code(), invocation.place(i) + ": " + status.message());
      }
    }
    MOTE_REQUIRE(after(i), Code::kCancelled, "cancelled");
  }
  return {};
}

// Hands out what instructions compute, in memory where a view's elements lie in a row.
class ValueReader {
 public:
  ValueReader(const Invocation& invocation, uint32_t method, const ValueSink& sink)
      : invocation_(invocation), method_(method), sink_(sink) {}

  bool give(size_t instruction) {
    const std::span<Tensor* const> outputs = invocation_.calls()[instruction].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& tensor = *outputs[i];
      if (repeats_elements(tensor)) continue;
      const Tensor packed = tensor.is_contiguous() ? tensor : copy(tensor);
      if (!sink_({method_, static_cast<uint32_t>(instruction), static_cast<uint32_t>(i), &packed})) return false;
    }
    return true;
  }

 private:
  // An expanded view, which may have far more elements than there is memory.
  static bool repeats_elements(const Tensor& tensor) {
    for (int dim = 0; dim < tensor.rank; ++dim) {
      if (tensor.size(dim) > 1 && tensor.stride(dim) == 0) return true;
    }
    return false;
  }

  Tensor copy(const Tensor& from) {
    const auto width = static_cast<size_t>(dtype_bytes(from.dtype));
    const auto count = static_cast<size_t>(from.num_elements());
    copy_.resize(count * width);
    std::array<int64_t, kMaxRank> index{};
    for (size_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      for (int dim = 0; dim < from.rank; ++dim) offset += index[static_cast<size_t>(dim)] * from.stride(dim);
      std::memcpy(copy_.data() + i * width, from.as<std::byte>() + static_cast<size_t>(offset) * width, width);
      for (int dim = from.rank - 1; dim >= 0 && ++index[static_cast<size_t>(dim)] == from.size(dim); --dim)
        index[static_cast<size_t>(dim)] = 0;
    }
    Tensor to = from;
    to.data = copy_.data();
    to.set_contiguous_strides();
    return to;
  }

  const Invocation& invocation_;
  uint32_t method_;
  const ValueSink& sink_;
  std::vector<std::byte> copy_;
};

// Runs a method that is watched. The end of one instruction counts as the start of the next, so that the clock is read
// once for both; the time that a sink takes counts for none.
Status run_watched(const Invocation& invocation, Instructions instructions, const KernelContext& context,
                   const std::atomic<bool>& cancelled, uint32_t method, const Watch& watch) {
  using Clock = Profile::Clock;
  Profile::Call* call = watch.profile == nullptr ? nullptr : &watch.profile->begin_call(method, invocation.tokens());
  std::vector<DelegateStep> steps;
  if (call != nullptr) instructions.steps = &steps;
  ValueReader reader(invocation, method, watch.sink);
  Clock::time_point start = Clock::now();
  const Status status = run_instructions(invocation, instructions, context, cancelled, [&](size_t i) {
    if (call != nullptr && !instructions.ops[i]->is_view) {
      const Clock::time_point end = Clock::now();
      if (steps.empty()) {
        watch.profile->add(static_cast<uint32_t>(i), start, end,
                           instructions.ops[i]->cost(invocation.calls()[i], context));
      } else {
        watch.profile->add_steps(static_cast<uint32_t>(i), end, steps);
        steps.clear();
      }
      start = end;
    }
    if (!watch.sink) return true;
    const bool goes_on = reader.give(i);
    start = Clock::now();
    return goes_on;
  });
  if (call != nullptr) call->end = Clock::now();
  return status;
}

}  // namespace

struct Executor::State {
  // A block of a session's working memory.
  struct Memory {
    AlignedMemory data;
    size_t bytes = 0;

    bool allocate(size_t needed_bytes) {
      data.reset();  // first, so that both are never there
      data = allocate_aligned(needed_bytes);
      bytes = data != nullptr ? needed_bytes : 0;
      return data != nullptr;
    }
  };

  std::shared_ptr<const Bound> bound;
  ExecutorOptions options;
  ThreadPool* threads = nullptr;
  Memory arena;
  Memory scratch;
  bool reads_ahead = false;
  Memory adapters;  // working memory; none until a sequence has an adapter
  Delegates delegates;
  std::vector<std::unique_ptr<Invocation>> invocations;  // [methods]
  size_t wanted_largest = 0;
  struct Found {
    uint32_t method = 0;
    std::span<const LargestElement> largest{};
    bool has_output = true;
  } found{};  // by the latest run

  const char* name() const { return bound->file().name().c_str(); }

  bool runs_kernel(uint32_t method, size_t instruction) const {
    const auto calls = bound->delegate_calls(method);
    return calls.empty() || !calls[instruction].has_value();
  }

  // Largest T of a method in this session; 0 if the session's max_tokens is below the method's smallest.
  int64_t largest_tokens(const fb::Method& method) const {
    const int64_t largest = std::min<int64_t>(options.max_tokens, method.max_tokens());
    return largest < method.min_tokens() ? 0 : largest;
  }

  Status allocate_arena() {
    Size needed = 0;
    for (uint32_t i = 0; i < bound->num_methods(); ++i) {
      const Size bytes = mote::arena_bytes(bound->method(i), largest_tokens(bound->method(i)));
      if (!bytes.at_most(needed)) needed = bytes;
    }
    const bool fits = needed.at_most(options.max_arena_bytes);
    MOTE_REQUIRE(
        fits && arena.allocate(static_cast<size_t>(needed.unsigned_value())), Code::kOutOfMemory,
        "%s: activations for calls of %lld tokens need %lld bytes, more than %s; choose a smaller prefill chunk",
        name(), static_cast<long long>(options.max_tokens), static_cast<long long>(needed.value()),
        fits ? "the system has" : "this session may use");
    return {};
  }

  // The scratch memory holds that of the kernels, and behind it the maxima.
  static size_t maxima_offset(const Invocation& invocation) {
    return static_cast<size_t>(Size(invocation.scratch_bytes()).align_up(kAlignment).unsigned_value());
  }
  static size_t needed_scratch(const Invocation& invocation) {
    return maxima_offset(invocation) + static_cast<size_t>(invocation.count_maxima()) * sizeof(float);
  }
  std::span<float> maxima(const Invocation& invocation) const {
    if (!invocation.maxima_source().has_value()) return {};
    return {reinterpret_cast<float*>(scratch.data.get() + maxima_offset(invocation)),
            static_cast<size_t>(invocation.count_maxima())};
  }

  // may_ask: whether outputs may be left where a delegate has them
  Instructions instructions(uint32_t method, bool may_ask) {
    Instructions made{bound->ops(method), bound->delegate_calls(method), delegates};
    if (may_ask && wanted_largest > 0) made.asked = invocations[method]->delegate_source();
    made.count = wanted_largest;
    return made;
  }
  void note_found(uint32_t method, std::optional<size_t> asked) {
    found = {};
    if (asked.has_value()) found = {method, delegates.largest(*bound->delegate_calls(method)[*asked])};
    found.has_output = found.largest.empty();
  }

  Status reserve_scratch(size_t needed_bytes) {
    if (needed_bytes <= scratch.bytes && scratch.data != nullptr) return {};
    const bool fits = (Size(needed_bytes) + arena.bytes).at_most(options.max_arena_bytes);
    MOTE_REQUIRE(fits && scratch.allocate(needed_bytes), Code::kOutOfMemory,
                 "%s: working memory of the kernels needs %zu bytes, more than %s; choose a smaller prefill chunk",
                 name(), needed_bytes, fits ? "the system has" : "this session may use");
    return {};
  }

  // The part of it that a call of these sequences needs.
  Result<std::span<std::byte>> adapter_memory(std::span<const SequenceStates> sequences) {
    const size_t needed = adapter_memory_bytes(sequences, threads->num_threads());
    if (needed > adapters.bytes) {
      MOTE_REQUIRE(bound->backends().empty(), Code::kUnsupportedBackend,
                   "%s: adapters change weights that the backends of target %s read themselves: load the model for the "
                   "backend cpu",
                   name(), std::string(bound->target()).c_str());
      const bool fits = (Size(needed) + arena.bytes).at_most(options.max_arena_bytes);
      MOTE_REQUIRE(fits && adapters.allocate(needed), Code::kOutOfMemory,
                   "%s: working memory of the adapters needs %zu bytes, more than %s; choose a smaller prefill chunk",
                   name(), needed, fits ? "the system has" : "this session may use");
    }
    return std::span(adapters.data.get(), needed);
  }

  Status prepare(uint32_t method, int64_t tokens) {
    MOTE_REQUIRE(method < invocations.size(), Code::kInvalidArgument, "method = %u: must be below %zu", method,
                 invocations.size());
    Invocation& invocation = *invocations[method];
    if (tokens > 0 && invocation.tokens() == tokens) return {};
    MOTE_REQUIRE(tokens >= 1 && tokens <= options.max_tokens, Code::kInvalidArgument,
                 "tokens = %lld: must be 1..%lld, the session's largest call", static_cast<long long>(tokens),
                 static_cast<long long>(options.max_tokens));
    MOTE_RETURN_IF_ERROR(invocation.prepare(tokens, arena.data.get(), threads->num_threads(), &delegates));
    const Status status = reserve_scratch(needed_scratch(invocation));
    if (!status.ok()) invocation.forget();
    return status;
  }

  Status prepare_all() {
    for (uint32_t i = 0; i < bound->num_methods(); ++i) invocations.push_back(std::make_unique<Invocation>(*bound, i));
    for (uint32_t i = 0; i < bound->num_methods(); ++i) {
      const int64_t tokens = largest_tokens(bound->method(i));
      if (tokens > 0) MOTE_RETURN_IF_ERROR(prepare(i, tokens));
    }
    return {};
  }
};

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const Bound> bound, const ExecutorOptions& options,
                                                   ThreadPool* threads) try {
  MOTE_REQUIRE(bound != nullptr && threads != nullptr, Code::kInvalidArgument,
               "an executor needs a program and a thread pool");
  MOTE_REQUIRE(options.max_tokens >= 1 && options.max_tokens <= kMaxTokens, Code::kInvalidArgument,
               "max_tokens = %lld: must be 1..%lld", static_cast<long long>(options.max_tokens),
               static_cast<long long>(kMaxTokens));
  auto state = std::make_unique<State>();
  state->bound = std::move(bound);
  state->options = options;
  state->reads_ahead = exceeds_memory(state->bound->file());
  state->threads = threads;
  MOTE_ASSIGN(state->delegates,
              Delegates::open(state->bound->backends(), {threads, options.max_tokens, options.context_length,
                                                         options.rewind_tokens, options.rewind_bytes}));
  MOTE_RETURN_IF_ERROR(state->allocate_arena());
  MOTE_RETURN_IF_ERROR(state->prepare_all());
  return std::unique_ptr<Executor>(new Executor(std::move(state)));
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "the system has no memory for another session"); }

Status Executor::prepare(uint32_t method, int64_t tokens) { return state_->prepare(method, tokens); }

std::span<int64_t> Executor::input(uint32_t method, size_t index) {
  const Tensor& tensor = state_->invocations[method]->input(index);
  return {tensor.as<int64_t>(), static_cast<size_t>(tensor.num_elements())};
}

std::span<float> Executor::float_input(uint32_t method, size_t index) {
  const Tensor& tensor = state_->invocations[method]->input(index);
  return {tensor.as<float>(), static_cast<size_t>(tensor.num_elements())};
}

std::span<const float> Executor::output(uint32_t method, size_t index) const {
  const Tensor& tensor = state_->invocations[method]->output(index);
  return {tensor.as<float>(), static_cast<size_t>(tensor.num_elements())};
}

std::span<const float> Executor::maxima(uint32_t method) const { return state_->maxima(*state_->invocations[method]); }

void Executor::want_largest(size_t count) { state_->wanted_largest = std::min(count, kMostLargest); }

std::span<const LargestElement> Executor::largest(uint32_t method) const {
  return state_->found.method == method ? state_->found.largest : std::span<const LargestElement>();
}

Status Executor::read_output(uint32_t method) {
  if (largest(method).empty() || state_->found.has_output) return {};
  const Invocation& invocation = *state_->invocations[method];
  const size_t source = *invocation.delegate_source();
  MOTE_RETURN_IF_ERROR(state_->delegates.read_output(*state_->bound->delegate_calls(method)[source],
                                                     invocation.calls()[source].outputs[0]));
  state_->found.has_output = true;
  return {};
}

std::span<const float> Executor::source(uint32_t method) const {
  const Invocation& invocation = *state_->invocations[method];
  if (!invocation.maxima_source().has_value()) return {};
  const Tensor& read = *invocation.calls()[*invocation.maxima_source()].inputs[0];
  if (!read.is_contiguous()) return {};
  return {read.as<float>(), static_cast<size_t>(read.num_elements())};
}

Status Executor::run(uint32_t method, States states, const std::atomic<bool>& cancelled, const Watch& watch) {
  const int64_t tokens = method < state_->invocations.size() ? state_->invocations[method]->tokens() : 0;
  const SequenceStates sequence{tokens, states.kv_caches, states.recurrent_states};
  return run_together(method, {&sequence, 1}, cancelled, watch);
}

Status Executor::run_together(uint32_t method, std::span<const SequenceStates> sequences,
                              const std::atomic<bool>& cancelled, const Watch& watch) {
  MOTE_REQUIRE(method < state_->invocations.size() && state_->invocations[method]->tokens() > 0, Code::kInvalidArgument,
               "method %u: must be prepared before it runs", method);
  const Invocation& invocation = *state_->invocations[method];
  const size_t num_states = state_->bound->state_shapes().size();
  int64_t tokens = 0;
  for (const SequenceStates& sequence : sequences) {
    MOTE_REQUIRE(sequence.kv_caches.size() == num_states && sequence.recurrent_states.size() == num_states,
                 Code::kInvalidArgument, "states: must be %zu KV caches and as many recurrent states", num_states);
    MOTE_REQUIRE(sequence.tokens >= 1 && sequence.tokens <= invocation.tokens(), Code::kInvalidArgument,
                 "a sequence of %lld tokens: must be 1..%lld", static_cast<long long>(sequence.tokens),
                 static_cast<long long>(invocation.tokens()));
    tokens += sequence.tokens;
  }
  MOTE_REQUIRE(tokens == invocation.tokens(), Code::kInvalidArgument,
               "sequences of %lld tokens: must be the method's %lld", static_cast<long long>(tokens),
               static_cast<long long>(invocation.tokens()));
  const Instructions instructions = state_->instructions(method, watch.sink == nullptr);
  MOTE_ASSIGN(const std::span<std::byte> adapter_memory, state_->adapter_memory(sequences));
  const KernelContext context{state_->threads, {state_->scratch.data.get(), invocation.scratch_bytes()},
                              sequences,       state_->maxima(invocation).data(),
                              adapter_memory,  state_->reads_ahead};
  const Status status =
      watch.profile != nullptr || watch.sink
          ? run_watched(invocation, instructions, context, cancelled, method, watch)
          : run_instructions(invocation, instructions, context, cancelled, [](size_t) { return true; });
  MOTE_RETURN_IF_ERROR(state_->bound->file().check_readable());
  state_->note_found(method, status.ok() ? instructions.asked : std::nullopt);
  return status;
}

std::vector<int64_t> Executor::recurrent_rows(uint32_t method) const {
  std::vector<int64_t> rows(state_->bound->state_shapes().size(), 0);
  const std::span<const Call> calls = state_->invocations[method]->calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!state_->runs_kernel(method, i) || state_->bound->ops(method)[i]->recurrent_rows == nullptr) continue;
    const RecurrentRows recorded = state_->bound->ops(method)[i]->recurrent_rows(calls[i]);
    rows[recorded.state] = recorded.row_floats;
  }
  return rows;
}

Status Executor::replay(uint32_t method, const SequenceStates& states) {
  const std::span<const Call> calls = state_->invocations[method]->calls();
  KernelContext context{
      state_->threads, {state_->scratch.data.get(), state_->scratch.bytes}, {&states, 1}, nullptr, {}};
  for (size_t i = 0; i < calls.size(); ++i) {
    const Op& op = *state_->bound->ops(method)[i];
    if (state_->runs_kernel(method, i) && op.replay != nullptr) MOTE_RETURN_IF_ERROR(op.replay(calls[i], context));
  }
  return {};
}

const std::shared_ptr<const Bound>& Executor::bound() const { return state_->bound; }
Delegates& Executor::delegates() { return state_->delegates; }
const Delegates& Executor::delegates() const { return state_->delegates; }
uint64_t Executor::arena_bytes() const { return state_->arena.bytes; }
uint64_t Executor::scratch_bytes() const { return state_->scratch.bytes + state_->adapters.bytes; }
uint64_t Executor::delegate_bytes() const { return state_->delegates.held_bytes(); }

}  // namespace mote
