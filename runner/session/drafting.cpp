// What a session lets its model's head for multi-token prediction guess.
#include <algorithm>

#include "runner/session/session.h"

namespace mote {

void Session::follow_with_head(bool wanted) {
  if (wanted == head_.follows()) return;
  head_.follow(wanted && longest_draft() > 0);
}

// Gives the head the hidden states of a call, of which those behind `count` tokens fill it up.
void Session::note_hidden_states(const MethodCall& call, int64_t before) {
  if (!head_.follows()) return;
  const std::span<const float> rows = executor().output(call.method, 1);
  const size_t width = rows.size() / static_cast<size_t>(call.tokens);
  num_guessed_ = -1;
  head_.append(before, rows.first(call.count * width));
}

// One call of the head for tokens from a position in the cache, each with the hidden state in front of it.
Status Session::run_head(int64_t from, std::span<const int32_t> ids, std::span<const float> hidden_states) {
  position_.forget_logits();  // methods share the memory that they lie in
  const auto count = static_cast<int64_t>(ids.size());
  MOTE_RETURN_IF_ERROR(executor().prepare(head_.method(), count));
  SequenceStates states{count, states_.kv_caches(), states_.recurrent_states(), adapter_uses_, nullptr};
  if (!head_.reads_session()) { MOTE_ASSIGN(states, head_.begin_call(from, count, adapter_uses_)); }
  const std::span<int64_t> input_ids = executor().input(head_.method(), 0);
  const std::span<int64_t> position_ids = executor().input(head_.method(), 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    input_ids[i] = ids[i];
    position_ids[i] = from + static_cast<int64_t>(i);
  }
  std::ranges::copy(hidden_states, executor().float_input(head_.method(), 2).begin());
  const ScopedBinding binding(engine_.cpus);
  executor().want_largest(0);
  const Status status = executor().run_together(head_.method(), {&states, 1}, *cancelled_, watch_);
  if (status.code() == Code::kCancelled) cancelled_->store(false);
  return status;
}

// The head reads all rows that it has, the last of them with `next` as the token behind it.
Status Session::catch_up_head(int32_t next) {
  std::vector<int32_t> ids(tokens().begin() + static_cast<ptrdiff_t>(head_.end() - head_.num_rows()) + 1,
                           tokens().begin() + static_cast<ptrdiff_t>(head_.end()));
  ids.push_back(next);
  MOTE_RETURN_IF_ERROR(run_head(head_.first(), ids, head_.rows(head_.num_rows())));
  head_.end_call(head_.num_rows());
  return {};
}

// Makes room for the rows of a call whose first token is `next`.
Status Session::make_head_room(int64_t count, int32_t next) {
  if (!head_.follows()) return {};
  head_.truncate(position());
  if (head_.reads_session() || head_.end() != position() || head_.num_rows() == 0) return {};
  return head_.num_rows() + count <= head_.max_rows() ? Status() : catch_up_head(next);
}

Result<std::span<const float>> Session::guess(int32_t id) {
  MOTE_RETURN_IF_ERROR(check_ids({&id, 1}));
  if (!head_.follows() || has_deferred()) return std::span<const float>();
  forget_draft();
  if (head_.end() != position() || head_.num_rows() == 0) return std::span<const float>();
  if (head_.reads_session()) {
    MOTE_RETURN_IF_ERROR(run_head(position() - 1, {&id, 1}, head_.last_row()));
  } else {
    MOTE_RETURN_IF_ERROR(catch_up_head(id));
  }
  num_guessed_ = 0;
  return executor().output(head_.method(), 0);
}

Result<std::span<const float>> Session::guess_next(int32_t id) {
  MOTE_RETURN_IF_ERROR(check_ids({&id, 1}));
  // A head that attends to the session guesses all from one position.
  const int64_t from = head_.reads_session() ? position() - 1 : head_.first() + num_guessed_;
  const bool is_behind = head_.reads_session() ? head_.end() != position() : head_.num_rows() > 0;
  if (!head_.follows() || num_guessed_ < 0 || is_behind || from >= context_length()) return std::span<const float>();
  std::ranges::copy(executor().output(head_.method(), 1), head_.guessed().begin());
  MOTE_RETURN_IF_ERROR(run_head(from, {&id, 1}, head_.guessed()));
  ++num_guessed_;
  return executor().output(head_.method(), 0);
}

}  // namespace mote
