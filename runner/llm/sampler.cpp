#include "runner/llm/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mote {
namespace {

Status out_of_range(const char* name, double value, const char* accepted) {
  return {Code::kInvalidArgument, format("%s = %g: must be %s", name, value, accepted)};
}

bool in_unit_range(float value) { return value >= 0.0f && value <= 1.0f; }

bool positive(float value) { return value > 0.0f && std::isfinite(value); }

}  // namespace

Status check_sampling(const SamplingOptions& options) {
  if (!positive(options.temperature)) {
    return out_of_range("temperature", static_cast<double>(options.temperature),
                        "a number above 0; for the likeliest token at every step use greedy decoding");
  }
  if (options.top_k < 0) return out_of_range("top_k", options.top_k, "0 (off) or more");
  if (!in_unit_range(options.top_p)) return out_of_range("top_p", static_cast<double>(options.top_p), "0..1 (1: off)");
  if (!in_unit_range(options.min_p)) return out_of_range("min_p", static_cast<double>(options.min_p), "0..1 (0: off)");
  if (!positive(options.repetition_penalty)) {
    return out_of_range("repetition_penalty", static_cast<double>(options.repetition_penalty), "a number above 0 (1: off)");
  }
  return {};
}

Sampler::Sampler(const SamplingOptions& options, int32_t vocab_size)
    : options_(options), random_(options.seed), logits_(static_cast<size_t>(vocab_size)),
      is_observed_(static_cast<size_t>(vocab_size)) {}

void Sampler::observe(int32_t id) {
  const auto index = static_cast<size_t>(id);
  if (id < 0 || index >= is_observed_.size() || is_observed_[index]) return;
  is_observed_[index] = true;
  observed_.push_back(id);
}

void Sampler::read_logits(std::span<const float> logits) {
  const size_t count = std::min(logits.size(), logits_.size());
  std::copy_n(logits.begin(), count, logits_.begin());
  std::replace_if(logits_.begin(), logits_.end(), [](float x) { return std::isnan(x); },
                  -std::numeric_limits<float>::infinity());
  const float penalty = options_.repetition_penalty;
  if (penalty == 1.0f) return;
  for (const int32_t id : observed_) {
    float& logit = logits_[static_cast<size_t>(id)];
    logit = logit < 0.0f ? logit * penalty : logit / penalty;
  }
}

int32_t Sampler::greedy() const {
  return static_cast<int32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
}

int32_t Sampler::sample(std::span<const float> logits) {
  read_logits(logits);
  if (!options_.do_sample) return greedy();
  collect_candidates();
  double rest = random_.uniform() * total_weight();
  int32_t last_possible = candidates_.front().id;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight <= 0.0) continue;
    last_possible = candidate.id;
    rest -= candidate.weight;
    if (rest < 0.0) break;
  }
  return last_possible;
}

std::vector<float> Sampler::probabilities(std::span<const float> logits) {
  read_logits(logits);
  std::vector<float> result(logits_.size(), 0.0f);
  if (!options_.do_sample) {
    result[static_cast<size_t>(greedy())] = 1.0f;
    return result;
  }
  collect_candidates();
  const double total = total_weight();
  for (const Candidate& candidate : candidates_) {
    result[static_cast<size_t>(candidate.id)] = static_cast<float>(candidate.weight / total);
  }
  return result;
}

void Sampler::collect_candidates() {
  candidates_.clear();
  const float temperature = options_.temperature;
  for (float& logit : logits_) logit /= temperature;
  keep_top_k();
  const float largest = *std::max_element(logits_.begin(), logits_.end());
  for (Candidate& candidate : candidates_) {
    const double distance = static_cast<double>(candidate.logit) - static_cast<double>(largest);
    candidate.weight = candidate.logit == largest ? 1.0 : std::exp(distance);  // equal: also where both are infinite
  }
  keep_top_p();
  keep_min_p();
}

// Candidates are the logits that are not below the k-th largest: ties at the border all stay.
void Sampler::keep_top_k() {
  const auto k = static_cast<size_t>(options_.top_k);
  float border = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits_.size(); ++i) candidates_.push_back({logits_[i], static_cast<int32_t>(i), 0.0});
  if (k == 0 || k >= candidates_.size()) return;
  const auto kth = candidates_.begin() + static_cast<ptrdiff_t>(k) - 1;
  std::nth_element(candidates_.begin(), kth, candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  border = kth->logit;
  candidates_.clear();
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] >= border) candidates_.push_back({logits_[i], static_cast<int32_t>(i), 0.0});
  }
}

// Keeps a candidate while the likelier ones have less than top_p of the mass together. Sorts only as far as needed.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1.0f) return;
  const double limit = static_cast<double>(options_.top_p) * total_weight();
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  size_t num_sorted = 0;
  double mass = 0.0;
  for (size_t kept = 0; kept < candidates_.size(); ++kept) {
    if (kept > 0 && mass >= limit) {
      candidates_.resize(kept);
      return;
    }
    if (kept == num_sorted) {
      const size_t next = std::min(candidates_.size(), num_sorted + std::max<size_t>(256, num_sorted * 7));
      const auto begin = candidates_.begin() + static_cast<ptrdiff_t>(num_sorted);
      std::partial_sort(begin, candidates_.begin() + static_cast<ptrdiff_t>(next), candidates_.end(), likelier);
      num_sorted = next;
    }
    mass += candidates_[kept].weight;
  }
}

// The likeliest candidate has weight 1, so min_p is a border of the weights.
void Sampler::keep_min_p() {
  if (options_.min_p <= 0.0f) return;
  const auto border = static_cast<double>(options_.min_p);
  std::erase_if(candidates_, [border](const Candidate& candidate) { return candidate.weight < border; });
}

double Sampler::total_weight() const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
}

}  // namespace mote
