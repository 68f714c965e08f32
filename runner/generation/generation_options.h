// What a caller may ask of a generation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/generation/sampling/options.h"
#include "runner/generation/speculation/options.h"
#include "runner/grammars/grammar.h"

// clang-format off
#define MOTE_GENERATION_OPTIONS(X)                                                                                     \
  X(max_new_tokens, int64_t, 0, within(0, INT32_MAX, "0: until the context is full"), "tokens", kPlain,                \
    "Stop after this many tokens")                                                                                     \
  X(ignore_eos, bool, false, anything(), "", kPlain, "Go on after the end-of-sequence token")                          \
  X(max_time, double, 0.0, at_least(0, "0: no limit"), "seconds", kPlain, "Stop after this long")                      \
  X(pace, double, 0.0, at_least(0, "0: as fast as it can"), "tokens a second", kPlain,                                 \
    "Go no faster than this, so that a device stays cool and its battery lasts")                                       \
  X(skip_special_tokens, bool, true, anything(), "", kPlain, "Leave special tokens out of the text")                   \
  X(skip_eos, bool, false, anything(), "", kPlain,                                                                     \
    "Leave the end-of-sequence token out of the text even where special tokens are in it")                             \
  X(logprobs, bool, false, anything(), "", kPlain,                                                                     \
    "Tell how likely each token was by the model's own distribution")                                                  \
  X(top_logprobs, int32_t, 0, within(0, ::mote::kMaxTopLogprobs), "tokens", kPlain,                                    \
    "And which so many were the likeliest")
// clang-format on

namespace mote {

constexpr int32_t kMaxTopLogprobs = 1000;

struct GenerationOptions {
  MOTE_GENERATION_OPTIONS(MOTE_OPTION_FIELD)
  SamplingOptions sampling{};
  SpeculationOptions speculation{};  // of next(); the text is the same
  std::vector<std::string> stop_strings{};
  std::vector<int32_t> stop_token_ids{};  // end it beside the model's own end-of-sequence tokens, and are no text
  // The text is one of its texts, unless a limit cuts it short; nullptr: any.
  std::shared_ptr<const constraints::Grammar> grammar{};
};

}  // namespace mote
