// What a caller may ask of sampling, in the order in which it acts. Names and meaning are those of transformers where
// it has the option; frequency_penalty, presence_penalty and logit_bias are OpenAI's, DRY and XTC those of
// text-generation-webui. docs/sampling.md
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace mote {

// Added to the logit of the last id where the others stand at the end of the text. -infinity: never.
struct SequenceBias {
  std::vector<int32_t> ids;
  float bias = 0.0f;
};

struct SamplingOptions {
  bool do_sample = false;  // false: the largest logit, the lowest id among equals; the filters below do nothing
  uint64_t seed = 0;

  // What changes logits.
  std::vector<SequenceBias> sequence_bias{};
  float repetition_penalty = 1.0f;  // > 0; 1: off; over prompt and output, once for each id
  int32_t repetition_window = 0;    // of these only the last so many; 0: all
  float frequency_penalty = 0.0f;   // for every time that an id was generated
  float presence_penalty = 0.0f;    // for an id that was generated
  float dry_multiplier = 0.0f;      // >= 0; 0: off. For an id that would go on with a repetition of at least
  float dry_base = 1.75f;           // dry_allowed_length ids: multiplier * base^(length - allowed length)
  int32_t dry_allowed_length = 2;   // >= 1
  int32_t dry_window = 0;           // of the text only the last so many; 0: all
  std::vector<int32_t> dry_sequence_breakers{};  // ids that no repetition goes across
  int32_t no_repeat_ngram_size = 0;              // 0: off; no so many ids in a row occur twice
  int32_t min_new_tokens = 0;                    // no end-of-sequence token before so many

  // What leaves ids out.
  float temperature = 1.0f;      // > 0
  int32_t top_k = 0;             // 0: off
  float top_p = 1.0f;            // 0..1; 1: off
  float min_p = 0.0f;            // 0..1; 0: off
  float typical_p = 1.0f;        // above 0..1; 1: off
  float xtc_probability = 0.0f;  // 0..1; 0: off: how often ids of at least xtc_threshold are left out but for the
  float xtc_threshold = 0.1f;    // unlikeliest of them; 0..1
};

// Errors: kInvalidArgument naming the option, its value and what would be accepted.
Status check_sampling(const SamplingOptions& options, int32_t vocab_size);
Status check_token_ids(const char* name, const std::vector<int32_t>& ids, int32_t vocab_size);

}  // namespace mote
