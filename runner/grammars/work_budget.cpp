#include "runner/grammars/work_budget.h"

#include <algorithm>

namespace mote::constraints {
namespace {

constexpr size_t kStepsBetweenChecks = 1 << 18;  // some milliseconds

}  // namespace

void WorkBudget::hold(size_t bytes) {
  bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, bytes_);
  if (bytes_ > max_bytes_) is_spent_ = true;
}

void WorkBudget::check() {
  if (steps_ > max_steps_) is_spent_ = true;
  if (!was_cancelled_ && is_cancelled_ && is_cancelled_()) is_spent_ = was_cancelled_ = true;
  next_check_ = std::min(steps_ + kStepsBetweenChecks, std::max(steps_, max_steps_) + 1);
}

Status WorkBudget::status() const {
  if (!is_spent_) return {};
  if (was_cancelled_) return {Code::kCancelled, "compiling the grammar was cancelled"};
  const char* advice = "give fewer or shorter alternatives, repetitions and lengths";
  if (peak_bytes_ > max_bytes_) {
    return {Code::kInvalidArgument,
            format("the grammar is too large: compiling it takes more than %zu MiB; %s", max_bytes_ >> 20, advice)};
  }
  return {Code::kInvalidArgument,
          format("the grammar is too large: compiling it takes more than %zu steps; %s", max_steps_, advice)};
}

}  // namespace mote::constraints
