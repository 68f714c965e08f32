// What calls of the model cost on this machine, as measured while it generates.
#pragma once

#include <array>
#include <cstddef>

namespace mote {

// Thread safety: one thread at a time.
class StepCosts {
 public:
  static constexpr size_t kMostTokens = 32;

  // A call of `tokens` tokens took so long. More than kMostTokens are not kept.
  void add(size_t tokens, double seconds);

  // Whether a call of one token was measured, twice: its first run has to fetch the weights.
  bool is_known() const { return samples_[1].count >= 2; }
  // Seconds of a call of 1..kMostTokens tokens; what was not measured is guessed from the nearest that were.
  double of(size_t tokens) const;
  // The most tokens of a call whose cost can be guessed: twice what was measured.
  size_t longest_guess() const;

 private:
  // The last few. The second least counts: other processes only ever make a call slower, often most of them.
  struct Samples {
    std::array<double, 8> seconds{};
    size_t count = 0;

    double usual() const;
  };

  double extrapolated(size_t tokens, size_t known) const;

  std::array<Samples, kMostTokens + 1> samples_{};  // by tokens
};

}  // namespace mote
