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
  guesses_.clear();
  head_.append(before, rows.first(call.count * width));
}

// One call of a head for tokens from a position in its cache, each with the hidden state in front of it.
Status Session::run_head(size_t depth, int64_t from, std::span<const int32_t> ids,
                         std::span<const float> hidden_states) {
  position_.forget_logits();  // methods share the memory that they lie in
  const auto count = static_cast<int64_t>(ids.size());
  const uint32_t method = head_.method(depth);
  MOTE_RETURN_IF_ERROR(executor().prepare(method, count));
  SequenceStates states{count, states_.kv_caches(), states_.recurrent_states(), adapter_uses_, nullptr};
  if (!head_.reads_session()) { MOTE_ASSIGN(states, head_.begin_call(depth, from, count, adapter_uses_)); }
  const std::span<int64_t> input_ids = executor().input(method, 0);
  const std::span<int64_t> position_ids = executor().input(method, 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    input_ids[i] = ids[i];
    position_ids[i] = from + static_cast<int64_t>(i);
  }
  std::ranges::copy(hidden_states, executor().float_input(method, 2).begin());
  const ScopedBinding binding(engine_.cpus);
  executor().want_largest(0);
  const Status status = executor().run_together(method, {&states, 1}, *cancelled_, watch_);
  if (status.code() == Code::kCancelled) cancelled_->store(false);
  return status;
}

// What a head reads with its next rows: tokens of the text, then guesses_.
std::vector<int32_t> Session::ids_for_head(size_t depth, int64_t count) const {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  int64_t place = head_.first_position(depth) + static_cast<int64_t>(depth) + 1;
  for (int32_t& id : ids) {
    id = place < position() ? tokens()[static_cast<size_t>(place)] : guesses_[static_cast<size_t>(place - position())];
    ++place;
  }
  return ids;
}

// A head reads its first rows, whose tokens are known up to the first of guesses_.
Status Session::catch_up_head(size_t depth, int64_t count) {
  while (count > 0) {
    const int64_t now = std::min(count, head_.max_rows());
    MOTE_RETURN_IF_ERROR(make_rows_fit(depth + 1, now));
    MOTE_RETURN_IF_ERROR(run_head(depth, head_.filled(depth), ids_for_head(depth, now), head_.rows(depth, now)));
    head_.end_call(depth, now, executor().output(head_.method(depth), 1));
    count -= now;
  }
  return {};
}

// Makes room for so many more rows of a head.
Status Session::make_rows_fit(size_t depth, int64_t count) {
  if (depth == head_.num_layers() || head_.num_rows(depth) + count <= head_.max_rows()) return {};
  return catch_up_head(depth, head_.num_known(depth, position()));
}

// Makes room for the rows of a call whose first token is `next`.
Status Session::make_head_room(int64_t count, int32_t next) {
  if (!head_.follows()) return {};
  head_.truncate(position());
  if (head_.reads_session() || head_.end() != position() || head_.num_rows(0) == 0) return {};
  guesses_.assign(1, next);
  const Status status = make_rows_fit(0, count);
  guesses_.clear();
  return status;
}

Result<std::span<const float>> Session::guess(int32_t id) {
  MOTE_RETURN_IF_ERROR(check_ids({&id, 1}));
  if (!head_.follows() || has_deferred()) return std::span<const float>();
  forget_draft();
  if (head_.end() != position() || head_.num_rows(0) == 0) return std::span<const float>();
  guesses_.clear();
  head_.guessed().emplace();
  return guess_behind(id);
}

Result<std::span<const float>> Session::guess_next(int32_t id) {
  MOTE_RETURN_IF_ERROR(check_ids({&id, 1}));
  const bool goes_on = head_.follows() && head_.end() == position() && head_.guessed().has_value();
  return goes_on ? guess_behind(id) : std::span<const float>();
}

Result<std::span<const float>> Session::guess_behind(int32_t id) {
  const size_t depth = guesses_.size();
  guesses_.push_back(id);
  const auto logits = depth < head_.num_layers() && !head_.reads_session() ? guess_by_layer(depth) : guess_again(depth);
  if (!logits.ok() || logits->empty()) head_.guessed().reset();
  return logits;
}

// A head reads its rows and, behind these, what the one before made of guesses.
Result<std::span<const float>> Session::guess_by_layer(size_t depth) {
  const auto num_guessed = static_cast<int64_t>(head_.guessed()->size()) / head_.width();
  const int64_t excess = head_.num_rows(depth) + num_guessed - head_.max_rows();
  MOTE_RETURN_IF_ERROR(catch_up_head(depth, std::min(excess, head_.num_known(depth, position()))));
  const int64_t own = head_.num_rows(depth), known = head_.num_known(depth, position());
  if (own + num_guessed > head_.max_rows()) return std::span<const float>();
  MOTE_RETURN_IF_ERROR(make_rows_fit(depth + 1, known));
  const std::span<const float> unread = head_.rows(depth, own);
  std::vector<float> rows(unread.begin(), unread.end());
  rows.insert(rows.end(), head_.guessed()->begin(), head_.guessed()->end());
  MOTE_RETURN_IF_ERROR(run_head(depth, head_.filled(depth), ids_for_head(depth, own + num_guessed), rows));
  const std::span<const float> made = executor().output(head_.method(depth), 1);
  head_.end_call(depth, known, made);
  const bool is_last = depth + 1 == head_.num_layers();
  const std::span<const float> behind = is_last ? made : made.subspan(static_cast<size_t>(known * head_.width()));
  head_.guessed()->assign(behind.begin(), behind.end());
  return executor().output(head_.method(depth), 0);
}

// The last head reads its own guesses, each at a position of its own; one that attends to the session guesses all from
// one position.
Result<std::span<const float>> Session::guess_again(size_t depth) {
  const size_t last = head_.num_layers() - 1;
  if (depth == 0) head_.guessed()->assign(head_.last_row().begin(), head_.last_row().end());
  const int64_t from = position() - 1 - (head_.reads_session() ? 0 : head_.base() - static_cast<int64_t>(depth - last));
  if (from >= context_length()) return std::span<const float>();
  MOTE_RETURN_IF_ERROR(run_head(last, from, {&guesses_.back(), 1}, *head_.guessed()));
  const std::span<const float> made = executor().output(head_.method(last), 1);
  head_.guessed()->assign(made.begin(), made.end());
  return executor().output(head_.method(last), 0);
}

}  // namespace mote
