// Structs of the C API to ours and back, shared by those functions that take them.
#pragma once

#include <string>
#include <vector>

#include "runner/capi/boundary.h"
#include "runner/generation/generation.h"
#include "runner/session/session.h"

namespace mote::capi {

// NULL: the defaults. Errors: kInvalidArgument naming the option.
Result<SessionOptions> read_session_options(const mote_session_options* requested);
Result<GenerationOptions> read_generation_options(const Model& model, const mote_generation_options* requested);

// What a mote_piece points to.
struct PieceMemory {
  std::string text;
  std::vector<mote_token_logprob> top_logprobs;
};

// `to` points into `memory`, which takes over what the piece holds.
Status write_piece(Piece piece, PieceMemory& memory, mote_piece* to);
Status write_statistics(const Statistics& from, mote_finish_reason finish_reason, mote_statistics* to);

}  // namespace mote::capi
