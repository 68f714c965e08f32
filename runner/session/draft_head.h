// What the heads for multi-token prediction remember of a session's text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/op.h"
#include "runner/session/state/memory.h"
#include "runner/session/state/session_snapshot.h"

namespace mote {

// At each position the first head reads the hidden state of the model and the token behind it, the head of depth d that
// of the head before and the token d further on. They are always behind the session: the rows of a layer are the hidden
// states that it has not read yet. What they have read may begin anywhere in the text, where hidden states were not
// known before: they only guess less well then. A head that attends to the session's own caches is alone and reads
// nothing along: its rows are those of the last call, and it needs the last. Thread safety: as its session.
class DraftHead {
 public:
  // Of a target without one.
  DraftHead() = default;
  // Errors: kOutOfMemory.
  static Result<DraftHead> open(const Bound& bound, const StateMemoryOptions& options);

  bool exists() const { return !layers_.empty(); }
  // Whether it attends to the session's caches and has none of its own.
  bool reads_session() const { return exists() && !layers_[0].memory.has_value(); }
  size_t num_layers() const { return layers_.size(); }
  uint32_t method(size_t depth) const { return layers_[depth].method; }
  // Whether the session gives it the hidden states of its calls.
  bool follows() const { return follows_; }
  void follow(bool wanted);

  // Of the positions [position, position + rows.size() / width), at most max_rows(): those behind them are forgotten.
  void append(int64_t position, std::span<const float> rows);
  // Forgets what is not of the first `count` positions. The last tokens that layers read may be others from then on,
  // which makes their next guesses a little worse and is not worth a hidden state for each position.
  void truncate(int64_t count);
  void clear();
  // The position behind the last row.
  int64_t end() const { return base_ + filled(0) + num_rows(0); }
  int64_t num_rows(size_t depth) const { return exists() ? to_rows(layers_[depth].rows) : 0; }
  // The most rows that a call should read, or that should wait.
  int64_t max_rows() const { return max_rows_; }
  int64_t width() const { return width_; }
  std::span<const float> last_row() const { return std::span(layers_[0].rows).last(static_cast<size_t>(width_)); }
  std::span<const float> rows(size_t depth, int64_t count) const {
    return std::span(layers_[depth].rows).first(static_cast<size_t>(count * width_));
  }
  // How many rows of a layer were followed by the tokens that it reads with them, of a text of `end` tokens and one.
  int64_t num_known(size_t depth, int64_t end) const {
    const int64_t known = end - base_ - static_cast<int64_t>(depth) - filled(depth);
    return std::clamp<int64_t>(known, 0, num_rows(depth));
  }
  // Hidden states behind those rows, made with guesses: what is read next to guess one more. None where the rows have
  // changed since.
  std::optional<std::vector<float>>& guessed() { return guessed_; }

  // Positions that a layer has read: in its cache the first of its rows comes next.
  int64_t filled(size_t depth) const { return layers_[depth].filled; }
  int64_t base() const { return base_; }
  // The position in the text of the first row.
  int64_t first_position(size_t depth) const { return base_ + filled(depth); }
  // The states for a call of `tokens` tokens from a position in a layer's cache. Errors: kOutOfMemory.
  Result<SequenceStates> begin_call(size_t depth, int64_t from, int64_t tokens, std::span<const AdapterUse> adapters);
  // A layer has read its first `count` rows, and made `made` of them, which the next one reads.
  void end_call(size_t depth, int64_t count, std::span<const float> made);

  DraftHeadSnapshot snapshot() const;
  // As truncate behind what was in the snapshot.
  void adopt(const DraftHeadSnapshot& snapshot, int64_t count);

 private:
  struct Layer {
    uint32_t method = 0;
    std::optional<StateMemory> memory{};  // of its own caches
    int64_t filled = 0;
    std::vector<float> rows{};
  };
  int64_t to_rows(const std::vector<float>& rows) const { return static_cast<int64_t>(rows.size()) / width_; }

  std::vector<Layer> layers_;
  int64_t width_ = 1;
  int64_t max_rows_ = 0;
  bool follows_ = false;
  int64_t base_ = 0;  // the position in the text of the first that it has read
  std::optional<std::vector<float>> guessed_{};
};

}  // namespace mote
