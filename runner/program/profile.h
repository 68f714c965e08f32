// How long a session's instructions took. The memory for that is allocated once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/op.h"
#include "runner/program/delegate.h"

namespace mote {

// Keeps the last `capacity` entries that were added.
template <typename Entry>
class Ring {
 public:
  explicit Ring(size_t capacity) : entries_(capacity) {}

  Entry& add() { return entries_[static_cast<size_t>(num_added_++ % entries_.size())]; }
  void clear() { num_added_ = 0; }
  uint64_t num_added() const { return num_added_; }
  uint64_t first() const { return num_added_ < entries_.size() ? 0 : num_added_ - entries_.size(); }
  // The entry that was added as number `index`, first() <= index < num_added().
  const Entry& operator[](uint64_t index) const { return entries_[static_cast<size_t>(index % entries_.size())]; }

 private:
  std::vector<Entry> entries_;
  uint64_t num_added_ = 0;
};

// Thread safety: as its session.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  struct Call {  // of a method
    uint32_t method = 0;
    int64_t tokens = 0;
    Clock::time_point start;
    Clock::time_point end;
  };
  struct Event {  // an instruction of the call_index-th call, or a step of it
    uint64_t call_index = 0;
    uint32_t instruction = 0;
    Clock::time_point start;
    Clock::time_point end;
    Cost cost;
    const char* name =
        nullptr;  // of a step, and where it comes from: both of the program's; nullptr: as the instruction
    const char* origin = nullptr;
    int32_t submission = 0;  // DelegateStep
  };

  Profile() : calls_(kMaxCalls), events_(kMaxEvents) {}

  Call& begin_call(uint32_t method, int64_t tokens) {
    Call& call = calls_.add();
    call = {method, tokens, Clock::now(), {}};
    return call;
  }
  // Adds an instruction of the call that began last.
  void add(uint32_t instruction, Clock::time_point start, Clock::time_point end, Cost cost) {
    events_.add() = {calls_.num_added() - 1, instruction, start, end, cost};
  }
  // Adds the steps of a delegate's instruction that ended at `end`, the last of them then.
  void add_steps(uint32_t instruction, Clock::time_point end, std::span<const DelegateStep> steps) {
    for (const DelegateStep& step : steps) {
      const auto before = [&](int64_t ns) { return end - std::chrono::nanoseconds(steps.back().end_ns - ns); };
      events_.add() = {calls_.num_added() - 1,
                       instruction,
                       before(step.start_ns),
                       before(step.end_ns),
                       step.cost,
                       step.name,
                       step.origin,
                       step.submission};
    }
  }

  // Forgets what was measured. Cost: no allocation.
  void clear() {
    calls_.clear();
    events_.clear();
    start_ = Clock::now();
  }

  Clock::time_point start() const { return start_; }
  const Ring<Call>& calls() const { return calls_; }
  const Ring<Event>& events() const { return events_; }

 private:
  static constexpr size_t kMaxCalls = 1 << 14;
  static constexpr size_t kMaxEvents = 1 << 17;  // 7 MB: about 900 decode steps of a model of 16 layers

  Clock::time_point start_ = Clock::now();
  Ring<Call> calls_;
  Ring<Event> events_;
};

}  // namespace mote
