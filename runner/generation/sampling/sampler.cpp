#include "runner/generation/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include "kernels/op.h"
#include "kernels/support/math.h"

namespace mote {
namespace {

constexpr size_t kPart = 4096;  // logits that are looked at together: they stay in the first cache
static_assert(kPart % kMaximaBlock == 0, "a part has maxima of its own");

}  // namespace

Sampler::Sampler(const SamplingOptions& options, int32_t vocab_size, std::span<const int32_t> eos_ids)
    : options_(options),
      edits_(options, vocab_size, eos_ids),
      random_(options.seed),
      scan_(scan_functions()),
      factor_(std::min(1.0f / options.temperature, std::numeric_limits<float>::max())),
      most_surprise_(2.0 * static_cast<double>(options.mirostat_tau)),
      vocab_size_(static_cast<size_t>(vocab_size)),
      part_(kPart),
      indices_(kPart),
      blocks_(kPart / kMaximaBlock) {}

Sampler::Part Sampler::Part::block(int64_t index) const {
  const int64_t begin = index * kMaximaBlock;
  return {logits + begin, nullptr, first_id + static_cast<int32_t>(begin), std::min(kMaximaBlock, count - begin)};
}

// Those of the vocabulary; maxima that are not of just these logits are left out.
Sampler::Logits Sampler::known(std::span<const float> logits, std::span<const float> maxima) const {
  const bool fits = logits.size() <= vocab_size_ &&
                    maxima.size() == static_cast<size_t>(num_maxima(static_cast<int64_t>(logits.size())));
  return {logits.first(std::min(logits.size(), vocab_size_)), fits ? maxima : std::span<const float>(), {}, {}};
}

Sampler::Logits Sampler::edited(std::span<const float> logits, std::span<const float> maxima) {
  Logits result = known(logits, maxima);
  result.edits = edits_.apply(result.values);
  result.mask = mask_;
  return result;
}

template <typename Body>
void Sampler::for_each_part(const Logits& logits, const Body& body) {
  for (size_t begin = 0; begin < logits.values.size(); begin += kPart) {
    if (!logits.mask.empty()) {  // parts of which nothing is allowed are passed over
      const auto words = logits.mask.subspan(begin / 32, std::min(kPart / 32, logits.mask.size() - begin / 32));
      if (std::all_of(words.begin(), words.end(), [](uint32_t word) { return word == 0; })) continue;
    }
    body(part(logits, begin));
  }
}

bool Sampler::is_allowed(int32_t id) const {
  return mask_.empty() || (mask_[static_cast<size_t>(id) / 32] >> (static_cast<uint32_t>(id) % 32) & 1U) != 0;
}

// To part_, with -infinity for the others.
void Sampler::copy_allowed(const Logits& logits, size_t begin, size_t count) {
  const float* from = logits.values.data() + begin;
  for (size_t i = 0; i < count; i += 32) {
    const uint32_t word = logits.mask[(begin + i) / 32];
    const size_t end = std::min(count, i + 32);
    if (word == ~0U) {
      std::copy(from + i, from + end, part_.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    for (size_t j = i; j < end; ++j)
      part_[j] = (word >> (j - i) & 1U) != 0 ? from[j] : -std::numeric_limits<float>::infinity();
  }
}

// The logits where they lie, or copied to part_ where one is edited.
Sampler::Part Sampler::part(const Logits& logits, size_t begin) {
  const size_t count = std::min(kPart, logits.values.size() - begin);
  const float* maxima = logits.maxima.empty() ? nullptr : logits.maxima.data() + begin / kMaximaBlock;
  Part result{logits.values.data() + begin, maxima, static_cast<int32_t>(begin), static_cast<int64_t>(count)};
  auto edit = std::lower_bound(logits.edits.begin(), logits.edits.end(), result.first_id,
                               [](const LogitEdit& a, int32_t id) { return a.id < id; });
  const auto is_inside = [&] { return edit != logits.edits.end() && edit->id - result.first_id < result.count; };
  if (!is_inside() && logits.mask.empty()) return result;
  if (logits.mask.empty())
    std::copy_n(result.logits, count, part_.begin());
  else
    copy_allowed(logits, begin, count);
  for (; is_inside(); ++edit) {
    if (logits.mask.empty() || is_allowed(edit->id))
      part_[static_cast<size_t>(edit->id - result.first_id)] = edit->logit;
  }
  result.logits = part_.data();
  result.maxima = nullptr;
  return result;
}

float Sampler::maximum(const Part& part) const {
  if (part.maxima == nullptr) return scan_.maximum(part.logits, part.count);
  return scan_.maximum(part.maxima, num_maxima(part.count));
}

int64_t Sampler::argmax(const Part& part) const {
  if (part.maxima == nullptr) return scan_.argmax(part.logits, part.count);
  const int64_t index = scan_.argmax(part.maxima, num_maxima(part.count));
  const Part block = part.block(index);
  return index * kMaximaBlock + scan_.argmax(block.logits, block.count);
}

int32_t Sampler::greedy(const Logits& logits) {
  float largest = -std::numeric_limits<float>::infinity();
  int32_t best = -1;
  for_each_part(logits, [&](const Part& part) {
    const int64_t index = argmax(part);
    if (!(part.logits[index] > largest)) return;
    largest = part.logits[index];
    best = part.first_id + static_cast<int32_t>(index);
  });
  if (best >= 0) return best;
  collect_equal(logits, -std::numeric_limits<float>::infinity());
  return candidates_.empty() ? 0 : candidates_.front().id;
}

int32_t Sampler::sample(std::span<const float> all_logits, std::span<const float> maxima) {
  const Logits logits = edited(all_logits, maxima);
  if (options_.is_greedy()) return greedy(logits);
  if (draws_from_all()) return draw_from_all(logits);
  collect_candidates(logits);
  const int32_t id = draw_candidate();
  if (options_.mirostat == Mirostat::kVersion2) learn_surprise(id);
  return id;
}

// One more than top-k keeps tells whether others tie with the last.
size_t Sampler::num_largest() const {
  if (!edits_.is_idle() || !mask_.empty()) return 0;
  if (options_.is_greedy()) return 1;
  const auto wanted = static_cast<size_t>(options_.top_k) + 1;
  const bool looks_at_all = options_.top_k == 0 || options_.mirostat != Mirostat::kOff || options_.top_n_sigma > 0.0f;
  return looks_at_all || wanted > std::min(kMostLargest, vocab_size_) ? 0 : wanted;
}

std::optional<int32_t> Sampler::sample_largest(std::span<const LargestElement> largest) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  if (largest.empty() || largest.size() != num_largest()) return std::nullopt;
  if (options_.is_greedy()) return largest[0].value > kLeast ? std::optional(largest[0].index) : std::nullopt;
  const size_t count = largest.size() - 1;
  const float top = largest[0].value;
  if (!std::isfinite(top) || !(largest[count - 1].value > largest[count].value)) return std::nullopt;
  candidates_.clear();
  for (const LargestElement& each : largest.first(count)) candidates_.push_back({each.value, each.index, 0.0});
  sort_by_id();
  filter(top, std::nullopt);
  return draw_candidate();
}

std::vector<float> Sampler::probabilities(std::span<const float> all_logits, std::span<const float> maxima) {
  const Logits logits = edited(all_logits, maxima);
  std::vector<float> result(vocab_size_, 0.0f);
  if (options_.is_greedy()) {
    result[static_cast<size_t>(greedy(logits))] = 1.0f;
    return result;
  }
  collect_candidates(logits);
  const double total = total_weight();
  for (const Candidate& candidate : candidates_) {
    result[static_cast<size_t>(candidate.id)] = static_cast<float>(candidate.weight / total);
  }
  return result;
}

int32_t Sampler::draw_candidate() {
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

// Nothing is filtered out.
bool Sampler::draws_from_all() const {
  const bool keeps_all = options_.top_k == 0 || static_cast<size_t>(options_.top_k) >= vocab_size_;
  return keeps_all && options_.mirostat == Mirostat::kOff && options_.top_n_sigma <= 0.0f && options_.top_p >= 1.0f &&
         options_.min_p <= 0.0f && options_.typical_p >= 1.0f && options_.xtc_probability <= 0.0f;
}

int32_t Sampler::draw_from_all(const Logits& logits) {
  const float top = find_top(logits);
  if (!std::isfinite(top)) {
    collect_equal(logits, top);
    return draw_candidate();
  }
  double rest = random_.uniform() * sum_weights(logits, top);
  size_t last_possible = 0;
  for (size_t i = 0; i < part_weights_.size(); ++i) {
    if (part_weights_[i] <= 0.0) continue;
    last_possible = i;
    if (rest < part_weights_[i]) break;
    rest -= part_weights_[i];
  }
  return draw_from_part(part(logits, last_possible * kPart), top, rest);
}

int32_t Sampler::draw_from_part(const Part& part, float top, double rest) {
  scan_.exponentials(part.logits, part.count, top, factor_, part_.data());
  int32_t last_possible = part.first_id;
  for (int64_t i = 0; i < part.count; ++i) {
    const auto weight = static_cast<double>(part_[static_cast<size_t>(i)]);
    if (weight <= 0.0) continue;
    last_possible = part.first_id + static_cast<int32_t>(i);
    rest -= weight;
    if (rest < 0.0) break;
  }
  return last_possible;
}

float Sampler::find_top(const Logits& logits) {
  float top = -std::numeric_limits<float>::infinity();
  for_each_part(logits, [&](const Part& part) { top = std::max(top, maximum(part)); });
  return top;
}

// Of all ids, before any filter; part_weights_ has those of the parts.
double Sampler::sum_weights(const Logits& logits, float top) {
  part_weights_.assign((logits.values.size() + kPart - 1) / kPart, 0.0);
  for_each_part(logits, [&](const Part& part) {
    const auto weight = static_cast<double>(scan_.exponentials(part.logits, part.count, top, factor_, nullptr));
    part_weights_[static_cast<size_t>(part.first_id) / kPart] = weight;
  });
  double total = 0.0;
  for (const double weight : part_weights_) total += weight;
  return total;
}

// The logit from which top-n-sigma keeps ids: so many standard deviations of all finite logits below the largest.
float Sampler::lowest_of_top_n_sigma(const Logits& logits, float top) {
  double count = 0.0;
  double sum = 0.0;
  double squares = 0.0;  // of distances from the largest, which lose the least
  for_each_part(logits, [&](const Part& part) {
    for (int64_t i = 0; i < part.count; ++i) {
      if (!std::isfinite(part.logits[i])) continue;
      const double distance = static_cast<double>(part.logits[i]) - static_cast<double>(top);
      count += 1.0;
      sum += distance;
      squares += distance * distance;
    }
  });
  const double mean = sum / count;
  const double deviation = std::sqrt(std::max(squares / count - mean * mean, 0.0));
  return static_cast<float>(static_cast<double>(top) - static_cast<double>(options_.top_n_sigma) * deviation);
}

// The logit of a weight, a little lower.
float Sampler::logit_of(float top, double weight) const {
  return static_cast<float>(static_cast<double>(top) + (math::log(weight) - 0.01) / static_cast<double>(factor_));
}

void Sampler::set_weights(float top) {
  for (Candidate& candidate : candidates_) {
    candidate.weight =
        math::exp((static_cast<double>(candidate.logit) - static_cast<double>(top)) * static_cast<double>(factor_));
  }
}

// Ids of at most most_surprise_ bits, or the likeliest alone.
void Sampler::collect_for_mirostat(const Logits& logits, float top) {
  const double least_weight = sum_weights(logits, top) * math::exp(-most_surprise_ * std::numbers::ln2);
  collect_at_least(logits, std::min(top, logit_of(top, least_weight)));
  set_weights(top);
  const auto likeliest = std::min_element(candidates_.begin(), candidates_.end(),
                                          [](const auto& a, const auto& b) { return a.is_likelier_than(b); });
  if (least_weight > 1.0) {
    candidates_ = {Candidate(*likeliest)};
    return;
  }
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < least_weight; });
}

// By how much the drawn id surprised more or less than was aimed at, less or more is kept from now on.
void Sampler::learn_surprise(int32_t id) {
  const auto drawn = std::ranges::find(candidates_, id, &Candidate::id);
  const double surprise = -math::log(drawn->weight / total_weight()) / std::numbers::ln2;
  most_surprise_ -=
      static_cast<double>(options_.mirostat_eta) * (surprise - static_cast<double>(options_.mirostat_tau));
}

// Those that the filters keep, with their weights.
void Sampler::collect_candidates(const Logits& logits) {
  candidates_.clear();
  const float top = find_top(logits);
  if (!std::isfinite(top)) return collect_equal(logits, top);
  if (options_.mirostat == Mirostat::kVersion2) return collect_for_mirostat(logits, top);
  const bool has_top_k = options_.top_k > 0 && static_cast<size_t>(options_.top_k) < logits.values.size();
  const bool has_sigma = options_.top_n_sigma > 0.0f;
  double total = 0.0;
  if (has_sigma) {
    collect_at_least(logits, lowest_of_top_n_sigma(logits, top));
    if (has_top_k) keep_largest(static_cast<size_t>(options_.top_k));
    sort_by_id();
  } else if (has_top_k) {
    collect_largest(logits, static_cast<size_t>(options_.top_k));
  } else if (options_.top_p < 1.0f) {
    // Ids below this weight have less than 1 - top_p of the mass together, so top-p keeps none of them.
    total = sum_weights(logits, top);
    collect_at_least(logits, logit_of(top, (1.0 - static_cast<double>(options_.top_p)) * total /
                                               static_cast<double>(logits.values.size())));
  } else {
    collect_at_least(logits, logit_of(top, static_cast<double>(options_.min_p)));
  }
  if (!logits.mask.empty()) {  // top_k may be more than there are allowed ids
    std::erase_if(candidates_, [](const Candidate& candidate) {
      return candidate.logit == -std::numeric_limits<float>::infinity();
    });
  }
  filter(top, has_top_k || has_sigma ? std::nullopt : std::optional(total));
}

// total: of the weights of all ids, where more than the candidates count.
void Sampler::filter(float top, std::optional<double> total) {
  set_weights(top);
  keep_top_p(total.has_value() ? *total : total_weight());
  keep_min_p();
  keep_typical();
  leave_top_choices_out();
}

void Sampler::add_at_least(const Part& part, float threshold) {
  if (part.maxima == nullptr) return add_block(part, threshold);
  const int64_t count = scan_.at_least(part.maxima, num_maxima(part.count), threshold, blocks_.data());
  for (int64_t i = 0; i < count; ++i) add_block(part.block(blocks_[static_cast<size_t>(i)]), threshold);
}

void Sampler::add_block(const Part& part, float threshold) {
  const int64_t count = scan_.at_least(part.logits, part.count, threshold, indices_.data());
  for (int64_t i = 0; i < count; ++i) {
    const int32_t index = indices_[static_cast<size_t>(i)];
    candidates_.push_back({part.logits[index], part.first_id + index, 0.0});
  }
}

void Sampler::collect_at_least(const Logits& logits, float threshold) {
  for_each_part(logits, [&](const Part& part) { add_at_least(part, threshold); });
}

// All ids with the logit `value`, which is infinite; a logit that is not a number counts as -infinity.
void Sampler::collect_equal(const Logits& logits, float value) {
  candidates_.clear();
  for_each_part(logits, [&](const Part& part) {
    for (int64_t i = 0; i < part.count; ++i) {
      const float logit = part.logits[i];
      const int32_t id = part.first_id + static_cast<int32_t>(i);
      if ((logit == value || value < 0.0f) && (logits.mask.empty() || is_allowed(id)))
        candidates_.push_back({value, id, 1.0});
    }
  });
}

// Never above the k-th largest logit.
float Sampler::kth_maximum(const Logits& logits, size_t k) {
  if (!logits.edits.empty() || !logits.mask.empty() || logits.maxima.size() < k)
    return -std::numeric_limits<float>::infinity();
  largest_.assign(logits.maxima.begin(), logits.maxima.end());
  const auto kth = largest_.begin() + static_cast<ptrdiff_t>(k) - 1;
  std::nth_element(largest_.begin(), kth, largest_.end(), std::greater<>());
  return *kth;
}

// Ties at the border all stay. The border rises while the parts are read, so that few get in.
void Sampler::collect_largest(const Logits& logits, size_t k) {
  candidates_.clear();
  float border = kth_maximum(logits, k);
  for_each_part(logits, [&](const Part& part) {
    add_at_least(part, border);
    if (candidates_.size() >= 2 * k + 64) border = keep_largest(k);
  });
  keep_largest(k);
  sort_by_id();
}

void Sampler::sort_by_id() {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

std::vector<TokenLogprob> Sampler::likeliest(std::span<const float> all_logits, std::span<const float> maxima,
                                             double total, size_t count) {
  const Logits logits = known(all_logits, maxima);
  count = std::min(count, logits.values.size());
  if (count == 0) return {};
  collect_largest(logits, count);
  std::sort(candidates_.begin(), candidates_.end(), std::mem_fn(&Candidate::is_likelier_than));
  std::vector<TokenLogprob> result;
  for (size_t i = 0; i < std::min(count, candidates_.size()); ++i) {
    result.push_back({candidates_[i].id, log_probability(candidates_[i].logit, total)});
  }
  return result;
}

// Drops candidates below the count-th largest logit, which it returns.
float Sampler::keep_largest(size_t count) {
  if (candidates_.size() <= count) return -std::numeric_limits<float>::infinity();
  const auto last = candidates_.begin() + static_cast<ptrdiff_t>(count) - 1;
  std::nth_element(candidates_.begin(), last, candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  const float border = last->logit;
  std::erase_if(candidates_, [border](const Candidate& candidate) { return candidate.logit < border; });
  return border;
}

// Keeps a candidate while the likelier ones have less than top_p of `total` together. Sorts only as far as needed.
void Sampler::keep_top_p(double total) {
  if (options_.top_p >= 1.0f) return;
  const double limit = static_cast<double>(options_.top_p) * total;
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
      std::partial_sort(begin, candidates_.begin() + static_cast<ptrdiff_t>(next), candidates_.end(),
                        std::mem_fn(&Candidate::is_likelier_than));
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

// Keeps those whose surprise is nearest to the mean surprise, until they have typical_p of the mass.
// Source: Meister et al., "Locally Typical Sampling"
void Sampler::keep_typical() {
  if (options_.typical_p >= 1.0f) return;
  const double total = total_weight();
  const auto surprise = [&](const Candidate& candidate) { return -math::log(candidate.weight / total); };
  double entropy = 0.0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight > 0.0) entropy += candidate.weight / total * surprise(candidate);
  }
  const auto distance = [&](const Candidate& candidate) { return std::fabs(surprise(candidate) - entropy); };
  std::vector<std::pair<double, double>> order;  // distance, probability
  for (const Candidate& candidate : candidates_) order.emplace_back(distance(candidate), candidate.weight / total);
  std::sort(order.begin(), order.end());
  size_t last = 0;
  for (double mass = order[0].second; last + 1 < order.size() && mass < static_cast<double>(options_.typical_p);
       ++last) {
    mass += order[last + 1].second;
  }
  std::erase_if(candidates_,
                [&, border = order[last].first](const Candidate& candidate) { return distance(candidate) > border; });
}

// XTC: with xtc_probability, of the candidates of at least xtc_threshold only the unlikeliest stays.
void Sampler::leave_top_choices_out() {
  if (options_.xtc_probability <= 0.0f || random_.uniform() >= static_cast<double>(options_.xtc_probability)) return;
  const double threshold = static_cast<double>(options_.xtc_threshold) * total_weight();
  const Candidate* least = nullptr;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight >= threshold && (least == nullptr || candidate.weight < least->weight)) least = &candidate;
  }
  if (least == nullptr) return;
  std::erase_if(candidates_, [threshold, kept = least->id](const Candidate& candidate) {
    return candidate.weight >= threshold && candidate.id != kept;
  });
}

double Sampler::total_weight() const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
}

}  // namespace mote
