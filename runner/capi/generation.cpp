#include "runner/capi/handles.h"
#include "runner/capi/options.h"

using mote::Code;
using mote::Status;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::Object;
using mote::capi::share;
using mote::capi::Shared;

Status mote::capi::TextSession::change() {
  if (is_of_batch_) return {};
  MOTE_REQUIRE(num_changes_ == session_->num_changes, Code::kInvalidState,
               "another call changed the session of the %s: end it and begin another one that goes on from there",
               name_);
  num_changes_ = ++session_->num_changes;
  return {};
}

Status mote::capi::write_piece(Piece piece, PieceMemory& memory, mote_piece* to) {
  memory.text = std::move(piece.text);
  memory.top_logprobs.clear();
  for (const TokenLogprob& entry : piece.top_logprobs) memory.top_logprobs.push_back({entry.id, entry.logprob});
  mote_piece result{};
  result.id = piece.id;
  result.text = memory.text.c_str();
  result.text_bytes = memory.text.size();
  result.logprob = piece.logprob;
  result.top_logprobs = memory.top_logprobs.data();
  result.num_top_logprobs = memory.top_logprobs.size();
  result.finished = piece.finish_reason.has_value();
  result.finish_reason =
      result.finished != 0 ? static_cast<mote_finish_reason>(*piece.finish_reason) : MOTE_FINISH_NONE;
  return write_struct(result, to);
}

Status mote::capi::write_statistics(const Statistics& from, mote_finish_reason finish_reason, mote_statistics* to) {
  const ProcessMemory memory = process_memory();
  mote_statistics result{};
  result.finish_reason = finish_reason;
  result.prompt_tokens = from.prompt_tokens;
  result.generated_tokens = from.generated_tokens;
  result.forced_tokens = from.forced_tokens;
  result.prefill_seconds = from.prefill_seconds;
  result.decode_seconds = from.decode_seconds;
  result.time_to_first_token_seconds = from.time_to_first_token_seconds;
  result.peak_rss_bytes = memory.peak_rss_bytes;
  result.peak_private_bytes = memory.peak_private_bytes;
  result.proposed_tokens = from.speculation.proposed_tokens;
  result.accepted_tokens = from.speculation.accepted_tokens;
  result.num_drafts = from.speculation.drafts;
  result.mean_run_length = from.speculation.mean_run_length();
  result.speculative_speed_up = from.speculation.speed_up();
  result.speculative_off_reason = from.speculation.off_reason;
  return write_struct(result, to);
}

mote_error_code mote_generation_begin(mote_session* handle, const int32_t* ids, size_t count,
                                      const mote_options* requested, mote_generation** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(auto session, enter(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::GenerationOptions options, given.generation(session->session->model()));
    MOTE_ASSIGN(auto kept, share(handle));
    MOTE_ASSIGN(auto stream,
                mote::begin_stream(mote::capi::place_of(*session), std::vector<int32_t>(ids, ids + count), options));
    return give(out, mote::capi::TextSession(std::move(kept), std::move(session), "generation"), std::move(stream));
  });
}

mote_error_code mote_generation_next(mote_generation* handle, mote_piece* piece, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto generation, enter(handle));
    MOTE_REQUIRE_POINTER(piece);
    if (generation->finish_reason < 0) MOTE_RETURN_IF_ERROR(generation->session.change());
    auto next = generation->stream->next();
    if (!next.ok() || next->finish_reason.has_value()) generation->session.leave();
    MOTE_RETURN_IF_ERROR(next.status());
    if (next->finish_reason.has_value())
      generation->finish_reason = static_cast<mote_finish_reason>(*next->finish_reason);
    return mote::capi::write_piece(*std::move(next), generation->piece, piece);
  });
}

void mote_generation_cancel(mote_generation* handle) {
  if (const auto generation = Shared<mote_generation>::find(handle)) generation->stream->cancel();
}

mote_error_code mote_generation_statistics(const mote_generation* handle, mote_statistics* statistics,
                                           mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto generation, enter(handle));
    MOTE_REQUIRE_POINTER(statistics);
    return mote::capi::write_statistics(generation->stream->statistics(), generation->finish_reason, statistics);
  });
}

void mote_generation_end(mote_generation* generation) { mote::capi::close(generation); }

mote_error_code mote_sampling_probabilities(const float* logits, size_t count, const int32_t* previous_ids,
                                            size_t num_previous_ids, size_t num_generated,
                                            const mote_options* requested, float* probabilities, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(logits);
    MOTE_REQUIRE_POINTER(probabilities);
    if (num_previous_ids > 0) MOTE_REQUIRE_POINTER(previous_ids);
    MOTE_REQUIRE(count >= 1 && count <= INT32_MAX, Code::kInvalidArgument, "%zu logits: must be 1..2^31-1", count);
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::SamplingOptions sampling, given.sampling());
    MOTE_RETURN_IF_ERROR(mote::check_sampling(sampling, static_cast<int32_t>(count)));
    mote::Sampler sampler(sampling, static_cast<int32_t>(count));
    for (size_t i = 0; i < num_previous_ids; ++i)
      sampler.observe(previous_ids[i], i + num_generated >= num_previous_ids);
    const std::vector<float> result = sampler.probabilities({logits, count});
    std::copy(result.begin(), result.end(), probabilities);
    return {};
  });
}
