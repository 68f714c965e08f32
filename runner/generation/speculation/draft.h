// Tokens that may come next, and how many of them are worth a look.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runner/generation/speculation/step_costs.h"

namespace mote {

// How often proposed ids were right, by what their proposer thought of them: its grades, 0 the least sure.
// Thread safety: one thread at a time.
class AcceptanceRates {
 public:
  static constexpr size_t kGrades = 8;

  // `expected`: what to think before anything is measured.
  explicit AcceptanceRates(const std::array<double, kGrades>& expected) : expected_(expected), rates_(expected) {}

  double of(size_t grade) const { return rates_[grade]; }
  // One id of this grade was right or wrong. Lately counts more than long ago.
  void add(size_t grade, bool right);
  // Nothing was measured in this step: what is known ages, so that it is put to the test again some day.
  void age();

 private:
  std::array<double, kGrades> expected_;
  std::array<double, kGrades> rates_;
  std::array<double, kGrades> weights_ = filled(4.0);  // how many observations each rate stands for

  static constexpr std::array<double, kGrades> filled(double value) {
    std::array<double, kGrades> all{};
    all.fill(value);
    return all;
  }
};

struct DraftLimits {
  size_t longest = 0;          // ids that there is room for
  size_t fixed = 0;            // > 0: so many, whatever it costs
  double seconds_an_id = 0.0;  // of its proposer
  double affordable = 0.0;     // seconds that may be lost if every id is wrong
};

// Filled by a proposer. Thread safety: one thread at a time; what it was made with outlives it.
class Draft {
 public:
  Draft(const StepCosts& costs, const AcceptanceRates& rates, const DraftLimits& limits)
      : costs_(costs), rates_(rates), limits_(limits) {}

  // Whether one more id of this grade is worth what it costs.
  bool wants(size_t grade) const;
  void add(int32_t id, size_t grade);
  // Leaves as many ids as promise the most tokens a second; none, if plain decoding does.
  void trim();

  std::span<const int32_t> ids() const { return ids_; }
  std::span<const size_t> grades() const { return grades_; }
  // Tokens a second that are to be expected of it.
  double expected_rate() const { return rate(ids_.size()); }

 private:
  double expected_tokens(size_t count) const;
  double seconds(size_t count) const;
  double rate(size_t count) const { return expected_tokens(count) / seconds(count); }
  bool is_affordable(size_t count) const;

  const StepCosts& costs_;
  const AcceptanceRates& rates_;
  const DraftLimits limits_;
  std::vector<int32_t> ids_;
  std::vector<size_t> grades_;
  size_t num_proposed_ = 0;  // ids, of which trim may have dropped some
};

}  // namespace mote
