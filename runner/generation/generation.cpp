#include "runner/generation/generation.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "runner/generation/options/accepted.h"
#include "runner/generation/vocabulary.h"

namespace mote {
namespace {

Status check_grammar(const Model& model, const Grammar& grammar) {
  MOTE_ASSIGN(const auto vocabulary, vocabulary_of(model));
  MOTE_REQUIRE(grammar.shared_vocabulary() == vocabulary, Code::kInvalidArgument,
               "the grammar was compiled for another vocabulary: compile it for this model");
  return {};
}

// For a call of a session: others get all logits.
class ScopedWish {
 public:
  ScopedWish(Session& session, size_t num_largest) : session_(session) { session_.want_largest(num_largest); }
  ScopedWish(const ScopedWish&) = delete;
  ScopedWish& operator=(const ScopedWish&) = delete;
  ~ScopedWish() { session_.want_largest(0); }

 private:
  Session& session_;
};

}  // namespace

Status check_generation(const Model& model, const GenerationOptions& options) {
  MOTE_RETURN_IF_ERROR(check_sampling(options.sampling, model.vocab_size()));
  MOTE_GENERATION_OPTIONS(MOTE_OPTION_CHECK)
  MOTE_RETURN_IF_ERROR(check_token_ids("stop_token_ids", options.stop_token_ids, model.vocab_size()));
  MOTE_RETURN_IF_ERROR(StopStrings::make(options.stop_strings).status());
  return options.grammar == nullptr ? Status() : check_grammar(model, *options.grammar);
}

Result<std::unique_ptr<Generation>> Generation::begin(Session& session, std::vector<int32_t> prompt,
                                                      const GenerationOptions& options,
                                                      std::shared_ptr<Speculator> speculator) {
  MOTE_RETURN_IF_ERROR(check_generation(session.model(), options));
  MOTE_REQUIRE(!prompt.empty() || session.position() > 0, Code::kInvalidArgument,
               "the prompt has no tokens and neither has the session: at least one is needed");
  MOTE_RETURN_IF_ERROR(session.check_ids(prompt));
  MOTE_REQUIRE(
      prompt.size() <= session.room(), Code::kContextFull,
      "the prompt has %zu tokens: the context of %lld positions has room for %zu; open the session with a larger "
      "context_length (this model allows %d) or shorten the prompt",
      prompt.size(), static_cast<long long>(session.context_length()), session.room(),
      session.model().max_position_embeddings());
  if (speculator == nullptr) speculator = std::make_shared<Speculator>();
  MOTE_RETURN_IF_ERROR(speculator->check(session, options.speculation));
  session.follow_with_head(Speculator::uses_head(session, options.speculation));
  MOTE_ASSIGN(StopStrings stop_strings, StopStrings::make(options.stop_strings));
  MOTE_ASSIGN(const Tokenizer* tokenizer, session.model().tokenizer());
  return std::unique_ptr<Generation>(
      new Generation(session, tokenizer, std::move(prompt), options, std::move(stop_strings), std::move(speculator)));
}

Generation::Generation(Session& session, const Tokenizer* tokenizer, std::vector<int32_t> prompt,
                       const GenerationOptions& options, StopStrings stop_strings,
                       std::shared_ptr<Speculator> speculator)
    : session_(session),
      tokenizer_(tokenizer),
      unread_(std::move(prompt)),
      options_(options),
      sampler_(options.sampling, session.model().vocab_size(), session.model().eos_token_ids()),
      speculator_(std::move(speculator)),
      text_(tokenizer, false, unread_),
      stop_strings_(std::move(stop_strings)),
      pacer_(options.pace) {
  statistics_.prompt_tokens = static_cast<int64_t>(unread_.size());
  if (options.grammar != nullptr) {
    constraint_.emplace(options.grammar);
    mask_.resize(options.grammar->vocabulary().mask_words());
  }
  for (const int32_t id : session.tokens()) sampler_.observe(id);
  for (const int32_t id : unread_) sampler_.observe(id);
}

// A prompt that takes too long ends between two of its chunks.
Result<std::span<const float>> Generation::prefill() {
  if (unread_.empty()) return session_.logits();
  std::span<const int32_t> ids = unread_;
  if (statistics_.generated_tokens == 0) ids = ids.subspan(session_.reuse(ids));
  const auto chunk = static_cast<size_t>(session_.prefill_chunk());
  for (; options_.max_time > 0.0 && ids.size() > chunk; ids = ids.subspan(chunk)) {
    MOTE_RETURN_IF_ERROR(session_.prefill(ids.first(chunk)).status());
    if (is_out_of_time()) return Status(Code::kCancelled, "out of time");
  }
  return session_.prefill(ids);
}

void Generation::cancel() {
  const std::lock_guard lock(cancel_mutex_);
  if (ended_) return;
  cancel_requested_ = true;
  session_.cancel();
}

// What comes after this generation does not feel a cancel that came too late for it.
void Generation::end() {
  const std::lock_guard lock(cancel_mutex_);
  ended_ = true;
  if (cancel_requested_) session_.forget_cancel();
}

Result<Piece> Generation::next() {
  if (finish_reason_.has_value()) {
    Piece piece;
    piece.finish_reason = finish_reason_;
    return piece;
  }
  MOTE_REQUIRE(!is_incomplete_, Code::kInvalidState,
               "the system had no memory for this generation's last piece: begin another one, which goes on from what "
               "the session has");
  is_incomplete_ = true;
  auto piece = compute_next();
  is_incomplete_ = false;
  return piece;
}

// In slices, so that a cancel is felt.
void Generation::wait() {
  for (auto left = time_to_wait(); left > Clock::duration::zero(); left = time_to_wait()) {
    if (session_.is_cancelled()) return;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, kMostWait));
  }
}

Result<Piece> Generation::compute_next() {
  if (statistics_.generated_tokens == 0) start();
  wait();
  if (session_.take_cancel()) return cancelled();
  if (std::optional<Piece> piece = forced()) return *std::move(piece);
  if (!status_.ok()) return status_;
  auto logits = compute();
  if (!logits.ok() && logits.status().code() != Code::kCancelled) return logits.status();
  if (!logits.ok()) return cancelled();
  if (logits->empty()) {
    note_prefill();
    if (const auto id = sampler_.sample_largest(session_.largest())) return accept_id(*id, {}, {});
    logits = session_.logits();
    if (!logits.ok()) return logits.status();
  }
  Piece piece = accept(*logits, session_.logit_maxima());
  if (!status_.ok()) return status_;
  return piece;
}

// The logits after what is pending; none where the session has found as many of the largest as are needed.
Result<std::span<const float>> Generation::compute() {
  const bool needs_all = constraint_.has_value() || options_.logprobs || options_.top_logprobs > 0;
  const ScopedWish wish(session_, needs_all ? 0 : sampler_.num_largest());
  const bool is_step = statistics_.generated_tokens > 0 && !session_.has_deferred();
  return is_step ? decode() : prefill();
}

// Proposed tokens are of use up to the one before the last.
Result<std::span<const float>> Generation::decode() {
  if (!std::exchange(has_decoded_, true)) speculator_->begin(session_, options_.speculation);
  const int64_t most = options_.max_new_tokens == 0 ? INT32_MAX : options_.max_new_tokens;
  const auto left = static_cast<size_t>(std::max<int64_t>(most - statistics_.generated_tokens - 1, 0));
  auto logits = speculator_->decode(session_, unread_[0], left);
  statistics_.speculation = speculator_->statistics();
  return logits;
}

std::optional<Piece> Generation::forced() {
  const bool wants_logits = options_.logprobs || options_.top_logprobs > 0;
  if (!constraint_.has_value() || wants_logits || statistics_.generated_tokens == 0 || finish_reason_.has_value())
    return std::nullopt;
  const std::optional<int32_t> id = constraint_->forced_token();
  if (!id.has_value() || !constraint_->accept(*id).ok()) return std::nullopt;
  status_ = session_.defer(unread_);
  if (!status_.ok()) return std::nullopt;
  Piece piece;
  unread_.assign(1, *id);
  ++statistics_.forced_tokens;
  add_token(*id, piece);
  return piece;
}

Piece Generation::accept(std::span<const float> logits, std::span<const float> maxima) {
  note_prefill();
  const int32_t id = choose(logits, maxima);
  if (id >= 0) return accept_id(id, logits, maxima);
  Piece piece;
  finish(FinishReason::kCancelled, piece);
  return piece;
}

void Generation::note_prefill() {
  if (statistics_.generated_tokens == 0) statistics_.prefill_seconds = seconds_since(start_);
}

Piece Generation::accept_id(int32_t id, std::span<const float> logits, std::span<const float> maxima) {
  const bool is_first = statistics_.generated_tokens == 0;
  Piece piece;
  unread_.assign(1, id);
  piece.id = id;
  add_logprobs(logits, maxima, piece);
  if (is_first) {
    first_token_ = Clock::now();
    statistics_.time_to_first_token_seconds = seconds_since(start_);
  }
  add_token(id, piece);
  return piece;
}

// -1 if there is no token that the grammar allows, with status_ set.
int32_t Generation::choose(std::span<const float> logits, std::span<const float> maxima) {
  if (!constraint_.has_value()) return sampler_.sample(logits, maxima);
  std::optional<int32_t> id = constraint_->forced_token();
  if (!id.has_value()) {
    status_ = constraint_->fill_mask(mask_);
    if (!status_.ok()) return -1;
    sampler_.allow_only(mask_);
    id = sampler_.sample(logits, maxima);
  }
  status_ = constraint_->accept(*id);
  return status_.ok() ? *id : -1;
}

void Generation::add_token(int32_t id, Piece& piece) {
  piece.id = id;
  sampler_.observe(id, true);
  ++statistics_.generated_tokens;
  pacer_.took_token(Clock::now());
  const auto reason = reason_to_finish(id);
  if (!is_hidden(id, reason)) add_text(id, piece);
  if (reason.has_value() && !finish_reason_.has_value()) finish(*reason, piece);
  statistics_.decode_seconds = seconds_since(first_token_);
}

Piece Generation::cancelled() {
  Piece piece;
  finish(statistics_.generated_tokens == 0 && is_out_of_time() ? FinishReason::kTime : FinishReason::kCancelled, piece);
  return piece;
}

std::optional<FinishReason> Generation::reason_to_finish(int32_t id) const {
  if (!options_.ignore_eos && session_.model().is_eos(id)) return FinishReason::kEos;
  // Where the text can only end and nothing says so, or what says so was to be ignored.
  if (constraint_.has_value() && constraint_->is_complete() && !constraint_->forced_token().has_value())
    return FinishReason::kEos;
  if (std::ranges::find(options_.stop_token_ids, id) != options_.stop_token_ids.end()) return FinishReason::kStopToken;
  if (statistics_.generated_tokens == options_.max_new_tokens) return FinishReason::kLength;
  if (session_.room() < unread_.size()) return FinishReason::kLength;
  if (is_out_of_time()) return FinishReason::kTime;
  return std::nullopt;
}

void Generation::add_logprobs(std::span<const float> logits, std::span<const float> maxima, Piece& piece) {
  if (!options_.logprobs && options_.top_logprobs == 0) return;
  const double total = log_sum_exp(logits);
  piece.logprob = log_probability(logits[static_cast<size_t>(piece.id)], total);
  piece.top_logprobs = sampler_.likeliest(logits, maxima, total, static_cast<size_t>(options_.top_logprobs));
}

bool Generation::is_hidden(int32_t id, std::optional<FinishReason> reason) const {
  if (tokenizer_ == nullptr || reason == FinishReason::kStopToken) return true;
  const bool is_end = reason == FinishReason::kEos && session_.model().is_eos(id);
  if (is_end && (options_.skip_eos || options_.skip_special_tokens)) return true;
  return options_.skip_special_tokens && tokenizer_->is_special(id);
}

void Generation::add_text(int32_t id, Piece& piece) {
  StopStrings::Output output = stop_strings_.push(text_.push(id));
  piece.text = std::move(output.text);
  if (!output.stopped) return;
  finish_reason_ = piece.finish_reason = FinishReason::kStopString;
  statistics_.memory = process_memory();
  end();
}

// Lets out what was held back.
void Generation::finish(FinishReason reason, Piece& piece) {
  StopStrings::Output output = stop_strings_.push(text_.finish());
  piece.text += output.text;
  if (output.stopped) {
    reason = FinishReason::kStopString;
  } else {
    piece.text += stop_strings_.finish();
  }
  finish_reason_ = piece.finish_reason = reason;
  statistics_.memory = process_memory();
  end();
}

}  // namespace mote
