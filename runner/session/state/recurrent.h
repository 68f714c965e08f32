// The memory of a session's recurrent states, and what it keeps to go back.
// docs/decisions/0030-rewinding-recurrences.md says why it is divided like this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/state.h"
#include "runner/program/program.h"
#include "runner/session/state/slab.h"

namespace mote {

// All recurrent states at one position, and rows of the tokens behind it. Never changed once a call has written it.
struct RecurrentCheckpoint {
  int64_t position = 0;
  bool is_of_prompt = false;  // near the end of one, and not one of those at fixed strides
  Slab states;                // one after another
  int64_t num_rows = 0;       // of the tokens from `position` on
  int64_t rows_of_state = 0;  // num_rows or more
  Slab rows;                  // [state][rows_of_state][row_floats]; none without num_rows

  RecurrentCheckpoint share() const {
    return {position, is_of_prompt, states.share(), num_rows, rows_of_state, rows.share()};
  }
  uint64_t bytes() const { return states.bytes() + (rows ? rows.bytes() : 0); }
};

struct RewindLimits {
  int64_t tokens = 0;      // that the session can go back by without computing anything; 0: nothing is kept
  uint64_t max_bytes = 0;  // of all that is kept
};

// What the states hold lies in them at `settled` positions, in a checkpoint, or in one of both brought through rows
// that the ops recorded of the tokens behind it. A call reads the best of these and goes on from there (RecurrentCall),
// so that going back costs nothing until then.
class RecurrentMemory {
 public:
  // Zeroed memory for the states of these indices. Errors: kOutOfMemory.
  static Result<RecurrentMemory> allocate(const fb::Program& program, std::vector<uint32_t> indices);

  // Says how many floats ops record for each state of the program, with which going back begins to be possible; where
  // one records none, it is not. Errors: kOutOfMemory.
  Status keep(std::span<const int64_t> row_floats, const RewindLimits& limits);

  std::vector<RecurrentState>& states() { return states_; }
  bool is_empty() const { return indices_.empty(); }
  // Tokens whose rows the rings hold.
  int64_t num_rows() const { return num_rows_; }
  int64_t num_floats() const { return num_floats_; }
  // When the context is full.
  uint64_t bytes() const;
  uint64_t held_bytes() const;

  void clear();
  // To be called before the states are used for tokens [position, position + tokens), of which num_kept will stay where
  // they are; `end`: where the prompt ends that they belong to. Returns how the call treats the states.
  const RecurrentCall* begin_call(int64_t position, int64_t tokens, int64_t num_kept, int64_t end, bool is_prompt);
  void end_call(bool has_succeeded);

  // The last of the first `to` positions that the session can go back to; 0: only its start.
  int64_t nearest(int64_t to) const;
  // Goes back to a position that nearest has returned.
  void rewind(int64_t to);

  // Whether the states themselves hold the first `position` tokens. Else a replay brings them there: `begin_replay`
  // says how, and `end_replay` that it has been done.
  bool is_settled(int64_t position) const { return settled_ == position; }
  const RecurrentCall* begin_replay(int64_t position);
  void end_replay(int64_t position);

  // The states as they are, which must be settled, and the checkpoints.
  void copy_to(std::vector<float>& states, std::vector<RecurrentCheckpoint>& checkpoints) const;
  // The last of the first `to` positions that adopt can go to from a copy made at `position`; 0: none.
  int64_t nearest_in(std::span<const RecurrentCheckpoint> checkpoints, int64_t position, int64_t to) const;
  void adopt(std::span<const float> states, std::span<const RecurrentCheckpoint> checkpoints, int64_t position,
             int64_t to);

 private:
  struct Base {
    int64_t position = -1;                            // -1: there is none
    const RecurrentCheckpoint* checkpoint = nullptr;  // nullptr: the states themselves
  };

  uint64_t state_bytes() const { return static_cast<uint64_t>(num_floats_) * sizeof(float); }
  uint64_t row_bytes() const;
  bool has_rows(int64_t from, int64_t to) const { return from == to || (first_row_ <= from && to <= end_row_); }
  Base base_of(int64_t position) const;
  void set_source(int64_t position);
  void plan_checkpoints(int64_t position, int64_t num_kept, int64_t end, bool is_prompt);
  bool has_checkpoint(int64_t from, int64_t to) const;
  bool make_room(bool is_of_prompt);
  void drop(size_t index);
  void spare(Slab& states);
  void drop_spares();
  void add_checkpoint(int64_t position, int64_t at, bool is_of_prompt);
  void keep_rows_of_prompt(int64_t end);
  void read_rows(const RecurrentCheckpoint& checkpoint, int64_t to);
  float* row_of(const RecurrentState& state, int64_t position) const {
    return state.rows + position % num_rows_ * state.row_floats;
  }

  std::vector<RecurrentState> states_;  // [states of the program]
  std::vector<uint32_t> indices_;       // of the recurrent ones
  int64_t num_floats_ = 0;
  ReservedPages memory_;
  ReservedPages rings_;
  int64_t num_rows_ = 0;
  RewindLimits limits_;
  std::vector<RecurrentCheckpoint> checkpoints_;  // ascending
  std::vector<Slab> spares_;                      // of checkpoints that are gone: new ones fault no pages
  int64_t settled_ = 0;                           // -1: the states are those of no position
  int64_t first_row_ = 0, end_row_ = 0;           // positions whose rows there are

  // Of the call that began.
  RecurrentCall call_;
  Slab source_;  // what it reads stays as it is, whatever becomes of the checkpoint
  std::vector<RecurrentCopy> copies_;
  std::vector<RecurrentCheckpoint> written_;
  int64_t call_position_ = 0, call_tokens_ = 0, call_end_ = 0;
  bool is_prompt_ = false;
};

}  // namespace mote
