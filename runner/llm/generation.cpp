#include "runner/llm/generation.h"

#include <algorithm>
#include <cmath>

namespace mote {

Result<std::unique_ptr<Generation>> Generation::begin(Session& session, std::vector<int32_t> prompt,
                                                      const GenerationOptions& options) {
  MOTE_RETURN_IF_ERROR(check_sampling(options.sampling, session.model().vocab_size()));
  MOTE_REQUIRE(options.max_new_tokens >= 0, Code::kInvalidArgument,
               "max_new_tokens = %lld: must be 0 (until the context is full) or more",
               static_cast<long long>(options.max_new_tokens));
  MOTE_REQUIRE(options.top_logprobs >= 0 && options.top_logprobs <= kMaxTopLogprobs, Code::kInvalidArgument,
               "top_logprobs = %d: must be 0..%d", options.top_logprobs, kMaxTopLogprobs);
  MOTE_REQUIRE(options.max_time >= 0.0 && std::isfinite(options.max_time), Code::kInvalidArgument,
               "max_time = %g: must be a finite number of seconds, 0 (no limit) or more", options.max_time);
  MOTE_RETURN_IF_ERROR(check_token_ids("stop_token_ids", options.stop_token_ids, session.model().vocab_size()));
  MOTE_REQUIRE(!prompt.empty() || session.position() > 0, Code::kInvalidArgument,
               "the prompt has no tokens and neither has the session: at least one is needed");
  MOTE_RETURN_IF_ERROR(session.check_ids(prompt));
  MOTE_REQUIRE(prompt.size() <= session.room(), Code::kContextFull,
               "the prompt has %zu tokens: the context of %lld positions has room for %zu; open the session with a larger "
               "context_length (this model allows %d) or shorten the prompt",
               prompt.size(), static_cast<long long>(session.context_length()), session.room(),
               session.model().max_position_embeddings());
  MOTE_ASSIGN(StopStrings stop_strings, StopStrings::make(options.stop_strings));
  MOTE_ASSIGN(const Tokenizer* tokenizer, session.model().tokenizer());
  return std::unique_ptr<Generation>(new Generation(session, tokenizer, std::move(prompt), options, std::move(stop_strings)));
}

Generation::Generation(Session& session, const Tokenizer* tokenizer, std::vector<int32_t> prompt, const GenerationOptions& options,
                       StopStrings stop_strings)
    : session_(session), tokenizer_(tokenizer), prompt_(std::move(prompt)), options_(options),
      sampler_(options.sampling, session.model().vocab_size(), session.model().eos_token_ids()), text_(tokenizer, false, prompt_), stop_strings_(std::move(stop_strings)) {
  statistics_.prompt_tokens = static_cast<int64_t>(prompt_.size());
  for (const int32_t id : session.tokens()) sampler_.observe(id);
  for (const int32_t id : prompt_) sampler_.observe(id);
}

// A prompt that takes too long ends between two of its chunks.
Result<std::span<const float>> Generation::prefill() {
  if (prompt_.empty()) return session_.logits();
  std::span<const int32_t> ids = prompt_;
  ids = ids.subspan(session_.reuse(ids));
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
  const bool is_first = last_id_ < 0;
  if (is_first) start();
  const auto logits = is_first ? prefill() : session_.decode(last_id_);
  if (logits.ok()) return accept(*logits, session_.logit_maxima());
  if (logits.status().code() != Code::kCancelled) return logits.status();
  return cancelled();
}

std::span<const int32_t> Generation::pending() const {
  if (last_id_ < 0) return prompt_;
  return {&last_id_, 1};
}

Piece Generation::accept(std::span<const float> logits, std::span<const float> maxima) {
  const bool is_first = last_id_ < 0;
  if (is_first) statistics_.prefill_seconds = seconds_since(start_);
  Piece piece;
  last_id_ = piece.id = sampler_.sample(logits, maxima);
  sampler_.observe(last_id_, true);
  add_logprobs(logits, maxima, piece);
  ++statistics_.generated_tokens;
  if (is_first) {
    first_token_ = Clock::now();
    statistics_.time_to_first_token_seconds = seconds_since(start_);
  }
  const auto reason = reason_to_finish(last_id_);
  if (!is_hidden(last_id_, reason)) add_text(last_id_, piece);
  if (reason.has_value() && !finish_reason_.has_value()) finish(*reason, piece);
  statistics_.decode_seconds = seconds_since(first_token_);
  return piece;
}

Piece Generation::cancelled() {
  Piece piece;
  finish(last_id_ < 0 && is_out_of_time() ? FinishReason::kTime : FinishReason::kCancelled, piece);
  return piece;
}

std::optional<FinishReason> Generation::reason_to_finish(int32_t id) const {
  if (!options_.ignore_eos && session_.model().is_eos(id)) return FinishReason::kEos;
  if (std::ranges::find(options_.stop_token_ids, id) != options_.stop_token_ids.end()) return FinishReason::kStopToken;
  if (statistics_.generated_tokens == options_.max_new_tokens) return FinishReason::kLength;
  if (session_.room() == 0) return FinishReason::kLength;
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
  if (reason == FinishReason::kEos && (options_.skip_eos || options_.skip_special_tokens)) return true;
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
