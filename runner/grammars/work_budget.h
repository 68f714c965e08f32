// What compiling one grammar may cost, in steps and bytes, which are the same on every machine.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "base/status.h"
#include "runner/grammars/budget.h"

namespace mote::constraints {

// All compilers of a grammar draw on one budget, before they do what they count. Once it is spent, every call says so:
// who cannot return an error goes on to the next place that can, without making anything more. Thread safety: one
// thread.
class WorkBudget {
 public:
  // is_cancelled: asked from time to time; may be empty
  explicit WorkBudget(std::function<bool()> is_cancelled = {}, size_t max_steps = kMaxCompileSteps,
                      size_t max_bytes = kMaxCompileBytes)
      : is_cancelled_(std::move(is_cancelled)), max_steps_(max_steps), max_bytes_(max_bytes) {}
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  // Counts steps that come. Errors: kInvalidArgument if there are too many, kCancelled.
  Status spend(size_t steps) {
    count(steps);
    return is_spent_ ? status() : Status();
  }
  // The same for those who cannot return an error.
  void count(size_t steps) {
    steps_ += steps;
    if (steps_ >= next_check_) check();
  }
  // Counts bytes that are going to be in use until they are released.
  void hold(size_t bytes);
  void release(size_t bytes) { bytes_ -= bytes; }

  bool is_spent() const { return is_spent_; }
  Status status() const;
  size_t steps() const { return steps_; }
  size_t peak_bytes() const { return peak_bytes_; }

 private:
  void check();

  std::function<bool()> is_cancelled_;
  size_t max_steps_;
  size_t max_bytes_;
  size_t steps_ = 0;
  size_t next_check_ = 1;
  size_t bytes_ = 0;
  size_t peak_bytes_ = 0;
  bool is_spent_ = false;
  bool was_cancelled_ = false;
};

// Bytes that are held as long as this lives.
class HeldBytes {
 public:
  explicit HeldBytes(WorkBudget& budget) : budget_(&budget) {}
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;
  ~HeldBytes() { budget_->release(bytes_); }

  void add(size_t bytes) {
    bytes_ += bytes;
    budget_->hold(bytes);
  }
  void set(size_t bytes) {
    if (bytes > bytes_) return add(bytes - bytes_);
    budget_->release(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  WorkBudget* budget_;
  size_t bytes_ = 0;
};

}  // namespace mote::constraints
