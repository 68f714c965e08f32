#include "runner/llm/session.h"

#include <algorithm>

#include "runner/llm/sampling/logprobs.h"

namespace mote {
namespace {

constexpr int64_t kDefaultContextLength = 4096;
constexpr int64_t kDefaultPrefillChunk = 256;

Status out_of_range(const char* name, int64_t value, int64_t low, int64_t high) {
  return {Code::kInvalidArgument, format("%s = %lld: must be %lld..%lld, or 0 for the default", name,
                                         static_cast<long long>(value), static_cast<long long>(low),
                                         static_cast<long long>(high))};
}

}  // namespace

Result<SessionOptions> resolve(const Model& model, SessionOptions options) {
  const int64_t longest = model.max_position_embeddings();
  if (options.context_length < 0 || options.context_length > longest) {
    return out_of_range("context_length", options.context_length, 1, longest);
  }
  if (options.prefill_chunk < 0 || options.prefill_chunk > kMaxTokens) {
    return out_of_range("prefill_chunk", options.prefill_chunk, 1, kMaxTokens);
  }
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return out_of_range("threads", options.num_threads, 1, kMaxThreads);
  }
  const int64_t context_length = options.context_length == 0 ? kDefaultContextLength : options.context_length;
  options.context_length = std::min(context_length, longest);
  if (options.prefill_chunk == 0) options.prefill_chunk = kDefaultPrefillChunk;
  options.prefill_chunk = std::min(options.prefill_chunk, options.context_length);
  for (const fb::Method* method : *model.program().methods()) {
    if (method->name()->string_view() == "decode") continue;
    options.prefill_chunk = std::min<int64_t>(options.prefill_chunk, method->max_tokens());
  }
  return options;
}

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<const Model> model, const SessionOptions& requested,
                                               const Engine* engine) {
  MOTE_ASSIGN(const SessionOptions options, resolve(*model, requested));
  MOTE_ASSIGN(StateMemory states, StateMemory::allocate(model->program(), {options.context_length, options.prefill_chunk,
                                                                           options.kv_type}));
  std::unique_ptr<Session> session(new Session(std::move(model), options, std::move(states)));
  MOTE_RETURN_IF_ERROR(session->prepare_methods(engine));
  return session;
}

Status Session::prepare_methods(const Engine* engine) {
  const std::shared_ptr<const Bound>& bound = model_->bound();
  MOTE_ASSIGN(prefill_, bound->method_index("prefill"));
  MOTE_ASSIGN(decode_, bound->method_index("decode"));
  MOTE_ASSIGN(verify_, bound->method_index("verify"));
  if (engine != nullptr) {
    cpus_ = engine->cpus, threads_ = engine->threads, executor_ = engine->executor;
  } else {
    MOTE_ASSIGN(Engine own, make_engine(bound, {options_.num_threads, options_.cpus, options_.priority, options_.prefill_chunk}));
    cpus_ = std::move(own.cpus), threads_ = std::move(own.threads), executor_ = std::move(own.executor);
    MOTE_RETURN_IF_ERROR(executor_->prepare(decode_, 1));
  }
  tokens_.reserve(static_cast<size_t>(options_.context_length));
  return {};
}

Status Session::require_room(size_t count) const {
  const auto room = static_cast<size_t>(context_length() - position());
  MOTE_REQUIRE(count <= room, Code::kContextFull,
               "%zu more tokens at position %lld do not fit into the context of %lld positions: open the session with a "
               "larger context_length (this model allows %d) or give fewer tokens",
               count, static_cast<long long>(position()), static_cast<long long>(context_length()),
               model_->max_position_embeddings());
  return {};
}

Status Session::check_ids(std::span<const int32_t> ids) const {
  const int32_t vocab_size = model_->vocab_size();
  for (size_t i = 0; i < ids.size(); ++i) {
    MOTE_REQUIRE(ids[i] >= 0 && ids[i] < vocab_size, Code::kInvalidArgument,
                 "token id %d at index %zu: must be 0..%d, below the vocabulary size", ids[i], i, vocab_size - 1);
  }
  return {};
}

Status Session::check_call(std::span<const int32_t> ids) const {
  MOTE_REQUIRE(!ids.empty(), Code::kInvalidArgument, "no tokens: at least one is needed");
  MOTE_REQUIRE(!interrupted_, Code::kInvalidArgument,
               "the last call on this session failed half-way through a recurrent state: reset the session first");
  MOTE_RETURN_IF_ERROR(require_room(ids.size()));
  MOTE_RETURN_IF_ERROR(check_ids(ids));
  return model_->bound()->file().check_unchanged();
}

Result<SequenceStates> Session::begin_call(std::span<const int32_t> ids) {
  MOTE_RETURN_IF_ERROR(check_call(ids));
  return begin_chunk(ids);
}

Result<SequenceStates> Session::begin_chunk(std::span<const int32_t> ids) {
  if (take_cancel()) return Status(Code::kCancelled, "cancelled");
  return SequenceStates{static_cast<int64_t>(ids.size()), states_.kv_caches(), states_.recurrent_states()};
}

void Session::end_call(std::span<const int32_t> ids, const Status& status) {
  if (status.ok()) {
    tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  } else {
    interrupted_ = states_.has_recurrent();
  }
}

Result<std::span<const float>> Session::run(uint32_t method, std::span<const int32_t> ids) {
  MOTE_RETURN_IF_ERROR(executor_->prepare(method, static_cast<int64_t>(ids.size())));
  MOTE_ASSIGN(const SequenceStates states, begin_chunk(ids));
  const std::span<int64_t> input_ids = executor_->input(method, 0);
  const std::span<int64_t> position_ids = executor_->input(method, 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    input_ids[i] = ids[i];
    position_ids[i] = position() + static_cast<int64_t>(i);
  }
  const ScopedBinding binding(cpus_);
  const Status status = executor_->run_together(method, {&states, 1}, cancelled_, profile_.get());
  end_call(ids, status);
  if (status.code() == Code::kCancelled) cancelled_.store(false);
  if (!status.ok()) return status;
  last_method_ = method;
  return executor_->output(method, 0);
}

Result<std::span<const float>> Session::prefill(std::span<const int32_t> ids) {
  MOTE_RETURN_IF_ERROR(check_call(ids));
  const auto chunk = static_cast<size_t>(options_.prefill_chunk);
  while (ids.size() > chunk) {
    const auto logits = run(prefill_, ids.first(chunk));
    if (!logits.ok()) return logits.status();
    ids = ids.subspan(chunk);
  }
  return run(prefill_, ids);
}

Result<std::span<const float>> Session::decode(int32_t id) {
  const std::span<const int32_t> ids(&id, 1);
  MOTE_RETURN_IF_ERROR(check_call(ids));
  return run(decode_, ids);
}

template <typename Body>
Status Session::for_each_row(std::span<const int32_t> ids, const Body& body) {
  MOTE_RETURN_IF_ERROR(check_call(ids));
  const auto vocab_size = static_cast<size_t>(model_->vocab_size());
  const auto chunk = static_cast<size_t>(options_.prefill_chunk);
  for (size_t begin = 0; begin < ids.size(); begin += chunk) {
    const size_t count = std::min(ids.size() - begin, chunk);
    MOTE_ASSIGN(const std::span<const float> rows, run(verify_, ids.subspan(begin, count)));
    for (size_t i = 0; i < count; ++i) body(begin + i, rows.subspan(i * vocab_size, vocab_size));
  }
  return {};
}

Status Session::verify(std::span<const int32_t> ids, float* logits) {
  const auto vocab_size = static_cast<size_t>(model_->vocab_size());
  return for_each_row(ids, [&](size_t i, std::span<const float> row) {
    std::copy(row.begin(), row.end(), logits + i * vocab_size);
  });
}

Status Session::score(std::span<const int32_t> ids, float* logprobs) {
  return for_each_row(ids, [&](size_t i, std::span<const float> row) {
    if (i + 1 < ids.size()) logprobs[i] = log_probability(row[static_cast<size_t>(ids[i + 1])], log_sum_exp(row));
  });
}

Status Session::rewind(int64_t to) {
  MOTE_REQUIRE(to >= 0 && to <= position(), Code::kInvalidArgument, "position = %lld: must be 0..%lld, the present one",
               static_cast<long long>(to), static_cast<long long>(position()));
  if (to == 0) {
    reset();
    return {};
  }
  if (!interrupted_ && states_.rewind(position(), to)) {
    tokens_.resize(static_cast<size_t>(to));
    return {};
  }
  const std::vector<int32_t> kept(tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(to));
  reset();
  return prefill(kept).status();
}

void Session::reset() {
  tokens_.clear();
  states_.clear();
  interrupted_ = false;
}

}  // namespace mote
