#include "runner/generation/speculation/draft.h"

#include <algorithm>

namespace mote {
namespace {

constexpr double kMostWeight = 32.0;  // observations that a rate remembers
constexpr double kAging = 0.01;       // share of the way back to what was expected, a step

}  // namespace

void AcceptanceRates::add(size_t grade, bool right) {
  double& weight = weights_[grade];
  rates_[grade] += ((right ? 1.0 : 0.0) - rates_[grade]) / (weight + 1.0);
  weight = std::min(weight + 1.0, kMostWeight);
}

void AcceptanceRates::age() {
  for (size_t grade = 0; grade < kGrades; ++grade) rates_[grade] += (expected_[grade] - rates_[grade]) * kAging;
}

// The token that a plain step gives, and each proposed one if all before it are right.
double Draft::expected_tokens(size_t count) const {
  double tokens = 1.0, right = 1.0;
  for (size_t i = 0; i < count; ++i) {
    right *= rates_.of(grades_[i]);
    tokens += right;
  }
  return tokens;
}

double Draft::seconds(size_t count) const {
  return costs_.of(count + 1) + static_cast<double>(num_proposed_) * limits_.seconds_an_id;
}

// What is left if all are wrong: the token of a plain step.
bool Draft::is_affordable(size_t count) const { return seconds(count) - costs_.of(1) <= limits_.affordable; }

bool Draft::wants(size_t grade) const {
  const size_t count = ids_.size();
  if (count >= limits_.longest) return false;
  if (limits_.fixed > 0) return count < limits_.fixed;
  if (!costs_.is_known() || count + 2 > costs_.longest_guess()) return false;
  if (limits_.seconds_an_id == 0.0) return true;  // trim decides, at no cost
  const double added_seconds = costs_.of(count + 2) - costs_.of(count + 1) + limits_.seconds_an_id;
  if (seconds(count) + added_seconds - costs_.of(1) > limits_.affordable) return false;
  const double added_tokens =
      (count == 0 ? 1.0 : expected_tokens(count) - expected_tokens(count - 1)) * rates_.of(grade);
  const double seconds_a_token = std::min(costs_.of(1), 1.0 / rate(count));
  return added_tokens * seconds_a_token > added_seconds;
}

void Draft::add(int32_t id, size_t grade) {
  ids_.push_back(id);
  grades_.push_back(std::min(grade, AcceptanceRates::kGrades - 1));
  ++num_proposed_;
}

void Draft::trim() {
  if (limits_.fixed > 0) return;
  size_t best = 0;
  for (size_t count = 1; count <= ids_.size() && is_affordable(count); ++count) {
    if (rate(count) > rate(best)) best = count;
  }
  ids_.resize(best);
  grades_.resize(best);
}

}  // namespace mote
