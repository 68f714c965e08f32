// Where a session stands: its ids, which of them its states hold, and where the logits after the last one are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runner/session/method_calls.h"

namespace mote {

// One row of the logits that a call writes.
struct LogitsRow {
  MethodCall call{};
  size_t index = 0;
};

// Computes nothing: a session makes a transition here for each thing that it does to its states.
//
// The ids at the positions are first those that are computed, which the states hold, and then those that are deferred,
// which they do not. Behind the computed ids the states may hold drafted ones, which are at no position yet.
// Invariant, after every transition:
// - Where logits are known, they are those after the last id, and they are at one place: in a row or kept.
// - Where ids are drafted, the logits are in a row; those after each drafted id are in the next one.
// - Where an id is deferred no logits are known, and where a call was interrupted, which means that states that cannot
//   go back hold part of it.
//
// Thread safety: one thread at a time, but for count.
class Position {
 public:
  // Makes room, so that no transition but adopt allocates while there are no more ids and drafted ids than that.
  void reserve(size_t ids, size_t drafted);

  // The number of all ids. Any thread, also during a transition.
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  std::span<const int32_t> ids() const { return ids_; }
  int64_t num_computed() const { return static_cast<int64_t>(ids_.size() - num_deferred_); }
  std::span<const int32_t> deferred() const { return ids().last(num_deferred_); }
  std::span<const int32_t> drafted() const { return std::span(draft_).subspan(num_accepted_); }
  // Positions that the states hold.
  int64_t num_held() const { return num_computed() + static_cast<int64_t>(drafted().size()); }
  bool is_interrupted() const { return is_interrupted_; }
  // Ids that shifts took away since the session was opened.
  int64_t num_forgotten() const { return num_forgotten_; }

  // Whether the logits after the last id are row().
  bool has_row() const { return has_row_; }
  // The logits after the last id where they are not in the output of a call; empty: they are not known, or in row().
  const std::vector<float>& kept_logits() const { return kept_logits_; }
  // Where the logits are that the session returned last, until the next call overwrites them.
  const LogitsRow& row() const { return row_; }

  // The transitions.

  // There are no ids any more, and the states are empty.
  void reset();
  // The states hold `ids`, which were computed elsewhere, with the logits after them; no logits: they are not known.
  void adopt(std::span<const int32_t> ids, std::vector<float> logits);
  // Appends ids that the states do not get yet. None may be drafted.
  void defer(std::span<const int32_t> ids);
  // Takes the deferred ids away.
  void drop_deferred();
  // The row of the last call may be overwritten from now on. None may be drafted.
  void forget_logits();
  // A call begins to change the states, for which nothing may be deferred or drafted. If it fails it leaves them as
  // they were, or interrupted where they cannot go back.
  void begin_call(bool can_go_back);
  // The call that began has computed `ids`. It was made by others, who have the logits.
  void end_call(std::span<const int32_t> ids);
  // The call that began has computed `ids` and behind them `drafted`. `row` has the logits after the last of `ids`, and
  // with is_lasting until the session's next call, which drafted ids need.
  void end_call(std::span<const int32_t> ids, std::span<const int32_t> drafted, const LogitsRow& row, bool is_lasting);
  // The first drafted id comes to the next position; the logits after it are in the next row.
  void accept_drafted();
  // The states go back from all drafted ids.
  void drop_drafted();
  // The first `count` ids stay. None may be drafted.
  void truncate(int64_t count);
  // Counts `count` ids that a shift took away; truncate and defer say what became of the ids.
  void count_forgotten(int64_t count) { num_forgotten_ += count; }

 private:
  bool is_consistent() const;
  void end_transition();

  std::vector<int32_t> ids_;
  std::atomic<int64_t> count_{0};
  size_t num_deferred_ = 0;
  std::vector<int32_t> draft_;
  size_t num_accepted_ = 0;  // of draft_, the first ones
  bool is_interrupted_ = false;
  int64_t num_forgotten_ = 0;
  LogitsRow row_;
  bool has_row_ = false;
  std::vector<float> kept_logits_;
};

}  // namespace mote
