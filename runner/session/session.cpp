#include "runner/session/session.h"

#include <algorithm>

#include "runner/session/logprobs.h"

namespace mote {
namespace {

constexpr int64_t kDefaultContextLength = 4096;
constexpr int64_t kDefaultPrefillChunk = 256;
constexpr int64_t kMostRewindMb = int64_t{1} << 20;
constexpr int64_t kLeastPrefix = 16;  // tokens that are worth a look at the prefix cache

template <typename T>
std::vector<T> copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

Status out_of_range(const char* name, int64_t value, int64_t low, int64_t high) {
  return {Code::kInvalidArgument,
          format("%s = %lld: must be %lld..%lld, or 0 for the default", name, static_cast<long long>(value),
                 static_cast<long long>(low), static_cast<long long>(high))};
}

}  // namespace

Result<SessionOptions> resolve(const Model& model, SessionOptions options) {
  MOTE_RETURN_IF_ERROR(model.require_generation());
  const int64_t longest = model.max_position_embeddings();
  if (options.context_length < 0 || options.context_length > longest) {
    return out_of_range("context_length", options.context_length, 1, longest);
  }
  if (options.prefill_chunk < 0 || options.prefill_chunk > kMaxTokens) {
    return out_of_range("prefill_chunk", options.prefill_chunk, 1, kMaxTokens);
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return out_of_range("threads", options.threads, 1, kMaxThreads);
  }
  const int64_t context_length = options.context_length == 0 ? kDefaultContextLength : options.context_length;
  options.context_length = std::min(context_length, longest);
  if (options.prefill_chunk == 0) options.prefill_chunk = kDefaultPrefillChunk;
  options.prefill_chunk = std::min(options.prefill_chunk, options.context_length);
  MOTE_REQUIRE(options.num_keep >= kKeepSystem && options.num_keep < options.context_length, Code::kInvalidArgument,
               "num_keep = %lld: must be 0..%lld, below the context_length, or -1 for a chat's system message",
               static_cast<long long>(options.num_keep), static_cast<long long>(options.context_length - 1));
  options.prefill_chunk = std::min(options.prefill_chunk, longest_call(*model.bound()));
  MOTE_REQUIRE(options.rewind_tokens >= 0 && options.rewind_tokens <= kMaxTokens, Code::kInvalidArgument,
               "rewind_tokens = %lld: must be 0..%lld", static_cast<long long>(options.rewind_tokens),
               static_cast<long long>(kMaxTokens));
  MOTE_REQUIRE(options.rewind_mb >= 0 && options.rewind_mb <= kMostRewindMb, Code::kInvalidArgument,
               "rewind_mb = %lld: must be 0..%lld", static_cast<long long>(options.rewind_mb),
               static_cast<long long>(kMostRewindMb));
  return options;
}

RewindLimits rewind_limits(const SessionOptions& options) {
  return {options.rewind_tokens, static_cast<uint64_t>(options.rewind_mb) << 20};
}

Session::~Session() {
  position_.drop_deferred();
  remember();
}

size_t Session::room() const {
  const int64_t stays = options_.overflow == Overflow::kShift ? std::min(num_keep_, position()) : position();
  return static_cast<size_t>(context_length() - stays);
}

Status Session::require_room(size_t count) const {
  MOTE_REQUIRE(count <= room(), Code::kContextFull,
               "%zu more tokens at position %lld do not fit into the context of %lld positions, which has room for "
               "%zu: open the "
               "session with a larger context_length (this model allows %d) or give fewer tokens",
               count, static_cast<long long>(position()), static_cast<long long>(context_length()), room(),
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

Status Session::require_whole() const {
  MOTE_REQUIRE(!position_.is_interrupted(), Code::kInvalidArgument,
               "the last call on this session failed half-way through a recurrent state: reset the session first");
  return {};
}

Status Session::check_call(std::span<const int32_t> ids) {
  MOTE_REQUIRE(!ids.empty(), Code::kInvalidArgument, "no tokens: at least one is needed");
  MOTE_RETURN_IF_ERROR(require_whole());
  MOTE_RETURN_IF_ERROR(check_ids(ids));
  MOTE_RETURN_IF_ERROR(bound_->file().check_unchanged());
  return make_room(ids.size());
}

Status Session::make_room(size_t count) {
  MOTE_RETURN_IF_ERROR(require_room(count));
  const int64_t missing = position() + static_cast<int64_t>(count) - context_length();
  if (missing <= 0) return {};
  const int64_t keep = std::min(num_keep_, position());
  const int64_t forgotten = std::max(missing, (position() - keep + 1) / 2);
  const std::vector<int32_t> rest = copy(tokens().subspan(static_cast<size_t>(keep + forgotten)));
  MOTE_RETURN_IF_ERROR(rewind(keep));
  position_.count_forgotten(forgotten);
  return defer(rest);
}

Status Session::defer(std::span<const int32_t> ids) {
  if (ids.empty()) return {};
  MOTE_RETURN_IF_ERROR(check_ids(ids));
  MOTE_RETURN_IF_ERROR(make_room(ids.size()));
  forget_draft();
  position_.defer(ids);
  return {};
}

Result<std::span<const float>> Session::compute_if_possible(std::span<const int32_t> ids) try {
  return compute(ids);
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "out of memory"); }

// Computes the deferred ids and then `ids`, together. Where that fails half-way, the deferred ids that were not reached
// stay deferred.
Result<std::span<const float>> Session::compute_deferred(std::span<const int32_t> ids) {
  const size_t count = position_.deferred().size();
  std::vector<int32_t> all = copy(position_.deferred());
  all.insert(all.end(), ids.begin(), ids.end());
  position_.drop_deferred();
  const int64_t before = position();
  const auto logits = compute_if_possible(all);
  const size_t num_read = std::min(static_cast<size_t>(position() - before), count);
  if (num_read < count) position_.defer(std::span(all).first(count).subspan(num_read));
  return logits;
}

Status Session::require_computed() {
  if (!has_deferred()) return {};
  MOTE_RETURN_IF_ERROR(require_whole());
  return compute_deferred({}).status();
}

Result<SequenceStates> Session::begin_call(std::span<const int32_t> ids) {
  MOTE_RETURN_IF_ERROR(check_call(ids));
  MOTE_RETURN_IF_ERROR(require_computed());
  const auto tokens = static_cast<int64_t>(ids.size());
  return begin_chunk(tokens, {tokens, position() + tokens, false});
}

Result<SequenceStates> Session::begin_chunk(int64_t tokens, const Extent& extent) {
  if (take_cancel()) return Status(Code::kCancelled, "cancelled");
  forget_draft();
  MOTE_RETURN_IF_ERROR(states_.reserve(position(), tokens));
  const RecurrentCall* recurrent =
      states_.recurrent().begin_call(position(), tokens, extent.num_kept, extent.end, extent.is_prompt);
  position_.begin_call(!states_.has_recurrent());
  return SequenceStates{tokens,        states_.kv_caches(), states_.recurrent_states(),
                        adapter_uses_, recurrent,           extent.num_kept};
}

void Session::end_call(std::span<const int32_t> ids, const Status& status) {
  const int64_t reached = position() + static_cast<int64_t>(ids.size());
  if (status.ok()) position_.end_call(ids);
  end_states(reached, status.ok());
}

// After a call that failed the caches go back to where it began, and so do recurrent states where something is kept of
// them.
void Session::end_states(int64_t reached, bool has_succeeded) {
  states_.recurrent().end_call(has_succeeded);
  if (has_succeeded || has_delegate_state()) return;
  (void)states_.rewind_caches(reached, position());
  if (position_.is_interrupted() && states_.recurrent().nearest(position()) == position()) {
    states_.recurrent().rewind(position());
    position_.end_call({});
  }
}

// Recurrent states begin to keep what it takes to go back, as far as the options say.
Status Session::keep_recurrent() {
  return states_.recurrent().keep(executor().recurrent_rows(calls_.decode().method), rewind_limits(options_));
}

// Makes the recurrent states those of the last computed position, for whoever copies them.
Status Session::settle_states() {
  RecurrentMemory& recurrent = states_.recurrent();
  const int64_t computed = position_.num_computed();
  if (recurrent.is_empty() || recurrent.is_settled(computed)) return {};
  const RecurrentCall* call = recurrent.begin_replay(computed);
  const SequenceStates states{1, states_.kv_caches(), states_.recurrent_states(), {}, call};
  MOTE_RETURN_IF_ERROR(executor().replay(calls_.decode().method, states));
  recurrent.end_replay(computed);
  return {};
}

MethodCall Session::next_call(Wanted wanted, size_t count) const {
  const int64_t room = context_length() - position();
  switch (wanted) {
    case Wanted::decode: return calls_.decode();
    case Wanted::prefill: return calls_.prefill(count, room);
    default: return calls_.verify(count, room);
  }
}

Result<Session::Computed> Session::run(Wanted wanted, std::span<const int32_t> ids) {
  while (true) {
    const MethodCall call = next_call(wanted, ids.size());
    const size_t num_drafted = wanted == Wanted::draft ? call.count - 1 : 0;
    const Extent extent{static_cast<int64_t>(call.count - num_drafted),
                        position() + static_cast<int64_t>(num_drafted > 0 ? call.count : ids.size()),
                        wanted == Wanted::prefill};
    const auto rows = run_call(call, ids.first(call.count), num_drafted, extent);
    if (rows.ok()) return Computed{call, *rows};
    MOTE_RETURN_IF_ERROR(leave_backend(rows.status()));
    MOTE_RETURN_IF_ERROR(require_computed());
  }
}

// Returns the rows of logits, [call.num_rows(), vocab_size]. The last num_drafted of `ids` become drafted.
Result<std::span<const float>> Session::run_call(const MethodCall& call, std::span<const int32_t> ids,
                                                 size_t num_drafted, const Extent& extent) {
  forget_draft();
  MOTE_RETURN_IF_ERROR(make_head_room(call.tokens, ids.front()));
  position_.forget_logits();  // the rows of a method lie elsewhere once it is prepared for another number of tokens
  MOTE_RETURN_IF_ERROR(executor().prepare(call.method, call.tokens));
  MOTE_ASSIGN(const SequenceStates states, begin_chunk(call.tokens, extent));
  const std::span<int64_t> input_ids = executor().input(call.method, 0);
  const std::span<int64_t> position_ids = executor().input(call.method, 1);
  for (size_t i = 0; i < static_cast<size_t>(call.tokens); ++i) {
    input_ids[i] = ids[std::min(i, ids.size() - 1)];
    position_ids[i] = position() + static_cast<int64_t>(i);
  }
  const ScopedBinding binding(engine_.cpus);
  executor().want_largest(shares_engine_ ? 0 : wanted_largest_);
  const Status status = executor().run_together(call.method, {&states, 1}, *cancelled_, watch_);
  const int64_t reached = position() + call.tokens;
  if (status.ok()) {
    note_hidden_states(call, position());
    position_.end_call(ids.first(ids.size() - num_drafted), ids.last(num_drafted),
                       {call, call.last_row() - num_drafted}, !shares_engine_);
  }
  end_states(reached, status.ok());
  (void)go_back(reached, position_.num_held());  // what a call has added can always be taken back
  if (status.code() == Code::kCancelled) cancelled_->store(false);
  if (!status.ok()) return status;
  return executor().output(call.method, 0);
}

size_t Session::longest_draft() const {
  if (shares_engine_) return 0;
  int64_t longest = calls_.longest_verify();
  if (has_delegate_state()) longest = std::min(longest - 1, executor().delegates().most_taken_back()) + 1;
  if (states_.recurrent().is_empty()) return static_cast<size_t>(longest) - 1;
  return static_cast<size_t>(std::max<int64_t>(std::min(longest, states_.recurrent().num_rows()) - 1, 0));
}

bool Session::go_back(int64_t from, int64_t to) {
  return from == to || (states_.rewind(from, to) && (!has_delegate_state() || executor().delegates().seek(to)));
}

// Going back cannot fail: a ring has room for a whole call beside its window, so what the window had is still there.
void Session::forget_draft() {
  if (!position_.drafted().empty()) (void)go_back(position_.num_held(), position());
  if (head_.follows()) head_.truncate(position_.num_computed());
  position_.drop_drafted();
}

Result<std::span<const float>> Session::prefill(std::span<const int32_t> ids) {
  MOTE_RETURN_IF_ERROR(check_call(ids));
  return has_deferred() ? compute_deferred(ids) : compute(ids.subspan(reuse(ids)));
}

Result<std::span<const float>> Session::compute(std::span<const int32_t> ids) {
  const bool is_worth_remembering = ids.size() >= static_cast<size_t>(kLeastPrefix);
  while (true) {
    MOTE_ASSIGN(const Computed computed, run(Wanted::prefill, ids));
    ids = ids.subspan(computed.call.count);
    if (!ids.empty()) continue;
    if (is_worth_remembering) remember();
    return wanted_logits();
  }
}

Status Session::append(std::span<const int32_t> ids) { return ids.empty() ? Status() : prefill(ids).status(); }

Result<std::vector<int32_t>> Session::encode(std::string_view text, bool parse_special) const {
  MOTE_ASSIGN(const Tokenizer* tokenizer, model_->require_tokenizer());
  return tokenizer->encode(text, {position() == 0, parse_special});
}

Result<int64_t> Session::keep_prefix(std::span<const int32_t> ids) {
  position_.drop_deferred();
  const auto common = std::ranges::mismatch(ids, tokens()).in1 - ids.begin();
  if (common < position()) remember();
  if (adopt_longest_prefix(ids, common + kLeastPrefix)) return position();
  if (states_.recurrent().is_empty()) {
    MOTE_RETURN_IF_ERROR(rewind(common));
  } else {
    (void)go_back_near(common);
  }
  return position();
}

Result<int64_t> Session::rewind_to_prefix(std::span<const int32_t> ids) {
  MOTE_REQUIRE(!ids.empty(), Code::kInvalidArgument, "no tokens: at least one is needed");
  MOTE_RETURN_IF_ERROR(check_ids(ids));
  return keep_prefix(ids.first(ids.size() - 1));
}

Result<int64_t> Session::set_tokens(std::span<const int32_t> ids) {
  MOTE_REQUIRE(!ids.empty(), Code::kInvalidArgument, "no tokens: at least one is needed");
  MOTE_RETURN_IF_ERROR(check_ids(ids));
  MOTE_REQUIRE(
      ids.size() <= static_cast<size_t>(context_length()), Code::kContextFull,
      "%zu tokens do not fit into the context of %lld positions: open the session with a larger context_length (this "
      "model allows %d) or give fewer tokens",
      ids.size(), static_cast<long long>(context_length()), model_->max_position_embeddings());
  MOTE_ASSIGN(const int64_t kept, keep_prefix(ids));
  const std::span<const int32_t> rest = ids.subspan(static_cast<size_t>(kept));
  if (rest.empty()) return kept;
  MOTE_RETURN_IF_ERROR(check_call(rest));
  MOTE_RETURN_IF_ERROR(compute(rest).status());
  return kept;
}

Result<std::span<const float>> Session::logits() {
  MOTE_REQUIRE(position() > 0, Code::kInvalidArgument, "there are no logits before the first token: append one");
  if (has_deferred()) {
    MOTE_RETURN_IF_ERROR(require_whole());
    return compute_deferred({});
  }
  if (position_.has_row()) {
    auto logits = returned_logits();
    if (logits.ok()) return logits;
    MOTE_RETURN_IF_ERROR(leave_backend(logits.status()));
    return this->logits();
  }
  if (!position_.kept_logits().empty()) return std::span(position_.kept_logits());
  const int32_t last = tokens().back();
  MOTE_RETURN_IF_ERROR(rewind(position() - 1));
  auto computed = decode(last);
  if (!computed.ok()) position_.defer({&last, 1});
  return computed;
}

Result<std::span<const float>> Session::decode(int32_t id) {
  const std::span<const int32_t> ids(&id, 1);
  MOTE_RETURN_IF_ERROR(check_call(ids));
  if (has_deferred()) return compute_deferred(ids);
  if (!is_drafted(id)) {
    MOTE_RETURN_IF_ERROR(run(Wanted::decode, ids).status());
    return wanted_logits();
  }
  if (take_cancel()) return Status(Code::kCancelled, "cancelled");
  position_.accept_drafted();
  return wanted_logits();
}

Result<std::span<const float>> Session::decode(int32_t id, std::span<const int32_t> draft) {
  if (draft.empty() || is_drafted(id)) return decode(id);
  MOTE_REQUIRE(draft.size() <= longest_draft(), Code::kInvalidArgument, "a draft of %zu tokens: must be at most %zu",
               draft.size(), longest_draft());
  std::vector<int32_t> ids{id};
  ids.insert(ids.end(), draft.begin(), draft.end());
  MOTE_RETURN_IF_ERROR(check_call(ids));
  MOTE_RETURN_IF_ERROR(require_computed());
  MOTE_RETURN_IF_ERROR(run(Wanted::draft, ids).status());
  return wanted_logits();
}

template <typename Body>
Status Session::for_each_row(std::span<const int32_t> ids, const Body& body) {
  MOTE_RETURN_IF_ERROR(check_call(ids));
  MOTE_RETURN_IF_ERROR(require_computed());
  const auto vocab_size = static_cast<size_t>(model_->vocab_size());
  for (size_t done = 0; done < ids.size();) {
    MOTE_ASSIGN(const Computed computed, run(Wanted::verify, ids.subspan(done)));
    for (size_t i = 0; i < computed.call.count; ++i) body(done + i, computed.rows.subspan(i * vocab_size, vocab_size));
    done += computed.call.count;
  }
  return {};
}

Status Session::verify(std::span<const int32_t> ids, float* logits) {
  const auto vocab_size = static_cast<size_t>(model_->vocab_size());
  return for_each_row(
      ids, [&](size_t i, std::span<const float> row) { std::copy(row.begin(), row.end(), logits + i * vocab_size); });
}

Status Session::score(std::span<const int32_t> ids, float* logprobs) {
  return for_each_row(ids, [&](size_t i, std::span<const float> row) {
    if (i + 1 < ids.size()) logprobs[i] = log_probability(row[static_cast<size_t>(ids[i + 1])], log_sum_exp(row));
  });
}

// Goes back to the last of the first `to` positions whose states there are, and returns it.
int64_t Session::go_back_near(int64_t to) {
  forget_draft();
  const int64_t computed = position_.num_computed();
  if (!position_.is_interrupted() && to >= computed) {
    position_.truncate(to);
    return to;
  }
  int64_t near = std::min(to, computed);
  if (!states_.recurrent().is_empty()) near = states_.recurrent().nearest(near);
  if (has_delegate_state()) near = executor().delegates().nearest(near);
  const bool is_lost = near == 0 || (position_.is_interrupted() && has_delegate_state());
  if (is_lost || !states_.rewind(computed, near) || (has_delegate_state() && !executor().delegates().seek(near))) {
    reset();
    return 0;
  }
  position_.drop_deferred();
  if (position_.is_interrupted()) position_.end_call({});
  position_.truncate(near);
  if (head_.follows()) head_.truncate(near);
  return near;
}

Status Session::rewind(int64_t to) {
  MOTE_REQUIRE(to >= 0 && to <= position(), Code::kInvalidArgument, "position = %lld: must be 0..%lld, the present one",
               static_cast<long long>(to), static_cast<long long>(position()));
  const std::vector<int32_t> ids = copy(tokens().first(static_cast<size_t>(to)));
  const int64_t reached = go_back_near(to);
  return reached < to ? prefill(std::span(ids).subspan(static_cast<size_t>(reached))).status() : Status();
}

Status Session::set_kv_dtype(KvType type) {
  position_.drop_deferred();
  remember();
  reset();
  options_.kv_dtype = type;
  MOTE_ASSIGN(states_, StateMemory::allocate(*bound_, {options_.context_length, options_.prefill_chunk, type}));
  MOTE_RETURN_IF_ERROR(open_head());
  return keep_recurrent();
}

Status Session::set_adapters(AdapterMix adapters) {
  MOTE_RETURN_IF_ERROR(check_mix(*model_, adapters));
  if (is_same_mix(adapters, adapters_)) return {};
  std::vector<AdapterUse> uses;
  for (const MixedAdapter& each : adapters) uses.push_back({&each.adapter->weights(), each.weight});
  const std::vector<int32_t> kept = copy(tokens());
  position_.drop_deferred();
  remember();
  reset();
  adapters_ = std::move(adapters);
  adapter_uses_ = std::move(uses);
  return defer(kept);
}

size_t Session::reuse(std::span<const int32_t> ids) {
  if (position() > 0 || ids.empty() || !adopt_longest_prefix(ids.first(ids.size() - 1), kLeastPrefix)) return 0;
  return static_cast<size_t>(position());
}

// Takes the longest beginning of `ids` from the prefix cache, if it is longer than `least`.
bool Session::adopt_longest_prefix(std::span<const int32_t> ids, int64_t least) {
  if (options_.prefix_cache == nullptr || static_cast<int64_t>(ids.size()) <= least) return false;
  const PrefixCache::Match match = options_.prefix_cache->find(*bound_, adapters_, ids, states_, least);
  return match.snapshot != nullptr && adopt(*match.snapshot, match.length).ok();
}

// Without memory for a snapshot nothing is kept, and other sessions compute the tokens themselves.
void Session::remember() {
  if (options_.prefix_cache == nullptr || position_.is_interrupted() || position() < kLeastPrefix) return;
  try {
    auto present = take_snapshot();
    if (present.ok()) options_.prefix_cache->insert(*std::move(present));
  } catch (const std::bad_alloc&) { return; }
}

void Session::reset() {
  position_.reset();
  states_.clear();
  head_.clear();
  if (has_delegate_state()) (void)executor().delegates().seek(0);
}

}  // namespace mote
