#include "runner/capi/handles.h"
#include "runner/capi/options.h"
#include "runner/capi/sampling_scalars.h"
#include "runner/generation/defaults.h"

using mote::Code;
using mote::Status;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::Object;
using mote::capi::share;
using mote::capi::Shared;

namespace {

void write_scalars(const mote::SamplingOptions& from, mote_generation_options& to) {
  to.do_sample = from.do_sample;
#define MOTE_COPY(name) to.name = from.name;
  MOTE_SAMPLING_SCALARS(MOTE_COPY)
}

void read_scalars(const mote_generation_options& from, mote::SamplingOptions& to) {
  to.do_sample = from.do_sample != 0;
  MOTE_SAMPLING_SCALARS(MOTE_COPY)
#undef MOTE_COPY
}

mote_generation_options neutral_options() {
  mote_generation_options options{};
  options.struct_size = sizeof options;
  write_scalars(mote::SamplingOptions(), options);
  options.skip_special_tokens = 1;
  options.speculative = MOTE_SPECULATIVE_AUTO;
  return options;
}

mote::Result<mote_generation_options> default_options(const mote::Model& model) {
  MOTE_ASSIGN(const auto defaults, mote::generation_defaults(model));
  mote_generation_options options = neutral_options();
  write_scalars(defaults->sampling, options);
  options.max_new_tokens = static_cast<int32_t>(defaults->max_new_tokens);
  return options;
}

mote::Result<mote::SamplingOptions> sampling_options(const mote_generation_options& from) {
  mote::SamplingOptions options;
  read_scalars(from, options);
  if (from.num_dry_sequence_breakers > 0) MOTE_REQUIRE_POINTER(from.dry_sequence_breakers);
  options.dry_sequence_breakers.assign(from.dry_sequence_breakers,
                                       from.dry_sequence_breakers + from.num_dry_sequence_breakers);
  if (from.num_sequence_bias > 0) MOTE_REQUIRE_POINTER(from.sequence_bias);
  for (size_t i = 0; i < from.num_sequence_bias; ++i) {
    const mote_sequence_bias& entry = from.sequence_bias[i];
    MOTE_REQUIRE(entry.ids != nullptr || entry.count == 0, Code::kInvalidArgument, "sequence_bias[%zu].ids is NULL", i);
    options.sequence_bias.push_back({{entry.ids, entry.ids + entry.count}, entry.bias});
  }
  return options;
}

mote::Result<mote::GenerationOptions> generation_options(const mote::Model& model,
                                                         const mote_generation_options& from) {
  mote::GenerationOptions options;
  options.max_new_tokens = from.max_new_tokens;
  MOTE_ASSIGN(options.sampling, sampling_options(from));
  MOTE_ASSIGN(const auto defaults, mote::generation_defaults(model));
  const std::vector<mote::SequenceBias>& own = defaults->sampling.sequence_bias;
  options.sampling.sequence_bias.insert(options.sampling.sequence_bias.end(), own.begin(), own.end());
  options.ignore_eos = from.ignore_eos != 0;
  options.skip_special_tokens = from.skip_special_tokens != 0;
  options.skip_eos = from.skip_eos != 0;
  options.logprobs = from.logprobs != 0;
  options.top_logprobs = from.top_logprobs;
  options.max_time = from.max_time;
  if (from.grammar != nullptr) {
    MOTE_ASSIGN(const auto grammar, share(from.grammar));
    options.grammar = grammar->grammar;
  }
  if (from.num_stop_token_ids > 0) MOTE_REQUIRE_POINTER(from.stop_token_ids);
  options.stop_token_ids.assign(from.stop_token_ids, from.stop_token_ids + from.num_stop_token_ids);
  options.speculation = {static_cast<mote::SpeculationMode>(from.speculative), from.draft_tokens};
  if (from.num_stop_strings > 0) MOTE_REQUIRE_POINTER(from.stop_strings);
  MOTE_REQUIRE(from.num_stop_strings <= mote::StopStrings::kMaxCount, Code::kInvalidArgument,
               "%zu stop strings: at most %zu are accepted", from.num_stop_strings, mote::StopStrings::kMaxCount);
  for (size_t i = 0; i < from.num_stop_strings; ++i) {
    MOTE_REQUIRE(from.stop_strings[i] != nullptr, Code::kInvalidArgument, "stop_strings[%zu] is NULL", i);
    options.stop_strings.emplace_back(from.stop_strings[i]);
  }
  return options;
}

}  // namespace

Status mote::capi::TextSession::change() {
  if (is_of_batch_) return {};
  MOTE_REQUIRE(num_changes_ == session_->num_changes, Code::kInvalidState,
               "another call changed the session of the %s: end it and begin another one that goes on from there",
               name_);
  num_changes_ = ++session_->num_changes;
  return {};
}

mote::Result<mote::GenerationOptions> mote::capi::read_generation_options(const Model& model,
                                                                          const mote_generation_options* requested) {
  MOTE_ASSIGN(mote_generation_options options, default_options(model));
  if (requested != nullptr) MOTE_RETURN_IF_ERROR(read_struct(requested, options));
  return generation_options(model, options);
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

int32_t mote_generation_options_default(const mote_model* handle, mote_generation_options* options, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(options);
    MOTE_ASSIGN(const mote_generation_options defaults, default_options(*model->model));
    return mote::capi::write_struct(defaults, options);
  });
}

int32_t mote_generation_options_neutral(mote_generation_options* options, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(options);
    return mote::capi::write_struct(neutral_options(), options);
  });
}

int32_t mote_generation_begin(mote_session* handle, const int32_t* ids, size_t count,
                              const mote_generation_options* requested, mote_generation** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(auto session, enter(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::GenerationOptions resolved,
                mote::capi::read_generation_options(session->session->model(), requested));
    MOTE_ASSIGN(auto kept, share(handle));
    MOTE_ASSIGN(auto stream,
                mote::begin_stream(mote::capi::place_of(*session), std::vector<int32_t>(ids, ids + count), resolved));
    return give(out, mote::capi::TextSession(std::move(kept), std::move(session), "generation"), std::move(stream));
  });
}

int32_t mote_generation_next(mote_generation* handle, mote_piece* piece, mote_error* error) {
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

int32_t mote_generation_statistics(const mote_generation* handle, mote_statistics* statistics, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto generation, enter(handle));
    MOTE_REQUIRE_POINTER(statistics);
    return mote::capi::write_statistics(generation->stream->statistics(), generation->finish_reason, statistics);
  });
}

void mote_generation_end(mote_generation* generation) { mote::capi::close(generation); }

int32_t mote_sampling_probabilities(const float* logits, size_t count, const int32_t* previous_ids,
                                    size_t num_previous_ids, size_t num_generated,
                                    const mote_generation_options* requested, float* probabilities, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(logits);
    MOTE_REQUIRE_POINTER(probabilities);
    MOTE_REQUIRE_POINTER(requested);
    if (num_previous_ids > 0) MOTE_REQUIRE_POINTER(previous_ids);
    MOTE_REQUIRE(count >= 1 && count <= INT32_MAX, Code::kInvalidArgument, "%zu logits: must be 1..2^31-1", count);
    mote_generation_options options = neutral_options();
    MOTE_RETURN_IF_ERROR(mote::capi::read_struct(requested, options));
    MOTE_ASSIGN(const mote::SamplingOptions sampling, sampling_options(options));
    MOTE_RETURN_IF_ERROR(mote::check_sampling(sampling, static_cast<int32_t>(count)));
    mote::Sampler sampler(sampling, static_cast<int32_t>(count));
    for (size_t i = 0; i < num_previous_ids; ++i)
      sampler.observe(previous_ids[i], i + num_generated >= num_previous_ids);
    const std::vector<float> result = sampler.probabilities({logits, count});
    std::copy(result.begin(), result.end(), probabilities);
    return {};
  });
}
