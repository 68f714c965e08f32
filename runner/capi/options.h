// Handles of options to the structs of the core; and structs back to the C API, shared by those functions that give
// them.
#pragma once

#include <string>
#include <vector>

#include "runner/capi/boundary.h"
#include "runner/generation/generation.h"
#include "runner/generation/options/option_set.h"

namespace mote::capi {

// NULL: an empty set. Errors: kInvalidArgument for what is no handle of options.
Result<OptionSet> options_of(const mote_options* handle);

// What a mote_piece points to.
struct PieceMemory {
  std::string text;
  std::vector<mote_token_logprob> top_logprobs;
};

// `to` points into `memory`, which takes over what the piece holds.
Status write_piece(Piece piece, PieceMemory& memory, mote_piece* to);
Status write_statistics(const Statistics& from, mote_finish_reason finish_reason, mote_statistics* to);

}  // namespace mote::capi
