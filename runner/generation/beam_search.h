// The likeliest continuations of a prompt, not the likeliest next token each time.
// Source: transformers generation/utils.py _beam_search, whose results it gives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runner/generation/sampling/options.h"
#include "runner/session/session.h"

// clang-format off
#define MOTE_BEAM_SEARCH_OPTIONS(X)                                                                                    \
  X(num_beams, int32_t, 4, within(1, ::mote::kMaxBeams), "sequences", kPlain, "That are followed at the same time")    \
  X(num_return_sequences, int32_t, 1, within(1, ::mote::kMaxBeams), "sequences", kPlain,                               \
    "The best, so many of num_beams, that are returned")                                                               \
  X(length_penalty, double, 1.0, any_number(), "", kPlain,                                                             \
    "A score is the sum of log-probabilities over length^length_penalty")                                              \
  X(early_stopping, EarlyStopping, EarlyStopping::kHeuristic, anything(), "", kPlain,                                  \
    "false: end when no running sequence is better than the worst of num_beams finished ones; true: when num_beams "   \
    "are finished; never: when none could become better by max_new_tokens")
// clang-format on

namespace mote {

constexpr int32_t kMaxBeams = 64;

// When the search ends before max_new_tokens.
enum class EarlyStopping : int32_t {
  kHeuristic =
      0,       // transformers' False: no running beam has a better score now than the worst of num_beams finished ones
  kFull = 1,   // True: num_beams are finished
  kNever = 2,  // "never": none could become better by max_new_tokens
};

struct BeamSearchOptions {
  MOTE_BEAM_SEARCH_OPTIONS(MOTE_OPTION_FIELD)
  int64_t max_new_tokens = 0;  // 0: until the context is full
  bool ignore_eos = false;
  SamplingOptions edits{};  // of these, what changes logits; nothing is sampled
};

struct Beam {
  std::vector<int32_t> ids{};  // generated, with the end-of-sequence token if there is one
  float score = 0.0f;
};

// Appends the prompt (which may be empty if the session has tokens) and returns the best sequences, the best first. The
// session then has the prompt and the best sequence but for its last token. Errors: kInvalidArgument naming the option,
// those of Session::prefill. Cost of a step: num_beams decode steps.
Result<std::vector<Beam>> beam_search(Session& session, std::span<const int32_t> prompt,
                                      const BeamSearchOptions& options);

}  // namespace mote
