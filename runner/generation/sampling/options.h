// What a caller may ask of sampling, in the order in which it acts. Names and meaning are those of transformers where
// it has the option; frequency_penalty, presence_penalty and logit_bias are OpenAI's, DRY and XTC those of
// text-generation-webui. docs/sampling.md
#pragma once

#include <cstdint>
#include <vector>

#include "base/option_rows.h"
#include "base/status.h"

// clang-format off
#define MOTE_SAMPLING_OPTIONS(X)                                                                                       \
  X(do_sample, bool, false, anything(), "", kPlain,                                                                      \
    "Draw tokens at random by their probability instead of always taking the likeliest; a sampling option implies it") \
  X(seed, uint64_t, 0, at_least(0), "", kAsksForSampling,                                                              \
    "The same seed gives the same text; without one it is another one each time")                                      \
  X(repetition_penalty, float, 1.0f, above(0, "1: off"), "", kPlain, "Above 1: avoid tokens that occurred")            \
  X(repetition_window, int32_t, 0, at_least(0, "0: all"), "tokens", kPlain,                                            \
    "The last tokens that the repetition penalty looks at")                                                            \
  X(frequency_penalty, float, 0.0f, any_number("0: off"), "", kPlain,                                                  \
    "Taken off a token's logit for each time that it was generated")                                                   \
  X(presence_penalty, float, 0.0f, any_number("0: off"), "", kPlain,                                                   \
    "Taken off the logit of a token that was generated")                                                               \
  X(dry_multiplier, float, 0.0f, at_least(0, "0: off"), "", kPlain,                                                    \
    "DRY: how much to avoid going on with a repetition")                                                               \
  X(dry_base, float, 1.75f, at_least(1), "", kPlain, "DRY: growth of the penalty with each repeated token")            \
  X(dry_allowed_length, int32_t, 2, at_least(1), "tokens", kPlain, "DRY: the shortest repetition that costs")          \
  X(dry_window, int32_t, 0, at_least(0, "0: all"), "tokens", kPlain, "DRY: the last tokens that are looked at")        \
  X(no_repeat_ngram_size, int32_t, 0, at_least(0, "0: off"), "tokens", kPlain,                                         \
    "No so many tokens in a row occur twice")                                                                          \
  X(min_new_tokens, int32_t, 0, at_least(0), "tokens", kPlain, "No end-of-sequence token before so many")              \
  X(temperature, float, 1.0f, at_least(0, "0: always the likeliest"), "", kAsksForSampling,                            \
    "Above 1: more varied; below: more predictable")                                                                   \
  X(top_n_sigma, float, 0.0f, at_least(0, "0: off"), "", kAsksForSampling,                                             \
    "Leave out tokens whose logit is so many standard deviations below the largest")                                   \
  X(top_k, int32_t, 0, at_least(0, "0: off"), "tokens", kAsksForSampling, "Sample among the K likeliest tokens")       \
  X(top_p, float, 1.0f, within(0, 1, "1: off"), "", kAsksForSampling,                                                  \
    "Sample among the likeliest tokens with this total probability")                                                   \
  X(min_p, float, 0.0f, within(0, 1, "0: off"), "", kAsksForSampling,                                                  \
    "Leave out tokens below this fraction of the likeliest one's probability")                                         \
  X(typical_p, float, 1.0f, above_up_to(0, 1, "1: off"), "", kAsksForSampling,                                         \
    "Sample among the tokens of the usual surprise with this total probability")                                       \
  X(xtc_probability, float, 0.0f, within(0, 1, "0: off"), "", kAsksForSampling,                                        \
    "XTC: how often the likeliest tokens are left out, but for the last of them")                                      \
  X(xtc_threshold, float, 0.1f, within(0, 1), "", kPlain,                                                              \
    "XTC: the probability from which tokens are left out")                                                             \
  X(mirostat, Mirostat, Mirostat::kOff, anything(), "", kAsksForSampling,                                              \
    "2: Mirostat 2 takes the place of all filters and holds the surprise of the text at mirostat_tau")                 \
  X(mirostat_tau, float, 5.0f, above(0), "bits", kPlain, "Mirostat: the surprise of a token that is aimed at")         \
  X(mirostat_eta, float, 0.1f, within(0, 1), "", kPlain, "Mirostat: how fast it learns from each token")
// clang-format on

namespace mote {

enum class Mirostat : int32_t { kOff = 0, kVersion2 = 1 };

// Added to the logit of the last id where the others stand at the end of the text. -infinity: never.
struct SequenceBias {
  std::vector<int32_t> ids;
  float bias = 0.0f;
};

struct SamplingOptions {
  MOTE_SAMPLING_OPTIONS(MOTE_OPTION_FIELD)
  std::vector<SequenceBias> sequence_bias{};
  std::vector<int32_t> dry_sequence_breakers{};  // ids that no repetition goes across

  bool is_greedy() const { return !do_sample || temperature == 0.0f; }
};

// Errors: kInvalidArgument naming the option, its value and what would be accepted.
Status check_sampling(const SamplingOptions& options, int32_t vocab_size);
Status check_token_ids(const char* name, const std::vector<int32_t>& ids, int32_t vocab_size);

}  // namespace mote
