#include "runner/generation/beam_search.h"

#include "runner/capi/handles.h"
#include "runner/capi/options.h"

using mote::Code;
using mote::Status;
using mote::capi::change;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::share;
using mote::capi::Shared;

template <>
struct mote::capi::Object<mote_beams> {
  static constexpr const char* kName = "list of beams";
  std::vector<Beam> beams;
};

int32_t mote_session_beam_search(mote_session* handle, const int32_t* ids, size_t count,
                                 const mote_beam_options* requested, const mote_generation_options* generation_options,
                                 mote_beams** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    mote_beam_options beams{sizeof beams, 4, 1, MOTE_EARLY_STOPPING_HEURISTIC, 1.0};
    if (requested != nullptr) MOTE_RETURN_IF_ERROR(mote::capi::read_struct(requested, beams));
    MOTE_REQUIRE(
        beams.early_stopping >= MOTE_EARLY_STOPPING_HEURISTIC && beams.early_stopping <= MOTE_EARLY_STOPPING_NEVER,
        Code::kInvalidArgument, "early_stopping = %d: must be 0 (heuristic), 1 (full) or 2 (never)",
        beams.early_stopping);
    MOTE_ASSIGN(mote::GenerationOptions generation,
                mote::capi::read_generation_options(session->session->model(), generation_options));
    mote::BeamSearchOptions options;
    options.num_beams = beams.num_beams;
    options.num_return_sequences = beams.num_return_sequences;
    options.length_penalty = beams.length_penalty;
    options.early_stopping = static_cast<mote::EarlyStopping>(beams.early_stopping);
    options.max_new_tokens = generation.max_new_tokens;
    options.ignore_eos = generation.ignore_eos;
    options.edits = std::move(generation.sampling);
    MOTE_ASSIGN(std::vector<mote::Beam> found, mote::beam_search(*session->session, {ids, count}, options));
    return give(out, std::move(found));
  });
}

void mote_beams_close(mote_beams* beams) { mote::capi::close(beams); }

size_t mote_beams_count(const mote_beams* handle) {
  const auto beams = Shared<mote_beams>::find(handle);
  return beams ? beams->beams.size() : 0;
}

int32_t mote_beams_get(const mote_beams* handle, size_t index, const int32_t** ids, size_t* count, float* score,
                       mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto beams, share(handle));
    MOTE_REQUIRE_POINTER(ids);
    MOTE_REQUIRE_POINTER(count);
    MOTE_REQUIRE(index < beams->beams.size(), Code::kInvalidArgument, "index = %zu: must be below %zu", index,
                 beams->beams.size());
    const mote::Beam& beam = beams->beams[index];
    *ids = beam.ids.data();
    *count = beam.ids.size();
    if (score != nullptr) *score = beam.score;
    return {};
  });
}
