// Replays what eager PyTorch computed when the file was written.
#pragma once

#include <string>

#include "base/status.h"
#include "runner/session/session.h"

namespace mote {

struct GoldenReport {
  std::string json;  // {"passed": bool, "samples": [{"text", "prompt_tokens", "tokens", "matched_tokens",
                     //   "max_relative_error", "tolerance", "tokenizer_agrees", "passed"}, ...]}
  bool passed = false;
};

// Resets the session before and after, and holds keys and values as float32 meanwhile, since what was recorded allows
// for no other rounding. A sample passes when every probed logit is within the file's tolerance of the
// recorded one, every expected id has the largest logit (or one within the tolerance of it), and the tokenizer, where
// there is one, gives the recorded prompt ids for the sample's text. A file without samples passes.
// Errors: kInvalidTokenizer; kInvalidArgument if a sample is longer than the context; what prefill and decode report.
Result<GoldenReport> check_golden(Session& session);

}  // namespace mote
