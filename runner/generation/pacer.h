// Holds a generation to so many tokens a second.
#pragma once

#include <algorithm>

#include "runner/generation/statistics.h"

namespace mote {

// Times are the caller's. A model that is slower than the pace is never waited for, nor does it catch up later.
class Pacer {
 public:
  // tokens_per_second: 0: no limit
  explicit Pacer(double tokens_per_second) {
    if (tokens_per_second <= 0.0) return;
    const std::chrono::duration<double> period(std::min(1.0 / tokens_per_second, kMostSeconds));
    period_ = std::chrono::duration_cast<Clock::duration>(period);
  }

  // How long until the next token may come; 0: it is due.
  Clock::duration left(Clock::time_point now) const { return std::max(due_ - now, Clock::duration::zero()); }
  // A token came.
  void took_token(Clock::time_point now) {
    due_ = has_begun_ ? std::max(due_ + period_, now) : now + period_;
    has_begun_ = true;
  }

 private:
  static constexpr double kMostSeconds = 1e6;
  Clock::duration period_{};
  Clock::time_point due_{};
  bool has_begun_ = false;
};

}  // namespace mote
