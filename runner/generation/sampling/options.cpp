#include "runner/generation/sampling/options.h"

#include <cmath>

namespace mote {
namespace {

struct Check {
  const char* name;
  double value;
  bool ok;
  const char* accepted;
};

bool in_unit_range(float value) { return value >= 0.0f && value <= 1.0f; }
bool is_positive(float value) { return value > 0.0f && std::isfinite(value); }

}  // namespace

Status check_token_ids(const char* name, const std::vector<int32_t>& ids, int32_t vocab_size) {
  for (const int32_t id : ids) {
    MOTE_REQUIRE(id >= 0 && id < vocab_size, Code::kInvalidArgument, "%s: token id %d: must be 0..%d", name, id,
                 vocab_size - 1);
  }
  return {};
}

Status check_sampling(const SamplingOptions& o, int32_t vocab_size) {
  const Check checks[] = {
      {"temperature", static_cast<double>(o.temperature), is_positive(o.temperature),
       "a number above 0; for the likeliest token at every step use greedy decoding"},
      {"top_k", static_cast<double>(o.top_k), o.top_k >= 0, "0 (off) or more"},
      {"top_p", static_cast<double>(o.top_p), in_unit_range(o.top_p), "0..1 (1: off)"},
      {"min_p", static_cast<double>(o.min_p), in_unit_range(o.min_p), "0..1 (0: off)"},
      {"typical_p", static_cast<double>(o.typical_p), o.typical_p > 0.0f && o.typical_p <= 1.0f,
       "above 0, at most 1 (1: off)"},
      {"xtc_probability", static_cast<double>(o.xtc_probability), in_unit_range(o.xtc_probability), "0..1 (0: off)"},
      {"xtc_threshold", static_cast<double>(o.xtc_threshold), in_unit_range(o.xtc_threshold), "0..1"},
      {"repetition_penalty", static_cast<double>(o.repetition_penalty), is_positive(o.repetition_penalty),
       "a number above 0 (1: off)"},
      {"repetition_window", static_cast<double>(o.repetition_window), o.repetition_window >= 0,
       "0 (everything) or more"},
      {"frequency_penalty", static_cast<double>(o.frequency_penalty), std::isfinite(o.frequency_penalty),
       "a finite number (0: off)"},
      {"presence_penalty", static_cast<double>(o.presence_penalty), std::isfinite(o.presence_penalty),
       "a finite number (0: off)"},
      {"dry_multiplier", static_cast<double>(o.dry_multiplier),
       o.dry_multiplier >= 0.0f && std::isfinite(o.dry_multiplier), "a finite number, 0 (off) or more"},
      {"dry_base", static_cast<double>(o.dry_base), o.dry_base >= 1.0f && std::isfinite(o.dry_base),
       "a finite number, 1 or more"},
      {"dry_allowed_length", static_cast<double>(o.dry_allowed_length), o.dry_allowed_length >= 1, "1 or more"},
      {"dry_window", static_cast<double>(o.dry_window), o.dry_window >= 0, "0 (everything) or more"},
      {"no_repeat_ngram_size", static_cast<double>(o.no_repeat_ngram_size), o.no_repeat_ngram_size >= 0,
       "0 (off) or more"},
      {"min_new_tokens", static_cast<double>(o.min_new_tokens), o.min_new_tokens >= 0, "0 or more"},
  };
  for (const Check& check : checks) {
    MOTE_REQUIRE(check.ok, Code::kInvalidArgument, "%s = %g: must be %s", check.name, check.value, check.accepted);
  }
  MOTE_RETURN_IF_ERROR(check_token_ids("dry_sequence_breakers", o.dry_sequence_breakers, vocab_size));
  for (const SequenceBias& entry : o.sequence_bias) {
    MOTE_REQUIRE(!entry.ids.empty(), Code::kInvalidArgument,
                 "a sequence with a bias has no token ids: at least one is needed");
    MOTE_REQUIRE(entry.bias < HUGE_VALF, Code::kInvalidArgument,
                 "a bias = %g: must be a finite number or -infinity (never)", static_cast<double>(entry.bias));
    MOTE_RETURN_IF_ERROR(check_token_ids("a sequence with a bias", entry.ids, vocab_size));
  }
  return {};
}

}  // namespace mote
