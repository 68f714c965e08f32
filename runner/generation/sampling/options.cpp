#include "runner/generation/sampling/options.h"

#include <cmath>

#include "runner/generation/options/accepted.h"

namespace mote {

Status check_token_ids(const char* name, const std::vector<int32_t>& ids, int32_t vocab_size) {
  for (const int32_t id : ids) {
    MOTE_REQUIRE(id >= 0 && id < vocab_size, Code::kInvalidArgument, "%s: token id %d: must be 0..%d", name, id,
                 vocab_size - 1);
  }
  return {};
}

Status check_sampling(const SamplingOptions& options, int32_t vocab_size) {
  MOTE_SAMPLING_OPTIONS(MOTE_OPTION_CHECK)
  MOTE_RETURN_IF_ERROR(check_token_ids("dry_sequence_breakers", options.dry_sequence_breakers, vocab_size));
  for (const SequenceBias& entry : options.sequence_bias) {
    MOTE_REQUIRE(!entry.ids.empty(), Code::kInvalidArgument,
                 "a sequence with a bias has no token ids: at least one is needed");
    MOTE_REQUIRE(entry.bias < HUGE_VALF, Code::kInvalidArgument,
                 "a bias = %g: must be a finite number or -infinity (never)", static_cast<double>(entry.bias));
    MOTE_RETURN_IF_ERROR(check_token_ids("a sequence with a bias", entry.ids, vocab_size));
  }
  return {};
}

}  // namespace mote
