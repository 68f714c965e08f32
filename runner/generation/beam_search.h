// The likeliest continuations of a prompt, not the likeliest next token each time.
// Source: transformers generation/utils.py _beam_search, whose results it gives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runner/generation/sampling/options.h"
#include "runner/session/session.h"

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
  int32_t num_beams = 4;             // 1..kMaxBeams
  int32_t num_return_sequences = 1;  // 1..num_beams
  double length_penalty = 1.0;       // scores are sums of log-probabilities over length^length_penalty
  EarlyStopping early_stopping = EarlyStopping::kHeuristic;
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
