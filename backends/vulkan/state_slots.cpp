#include "backends/vulkan/state_slots.h"

#include <algorithm>

namespace mote::vulkan {
namespace {

constexpr int64_t kStride = 32;  // positions between the slots that are kept: what is replayed at most

}  // namespace

StateSlots::Base StateSlots::base_of(int64_t position) const {
  Base best;
  const auto consider = [&](int64_t from, uint32_t slot) {
    if (from < 0 || from > position || from <= best.position || !has_rows(from, position)) return;
    if (position - from <= reach(num_rows_)) best = {from, slot};
  };
  consider(0, SlotPlan::kZero);
  for (size_t i = 0; i < slots_.size(); ++i) consider(slots_[i], static_cast<uint32_t>(i));
  return best;
}

int64_t StateSlots::nearest(int64_t to) const {
  to = std::min(to, next_);
  int64_t best = 0;
  const auto consider = [&](int64_t from) {
    if (from < 0 || from > to) return;
    best = std::max(best, first_row_ <= from ? std::min(to, from + reach(num_rows_)) : from);
  };
  consider(0);
  for (const int64_t position : slots_) consider(position);
  return best;
}

void StateSlots::seek(int64_t position) {
  for (int64_t& slot : slots_) {
    if (slot > position) slot = -1;
  }
  next_ = position;
  first_row_ = std::min(first_row_, position);
}

bool StateSlots::adopt(int64_t base, int64_t position) {
  std::ranges::fill(slots_, -1);
  const bool fits = base <= position && position - base <= reach(num_rows_);
  next_ = first_row_ = fits ? base : 0;
  phase_ = 0;
  if (!fits) return false;
  if (base > 0) slots_[0] = base;
  next_ = position;
  return true;
}

int64_t StateSlots::least_valuable(int64_t position, int64_t source) const {
  // Empty ones, those that no rows lead on from, those between strides, the oldest.
  const auto value = [&](int64_t held) -> std::pair<int, int64_t> {
    if (held < 0) return {0, 0};
    if (held < end_first_row_) return {1, held};
    return {held % kStride != 0 ? 2 : 3, held};
  };
  int64_t best = -1;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const bool is_written = std::ranges::any_of(written_, [&](const auto& each) { return each.first == i; });
    if (static_cast<int64_t>(i) == source || is_written || slots_[i] > position) continue;
    if (best < 0 || value(slots_[i]) < value(slots_[static_cast<size_t>(best)])) best = static_cast<int64_t>(i);
  }
  return best;
}

void StateSlots::add_copy(int64_t position, int64_t source, SlotPlan* plan) {
  const int64_t slot = least_valuable(position, source);
  if (slot < 0 || plan->num_copies == SlotPlan::kMaxCopies) return;
  slots_[static_cast<size_t>(slot)] = -1;
  written_.emplace_back(static_cast<size_t>(slot), position);
  plan->copies[plan->num_copies++] = {static_cast<uint32_t>(position - next_), static_cast<uint32_t>(slot)};
}

Result<SlotPlan> StateSlots::begin(int64_t tokens, int64_t num_kept) {
  const Base base = base_of(next_);
  MOTE_REQUIRE(base.position >= 0, Code::kInternal, "the GPU holds no recurrent states of position %lld",
               static_cast<long long>(next_));
  const int64_t replayed = next_ - base.position, recorded = std::min(tokens, num_rows_ - replayed);
  SlotPlan plan{.start = static_cast<uint32_t>(next_),
                .source = base.slot,
                .first_replayed = static_cast<uint32_t>(ring_row(base.position)),
                .replayed = static_cast<uint32_t>(replayed),
                .first_recorded = static_cast<uint32_t>(ring_row(next_)),
                .recorded = static_cast<uint32_t>(recorded)};
  written_.clear();
  end_ = next_ + tokens;
  end_phase_ = phase_;
  // Rows that are recorded lie behind those that are replayed, whatever tokens they are of.
  if (recorded < tokens && num_rows_ > 0) {
    end_first_row_ = end_ - recorded;
    end_phase_ = ((phase_ + next_ - end_first_row_) % num_rows_ + num_rows_) % num_rows_;
    first_row_ = std::max(first_row_, base.position);
  } else {
    end_first_row_ = num_rows_ == 0 ? end_ : std::max(first_row_, end_ - num_rows_);
    first_row_ = std::max(first_row_, std::min(end_first_row_, next_));
  }
  const int64_t source = base.slot == SlotPlan::kZero ? -1 : static_cast<int64_t>(base.slot), kept = next_ + num_kept;
  if (kept != base.position) add_copy(kept, source, &plan);
  MOTE_REQUIRE(kept == base.position || plan.num_copies == 1, Code::kInternal, "no room for a recurrent state");
  for (int64_t at = kept / kStride * kStride; at > next_ && at >= end_first_row_; at -= kStride) {
    if (at != kept) add_copy(at, source, &plan);
  }
  std::sort(plan.copies, plan.copies + plan.num_copies,
            [](const SlotPlan::Copy& a, const SlotPlan::Copy& b) { return a.tokens < b.tokens; });
  return plan;
}

void StateSlots::end() {
  for (const auto& [slot, position] : written_) slots_[slot] = position;
  written_.clear();
  next_ = end_;
  first_row_ = end_first_row_;
  phase_ = end_phase_;
}

}  // namespace mote::vulkan
