#include "runner/session/draft_head.h"

#include <algorithm>

namespace mote {

Result<DraftHead> DraftHead::open(const Bound& bound, const StateMemoryOptions& options) {
  DraftHead head;
  const Result<uint32_t> method = bound.method_index(kHeadMethod);
  if (!method.ok()) return head;
  const fb::Method& found = bound.method(*method);
  head.method_ = *method;
  head.width_ = found.values()->Get(static_cast<uint32_t>(found.inputs()->Get(2)))->shape()->Get(2)->constant();
  head.max_rows_ = options.prefill_chunk;
  head.exists_ = true;
  if (bound.head_reads_session()) return head;
  StateMemoryOptions own = options;
  own.of_head = true;
  MOTE_ASSIGN(head.memory_, StateMemory::allocate(bound, own));
  return head;
}

void DraftHead::follow(bool wanted) {
  follows_ = exists() && wanted;
  if (follows_) {
    rows_.reserve(static_cast<size_t>(max_rows_ * width_));
    guessed_.resize(static_cast<size_t>(width_));
  } else {
    clear();
  }
}

void DraftHead::append(int64_t position, std::span<const float> rows) {
  reads_session() ? clear() : truncate(position);
  if (position != end()) {
    clear();
    base_ = position;
  }
  rows_.insert(rows_.end(), rows.begin(), rows.end());
}

void DraftHead::truncate(int64_t count) {
  if (count <= base_) return clear();
  const int64_t kept = std::clamp<int64_t>(count - base_ - filled_, 0, num_rows());
  rows_.resize(static_cast<size_t>(kept * width_));
  const int64_t filled = std::min(filled_, count - base_);
  if (filled < filled_) (void)memory_->rewind(filled_, filled);  // caches without a window always can
  filled_ = filled;
}

void DraftHead::clear() {
  if (filled_ > 0) memory_->clear();
  base_ = filled_ = 0;
  rows_.clear();
}

Result<SequenceStates> DraftHead::begin_call(int64_t from, int64_t tokens, std::span<const AdapterUse> adapters) {
  MOTE_RETURN_IF_ERROR(memory_->reserve(from, tokens));
  return SequenceStates{tokens, memory_->kv_caches(), memory_->recurrent_states(), adapters, nullptr};
}

void DraftHead::end_call(int64_t count) {
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<ptrdiff_t>(count * width_));
  filled_ += count;
}

DraftHeadSnapshot DraftHead::snapshot() const {
  if (!follows_) return {};
  if (memory_.has_value()) return {base_, filled_, memory_->snapshot(filled_), rows_};
  if (rows_.empty()) return {};
  return {end() - 1, 0, {}, {last_row().begin(), last_row().end()}};
}

void DraftHead::adopt(const DraftHeadSnapshot& snapshot, int64_t count) {
  clear();
  if (!follows_ || (snapshot.filled == 0 && snapshot.rows.empty())) return;
  if (static_cast<int64_t>(snapshot.rows.size()) > max_rows_ * width_) return;
  if (snapshot.filled > 0) {
    if (memory_->adoptable(snapshot.states, snapshot.filled) != snapshot.filled) return;
    memory_->adopt(snapshot.states, snapshot.filled);
  }
  base_ = snapshot.base;
  filled_ = snapshot.filled;
  rows_.assign(snapshot.rows.begin(), snapshot.rows.end());
  truncate(count);
}

}  // namespace mote
