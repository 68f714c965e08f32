#include "runner/session/position.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace mote {

void Position::reserve(size_t ids, size_t drafted) {
  ids_.reserve(ids);
  draft_.reserve(drafted);
}

bool Position::is_consistent() const {
  if (num_deferred_ > ids_.size() || num_accepted_ > draft_.size()) return false;
  if (!drafted().empty() && !has_row_) return false;
  if (!has_row_ && kept_logits_.empty()) return true;
  return has_row_ == kept_logits_.empty() && !ids_.empty() && num_deferred_ == 0 && !is_interrupted_;
}

void Position::end_transition() {
  MOTE_ASSERT(is_consistent());
  count_.store(static_cast<int64_t>(ids_.size()), std::memory_order_relaxed);
}

void Position::reset() {
  drop_drafted();
  forget_logits();
  ids_.clear();
  num_deferred_ = 0;
  is_interrupted_ = false;
  end_transition();
}

void Position::adopt(std::span<const int32_t> ids, std::vector<float> logits) {
  reset();
  ids_.assign(ids.begin(), ids.end());
  kept_logits_ = std::move(logits);
  end_transition();
}

void Position::defer(std::span<const int32_t> ids) {
  forget_logits();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  num_deferred_ += ids.size();
  end_transition();
}

void Position::drop_deferred() {
  if (num_deferred_ > 0) truncate(num_computed());
}

void Position::forget_logits() {
  has_row_ = false;
  kept_logits_.clear();
  end_transition();
}

void Position::begin_call(bool can_go_back) {
  MOTE_ASSERT(num_deferred_ == 0);
  forget_logits();
  is_interrupted_ = !can_go_back;
  end_transition();
}

void Position::end_call(std::span<const int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  is_interrupted_ = false;
  end_transition();
}

void Position::end_call(std::span<const int32_t> ids, std::span<const int32_t> drafted, const LogitsRow& row,
                        bool is_lasting) {
  end_call(ids);
  draft_.assign(drafted.begin(), drafted.end());
  num_accepted_ = 0;
  row_ = row;
  has_row_ = is_lasting;
  end_transition();
}

void Position::accept_drafted() {
  MOTE_ASSERT(!drafted().empty());
  ids_.push_back(drafted().front());
  ++num_accepted_;
  ++row_.index;
  end_transition();
}

void Position::drop_drafted() {
  draft_.clear();
  num_accepted_ = 0;
  end_transition();
}

void Position::truncate(int64_t count) {
  MOTE_ASSERT(count >= 0 && count <= this->count() && drafted().empty());
  if (count < this->count()) forget_logits();
  const int64_t num_deferred = std::max<int64_t>(count - num_computed(), 0);
  ids_.resize(static_cast<size_t>(count));
  num_deferred_ = static_cast<size_t>(num_deferred);
  end_transition();
}

}  // namespace mote
