#include "runner/llm/beam_search.h"

#include "runner/capi/handles.h"
#include "runner/capi/options.h"

using mote::Code;
using mote::Status;
using mote::capi::guarded;

struct mote_beams {
  std::vector<mote::Beam> beams;
};

int32_t mote_session_beam_search(mote_session* handle, const int32_t* ids, size_t count, const mote_beam_options* requested,
                                 const mote_generation_options* generation_options, mote_beams** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_REQUIRE_POINTER(handle);
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    mote_beam_options beams{sizeof beams, 4, 1, MOTE_EARLY_STOPPING_HEURISTIC, 1.0};
    if (requested != nullptr) MOTE_RETURN_IF_ERROR(mote::capi::read_struct(requested, beams));
    MOTE_REQUIRE(beams.early_stopping >= MOTE_EARLY_STOPPING_HEURISTIC && beams.early_stopping <= MOTE_EARLY_STOPPING_NEVER,
                 Code::kInvalidArgument, "early_stopping = %d: must be 0 (heuristic), 1 (full) or 2 (never)", beams.early_stopping);
    mote::Session& session = *handle->session;
    MOTE_ASSIGN(mote::GenerationOptions generation, mote::capi::read_generation_options(session.model(), generation_options));
    mote::BeamSearchOptions options;
    options.num_beams = beams.num_beams;
    options.num_return_sequences = beams.num_return_sequences;
    options.length_penalty = beams.length_penalty;
    options.early_stopping = static_cast<mote::EarlyStopping>(beams.early_stopping);
    options.max_new_tokens = generation.max_new_tokens;
    options.ignore_eos = generation.ignore_eos;
    options.edits = std::move(generation.sampling);
    auto result = std::make_unique<mote_beams>();
    MOTE_ASSIGN(result->beams, mote::beam_search(session, {ids, count}, options));
    *out = result.release();
    return {};
  });
}

void mote_beams_close(mote_beams* beams) { delete beams; }

size_t mote_beams_count(const mote_beams* beams) { return beams == nullptr ? 0 : beams->beams.size(); }

int32_t mote_beams_get(const mote_beams* beams, size_t index, const int32_t** ids, size_t* count, float* score, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(beams);
    MOTE_REQUIRE_POINTER(ids);
    MOTE_REQUIRE_POINTER(count);
    MOTE_REQUIRE(index < beams->beams.size(), Code::kInvalidArgument, "index = %zu: must be below %zu", index, beams->beams.size());
    const mote::Beam& beam = beams->beams[index];
    *ids = beam.ids.data();
    *count = beam.ids.size();
    if (score != nullptr) *score = beam.score;
    return {};
  });
}
