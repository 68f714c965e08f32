// What a caller may ask of speculative decoding, and what came of it. docs/speculative-decoding.md
#pragma once

#include <cstdint>

#include "base/option_rows.h"

// clang-format off
#define MOTE_SPECULATION_OPTIONS(X)                                                                                    \
  X(speculative, SpeculationMode, SpeculationMode::kOff, anything(), "", kPlain,                                       \
    "Propose tokens and verify several at once, for the same text; auto: where it is faster, lookup: from the text "   \
    "itself, draft: with the draft model, mtp: with the model's own head for multi-token prediction")                                                                             \
  X(draft_tokens, int32_t, 0, within(0, ::mote::kMostDraftTokens, "0: as many as pay"), "tokens", kPlain,              \
    "Tokens to propose at a time")
// clang-format on

namespace mote {

enum class SpeculationMode : int32_t {
  kAuto = 0,  // where it pays: from the text itself, with the model's own head and a draft model, if there are
  kOff = 1,
  kLookup = 2,  // only from the text itself
  kDraft = 3,   // only with the draft model
  kMtp = 4,     // only with the model's own head for multi-token prediction
};

constexpr int32_t kMostDraftTokens = 31;

struct SpeculationOptions {
  MOTE_SPECULATION_OPTIONS(MOTE_OPTION_FIELD)
};

struct SpeculationStatistics {
  int64_t drafts = 0;           // calls of the model that looked at proposed tokens
  int64_t proposed_tokens = 0;  // that they looked at
  int64_t accepted_tokens = 0;  // that were what the model generates
  double seconds = 0.0;         // of all decode steps, proposals included
  double plain_seconds = 0.0;   // of as many tokens without speculation, by the measured cost of one; 0: not measured
  const char* off_reason = nullptr;  // why nothing is proposed; a literal

  // Tokens that a call with proposals gave: what was accepted and the one behind it.
  double mean_run_length() const {
    return drafts == 0 ? 0.0 : static_cast<double>(accepted_tokens + drafts) / static_cast<double>(drafts);
  }
  double speed_up() const {
    return drafts == 0 || seconds <= 0.0 || plain_seconds <= 0.0 ? 1.0 : plain_seconds / seconds;
  }
};

}  // namespace mote
