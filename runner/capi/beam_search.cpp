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

mote_error_code mote_session_beam_search(mote_session* handle, const int32_t* ids, size_t count,
                                         const mote_options* requested, mote_beams** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::BeamSearchOptions options, given.beam_search(session->session->model()));
    MOTE_ASSIGN(std::vector<mote::Beam> found, mote::beam_search(*session->session, {ids, count}, options));
    return give(out, std::move(found));
  });
}

void mote_beams_close(mote_beams* beams) { mote::capi::close(beams); }

size_t mote_beams_count(const mote_beams* handle) {
  const auto beams = Shared<mote_beams>::find(handle);
  return beams ? beams->beams.size() : 0;
}

mote_error_code mote_beams_get(const mote_beams* handle, size_t index, const int32_t** ids, size_t* count, float* score,
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
