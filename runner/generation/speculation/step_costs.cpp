#include "runner/generation/speculation/step_costs.h"

#include <algorithm>

namespace mote {
namespace {

// What one more token is thought to add to a call, as a share of a call of one, until it is measured. Hopeful: a guess
// that is too high would never be put to the test.
constexpr double kHopedGrowth = 0.05;
constexpr size_t kFirstGuess = 4;

}  // namespace

double StepCosts::Samples::usual() const {
  std::array<double, 8> sorted = seconds;
  const size_t held = std::min(count, sorted.size());
  std::sort(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(held));
  return sorted[held < 4 ? 0 : 1];
}

void StepCosts::add(size_t tokens, double seconds) {
  if (tokens == 0 || tokens > kMostTokens) return;
  Samples& samples = samples_[tokens];
  samples.seconds[samples.count % samples.seconds.size()] = seconds;
  ++samples.count;
}

double StepCosts::extrapolated(size_t tokens, size_t known) const {
  const double one = samples_[1].usual();
  const double measured = samples_[known].usual();
  const double slope = known == 1 ? 0.0 : (measured - one) / static_cast<double>(known - 1);
  return measured + std::max(slope, one * kHopedGrowth) * static_cast<double>(tokens - known);
}

double StepCosts::of(size_t tokens) const {
  if (samples_[1].count == 0) return 0.0;
  size_t below = tokens, above = tokens;
  if (samples_[tokens].count < 2 && tokens > 1) {
    for (--below; below > 1 && samples_[below].count == 0; --below) {}
    for (++above; above <= kMostTokens && samples_[above].count == 0; ++above) {}
  }
  if (below == above) return samples_[tokens].usual();
  double guess = extrapolated(tokens, below);
  if (above <= kMostTokens) {
    const double low = samples_[below].usual(), high = samples_[above].usual();
    guess = low + (high - low) * static_cast<double>(tokens - below) / static_cast<double>(above - below);
  }
  // A single measurement may have been disturbed: it is believed by half.
  return samples_[tokens].count == 0 ? guess : (guess + samples_[tokens].usual()) / 2.0;
}

size_t StepCosts::longest_guess() const {
  size_t longest = kMostTokens;
  while (longest > 1 && samples_[longest].count == 0) --longest;
  return std::clamp(2 * longest, kFirstGuess, kMostTokens);
}

}  // namespace mote
