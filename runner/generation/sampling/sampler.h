// Logits to a token id, with the meaning and the order of Hugging Face transformers: what changes logits
// (logit_edits.h), then temperature, top-n-sigma, top-k, top-p, min-p, typical-p, then XTC. Source: transformers
// generation/logits_process.py, generation/utils.py _get_logits_processor; top-n-sigma: Tang et al., "Top-n-sigma: Not
// All Logits Are You Need", Mirostat 2: Basu et al., "Mirostat", both as llama.cpp has them
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/support/scan.h"
#include "runner/generation/sampling/logit_edits.h"
#include "runner/generation/sampling/options.h"
#include "runner/generation/sampling/random.h"
#include "runner/program/delegate.h"
#include "runner/session/logprobs.h"

namespace mote {

// Thread safety: one thread at a time. Cost: one pass over the logits where greedy, two or three otherwise, and a sort
// of what top-k or top-p may keep; logits are never copied as a whole. With maxima, greedy and top-k read the maxima
// and of the logits only the blocks that can have what they look for. No allocation once its lists have grown.
class Sampler {
 public:
  // `options` passed check_sampling.
  Sampler(const SamplingOptions& options, int32_t vocab_size, std::span<const int32_t> eos_ids = {});

  // The text goes on with `id`.
  void observe(int32_t id, bool is_generated = false) { edits_.observe(id, is_generated); }

  // From now on only ids whose bit is set are drawn, whatever their logits: bit id % 32 of word id / 32, at least one
  // for each id. Empty: all are. `mask` outlives its use.
  void allow_only(std::span<const uint32_t> mask) { mask_ = mask; }

  // The next id. `logits` has vocab_size entries; one that is not a number counts as -infinity. `maxima`: the largest
  // of every kMaximaBlock logits, or empty; the id is the same either way.
  int32_t sample(std::span<const float> logits, std::span<const float> maxima = {});

  // How many of the largest logits sample_largest needs; 0: sample needs them all.
  size_t num_largest() const;
  // As sample, of the num_largest() largest logits (Session::largest). nullopt: these do not tell, and nothing was
  // drawn.
  std::optional<int32_t> sample_largest(std::span<const LargestElement> largest);

  // What `sample` draws from: the probability of each id, 0 for those that were filtered out.
  std::vector<float> probabilities(std::span<const float> logits, std::span<const float> maxima = {});

  // The `count` likeliest ids of the model's own distribution, likeliest first, the lowest id among equals.
  // `total`: log_sum_exp of the logits.
  std::vector<TokenLogprob> likeliest(std::span<const float> logits, std::span<const float> maxima, double total,
                                      size_t count);

 private:
  struct Candidate {
    float logit = 0.0f;
    int32_t id = 0;
    double weight = 0.0;  // exp((logit - largest logit) / temperature)

    bool is_likelier_than(const Candidate& other) const {
      return logit != other.logit ? logit > other.logit : id < other.id;
    }
  };

  struct Logits {
    std::span<const float> values;
    std::span<const float> maxima;
    std::span<const LogitEdit> edits;
    std::span<const uint32_t> mask;  // empty: all ids
  };
  // A part of the vocabulary, edited.
  struct Part {
    const float* logits;
    const float* maxima;  // nullptr: not known
    int32_t first_id;
    int64_t count;

    Part block(int64_t index) const;  // without maxima
  };
  Logits known(std::span<const float> logits, std::span<const float> maxima) const;
  Logits edited(std::span<const float> logits, std::span<const float> maxima);
  template <typename Body> void for_each_part(const Logits& logits, const Body& body);
  Part part(const Logits& logits, size_t begin);
  void copy_allowed(const Logits& logits, size_t begin, size_t count);
  bool is_allowed(int32_t id) const;

  float maximum(const Part& part) const;
  int64_t argmax(const Part& part) const;
  int32_t greedy(const Logits& logits);
  bool draws_from_all() const;
  int32_t draw_from_all(const Logits& logits);
  int32_t draw_from_part(const Part& part, float top, double rest);
  int32_t draw_candidate();

  float find_top(const Logits& logits);
  double sum_weights(const Logits& logits, float top);
  float lowest_of_top_n_sigma(const Logits& logits, float top);
  float logit_of(float top, double weight) const;
  void set_weights(float top);
  void collect_for_mirostat(const Logits& logits, float top);
  void learn_surprise(int32_t id);
  void collect_candidates(const Logits& logits);
  void filter(float top, std::optional<double> total);
  void collect_at_least(const Logits& logits, float threshold);
  void collect_equal(const Logits& logits, float value);
  void collect_largest(const Logits& logits, size_t count);
  void add_at_least(const Part& part, float threshold);
  void add_block(const Part& part, float threshold);
  float kth_maximum(const Logits& logits, size_t k);
  float keep_largest(size_t count);
  void sort_by_id();
  void keep_top_p(double total);
  void keep_min_p();
  void keep_typical();
  void leave_top_choices_out();
  double total_weight() const;

  SamplingOptions options_;
  LogitEdits edits_;
  Random random_;
  const ScanFunctions& scan_;
  float factor_;          // 1 / temperature
  double most_surprise_;  // Mirostat: bits of what is kept
  size_t vocab_size_;
  std::vector<float> part_;  // logits of a part that is edited, or weights
  std::vector<int32_t> indices_;
  std::vector<int32_t> blocks_;  // of a part, those worth reading
  std::vector<float> largest_;   // maxima, partly sorted
  std::vector<double> part_weights_;
  std::vector<Candidate> candidates_;
  std::span<const uint32_t> mask_;
};

}  // namespace mote
