// Logits to a token id, with the meaning and the order of Hugging Face transformers: repetition penalty, then
// temperature, top-k, top-p, min-p.
// Source: transformers generation/logits_process.py, generation/utils.py _get_logits_processor
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runner/llm/random.h"

namespace mote {

struct SamplingOptions {
  bool do_sample = false;           // false: the largest logit, the lowest id among equals
  float temperature = 1.0f;         // > 0
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // 0..1; 1: off
  float min_p = 0.0f;               // 0..1; 0: off
  float repetition_penalty = 1.0f;  // > 0; 1: off
  uint64_t seed = 0;
};

// Errors: kInvalidArgument naming the option, its value and what would be accepted.
Status check_sampling(const SamplingOptions& options);

// Thread safety: one thread at a time. Cost: O(vocabulary) a token, no allocation after the first.
class Sampler {
 public:
  // `options` passed check_sampling.
  Sampler(const SamplingOptions& options, int32_t vocab_size);

  // Counts `id` among those that the repetition penalty applies to, once however often it occurs.
  void observe(int32_t id);

  // The next id. `logits` has vocab_size entries; one that is not a number counts as -infinity.
  int32_t sample(std::span<const float> logits);

  // What `sample` draws from: the probability of each id, 0 for those that were filtered out.
  std::vector<float> probabilities(std::span<const float> logits);

 private:
  struct Candidate {
    float logit = 0.0f;
    int32_t id = 0;
    double weight = 0.0;  // exp(logit - largest logit)
  };

  void read_logits(std::span<const float> logits);
  int32_t greedy() const;
  void collect_candidates();
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  double total_weight() const;

  SamplingOptions options_;
  Random random_;
  std::vector<float> logits_;
  std::vector<bool> is_observed_;
  std::vector<int32_t> observed_;
  std::vector<Candidate> candidates_;
};

}  // namespace mote
