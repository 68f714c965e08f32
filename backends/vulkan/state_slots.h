// At which positions a recurrent state is held on the device, and what a call does with it. The state lies in slots,
// each of one position, and rows of the latest tokens bring it on from there: a session goes back without copies, and a
// call that fails has changed nothing that it began with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace mote::vulkan {

// As linear_attention.comp reads it.
struct SlotPlan {
  static constexpr uint32_t kZero = UINT32_MAX;  // source: the state before position 0
  static constexpr uint32_t kMaxCopies = 24;
  struct Copy {
    uint32_t tokens = 0, slot = 0;
  };
  uint32_t start = 0;                         // position of the call's first token
  uint32_t source = kZero;                    // slot from which rows lead to `start`
  uint32_t first_replayed = 0, replayed = 0;  // rows of the ring
  uint32_t first_recorded = 0, recorded = 0;  // of the call's last tokens
  uint32_t num_copies = 0;
  Copy copies[kMaxCopies]{};  // slots that take the state after so many tokens, ascending
};

class StateSlots {
 public:
  // num_slots: at least 2   num_rows: of the ring
  StateSlots(int64_t num_slots, int64_t num_rows) : num_rows_(num_rows), slots_(static_cast<size_t>(num_slots), -1) {}

  int64_t next() const { return next_; }  // position of the token to come
  // The last of the first `to` positions that seek goes to.
  int64_t nearest(int64_t to) const;
  void seek(int64_t position);
  // Tokens at the end of a call that can be taken back, whatever else is held.
  static int64_t reach(int64_t num_rows) { return num_rows / 2; }

  // What comes of a call that fails is as if it had not begun. num_kept: tokens after which the state is held. Errors:
  // kInternal where it is at no position that it is held at.
  Result<SlotPlan> begin(int64_t tokens, int64_t num_kept);
  void end();  // of a call that has succeeded

  // Of the state now: the slot, or SlotPlan::kZero, and the positions from which rows lead on.
  struct Base {
    int64_t position = -1;  // -1: there is none
    uint32_t slot = SlotPlan::kZero;
  };
  Base base() const { return base_of(next_); }
  int64_t ring_row(int64_t position) const { return num_rows_ == 0 ? 0 : (position + phase_) % num_rows_; }
  // The state is that of slot 0 and `base`, brought on by rows. False: they are too many.
  bool adopt(int64_t base, int64_t position);

 private:
  Base base_of(int64_t position) const;
  bool has_rows(int64_t from, int64_t to) const { return from == to || (first_row_ <= from && to <= next_); }
  // The slot to write a position to; -1: those that there are hold what is worth more.
  int64_t least_valuable(int64_t position, int64_t source) const;
  void add_copy(int64_t position, int64_t source, SlotPlan* plan);

  int64_t num_rows_;
  std::vector<int64_t> slots_;  // positions; -1: none
  int64_t next_ = 0;
  int64_t first_row_ = 0;  // of the positions up to next_ whose rows there are
  int64_t phase_ = 0;      // of the ring

  // Of the call that began.
  std::vector<std::pair<size_t, int64_t>> written_;
  int64_t end_ = 0, end_first_row_ = 0, end_phase_ = 0;
};

}  // namespace mote::vulkan
