// What a head for multi-token prediction remembers of a session's text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/op.h"
#include "runner/session/state/memory.h"
#include "runner/session/state/session_snapshot.h"

namespace mote {

// At each position such a head reads the hidden state of the model and the token behind it. It is always behind the
// session: rows are the hidden states that it has not read yet. What it has read may begin anywhere in the text, where
// hidden states were not known before: it only guesses less well then. A head that attends to the session's own caches
// reads nothing along: its rows are those of the last call, and it needs the last. Thread safety: as its session.
class DraftHead {
 public:
  // Of a target without one.
  DraftHead() = default;
  // Errors: kOutOfMemory.
  static Result<DraftHead> open(const Bound& bound, const StateMemoryOptions& options);

  bool exists() const { return exists_; }
  // Whether it attends to the session's caches and has none of its own.
  bool reads_session() const { return exists_ && !memory_.has_value(); }
  uint32_t method() const { return method_; }
  // Whether the session gives it the hidden states of its calls.
  bool follows() const { return follows_; }
  void follow(bool wanted);

  // Of the positions [position, position + rows.size() / width), at most max_rows(): those behind them are forgotten.
  void append(int64_t position, std::span<const float> rows);
  // Forgets what is not of the first `count` positions. The last token that it read may be another one from then on,
  // which makes its next guesses a little worse and is not worth a hidden state for each position.
  void truncate(int64_t count);
  void clear();
  // The position behind the last row.
  int64_t end() const { return base_ + filled_ + num_rows(); }
  int64_t num_rows() const { return static_cast<int64_t>(rows_.size()) / width_; }
  int64_t max_rows() const { return max_rows_; }
  std::span<const float> last_row() const { return std::span(rows_).last(static_cast<size_t>(width_)); }
  std::span<const float> rows(int64_t count) const {
    return std::span(rows_).first(static_cast<size_t>(count * width_));
  }
  // Hidden states of the head itself, which it reads where there is none of the model.
  std::vector<float>& guessed() { return guessed_; }

  // The position in its cache of the first of the rows.
  int64_t first() const { return filled_; }
  // The states for a call of `tokens` tokens from a position in its cache. Errors: kOutOfMemory.
  Result<SequenceStates> begin_call(int64_t from, int64_t tokens, std::span<const AdapterUse> adapters);
  // It has read the first `count` rows.
  void end_call(int64_t count);

  DraftHeadSnapshot snapshot() const;
  // As truncate behind what was in the snapshot.
  void adopt(const DraftHeadSnapshot& snapshot, int64_t count);

 private:
  bool exists_ = false;
  std::optional<StateMemory> memory_;  // of its own caches
  uint32_t method_ = 0;
  int64_t width_ = 1;
  int64_t max_rows_ = 0;
  bool follows_ = false;
  int64_t base_ = 0;    // the position in the text of the first that it has read
  int64_t filled_ = 0;  // positions that it has read
  std::vector<float> rows_;
  std::vector<float> guessed_;
};

}  // namespace mote
