#include "runner/session/state/recurrent.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/size.h"

namespace mote {
namespace {

constexpr int64_t kStride = 32;      // tokens between checkpoints: what is replayed at most
constexpr int64_t kPromptRows = 16;  // last tokens of a prompt, among which the next turn of a chat parts from it
constexpr int64_t kLeastPrompt = 4;  // fewer tokens in one call are no prompt of a turn
constexpr int64_t kMostPrompts = 8;  // whose checkpoints are kept
constexpr int64_t kAlignedFloats = 16;

int64_t aligned(int64_t floats) { return (floats + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats; }

size_t float_bytes(int64_t count) { return static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(float); }

}  // namespace

Result<RecurrentMemory> RecurrentMemory::allocate(const fb::Program& program, std::vector<uint32_t> indices) {
  RecurrentMemory memory;
  memory.states_.resize(program.states()->size());
  memory.indices_ = std::move(indices);
  Size floats = 0;
  for (const uint32_t i : memory.indices_) {
    const fb::State& state = *program.states()->Get(i);
    Tensor& tensor = memory.states_[i].tensor;
    Size elements = 1;
    tensor.rank = static_cast<int>(state.shape()->size());
    for (uint32_t dim = 0; dim < state.shape()->size(); ++dim) {
      tensor.sizes[dim] = state.shape()->Get(dim);
      elements = elements * tensor.sizes[dim];
    }
    tensor.dtype = DType::kFloat32;
    tensor.set_contiguous_strides();
    memory.states_[i].offset = floats.value();
    floats = (floats + elements).align_up(kAlignedFloats);
    MOTE_REQUIRE((floats * sizeof(float)).at_most(PTRDIFF_MAX), Code::kOutOfMemory,
                 "the recurrent states need more memory than can be addressed");
  }
  memory.num_floats_ = floats.value();
  if (memory.indices_.empty()) return memory;
  const size_t bytes = float_bytes(memory.num_floats_);
  memory.memory_ = reserve_large_pages(bytes);
  MOTE_REQUIRE(memory.memory_ != nullptr, Code::kOutOfMemory,
               "the recurrent states need %zu bytes, more than the system has", bytes);
  auto* base = reinterpret_cast<float*>(memory.memory_.get());
  for (const uint32_t i : memory.indices_) memory.states_[i].tensor.data = base + memory.states_[i].offset;
  return memory;
}

Status RecurrentMemory::keep(std::span<const int64_t> row_floats, const RewindLimits& limits) {
  limits_ = {};
  num_rows_ = 0;
  const bool records_all = std::ranges::all_of(indices_, [&](uint32_t i) { return row_floats[i] > 0; });
  if (indices_.empty() || !records_all || limits.tokens == 0 || limits.max_bytes == 0) return {};
  Size floats = 0;
  for (const uint32_t i : indices_) {
    states_[i].row_floats = aligned(row_floats[i]);
    floats = floats + states_[i].row_floats;
  }
  const uint64_t of_row = (floats * sizeof(float)).unsigned_value();
  const auto fitting = static_cast<int64_t>(limits.max_bytes / 2 / of_row);
  const int64_t rows = std::min(limits.tokens + kStride, fitting);
  if (rows == 0) return {};
  const Size bytes = Size(rows) * of_row;
  MOTE_REQUIRE(bytes.at_most(PTRDIFF_MAX), Code::kOutOfMemory,
               "rewind_tokens: needs more memory than can be addressed");
  const auto size = static_cast<size_t>(bytes.unsigned_value());
  rings_ = reserve_large_pages(size);
  MOTE_REQUIRE(rings_ != nullptr, Code::kOutOfMemory, "rewind_tokens = %lld: needs %zu bytes, more than the system has",
               static_cast<long long>(limits.tokens), size);
  auto* next = reinterpret_cast<float*>(rings_.get());
  for (const uint32_t i : indices_) {
    states_[i].rows = next;
    next += rows * states_[i].row_floats;
  }
  num_rows_ = rows;
  limits_ = limits;
  return {};
}

uint64_t RecurrentMemory::row_bytes() const {
  uint64_t bytes = 0;
  for (const uint32_t i : indices_) bytes += static_cast<uint64_t>(states_[i].row_floats) * sizeof(float);
  return bytes;
}

uint64_t RecurrentMemory::bytes() const {
  if (num_rows_ == 0) return state_bytes();
  const auto rows = static_cast<uint64_t>(num_rows_ + kMostPrompts * kPromptRows);
  const auto checkpoints = static_cast<uint64_t>(num_rows_ / kStride + 1 + kMostPrompts);
  return state_bytes() + std::min(limits_.max_bytes, rows * row_bytes() + checkpoints * state_bytes());
}

uint64_t RecurrentMemory::held_bytes() const {
  const auto rows = static_cast<uint64_t>(num_rows_ == 0 ? 0 : std::min(end_row_, num_rows_));
  uint64_t bytes = state_bytes() + rows * row_bytes();
  for (const Slab& spare : spares_) bytes += spare.bytes();
  for (const RecurrentCheckpoint& checkpoint : checkpoints_) bytes += checkpoint.bytes();
  return bytes;
}

void RecurrentMemory::clear() {
  checkpoints_.clear();
  written_.clear();
  spares_.clear();
  source_ = Slab();
  settled_ = first_row_ = end_row_ = 0;
  if (memory_ != nullptr) std::memset(memory_.get(), 0, float_bytes(num_floats_));
}

// The nearest place from which rows lead to a position.
RecurrentMemory::Base RecurrentMemory::base_of(int64_t position) const {
  Base best;
  if (settled_ >= 0 && settled_ <= position && has_rows(settled_, position)) best.position = settled_;
  for (const RecurrentCheckpoint& checkpoint : checkpoints_) {
    if (checkpoint.position > position || checkpoint.position <= best.position) continue;
    if (has_rows(checkpoint.position, position)) best = {checkpoint.position, &checkpoint};
  }
  return best;
}

void RecurrentMemory::set_source(int64_t position) {
  const Base base = base_of(position);
  MOTE_ASSERT(base.position >= 0);
  call_ = {};
  call_.num_rows = num_rows_;
  source_ = base.checkpoint == nullptr ? Slab() : base.checkpoint->states.share();
  if (source_) call_.source = reinterpret_cast<const float*>(source_.data());
  call_.num_replayed = position - base.position;
  if (num_rows_ > 0) call_.first_replayed = base.position % num_rows_;
}

const RecurrentCall* RecurrentMemory::begin_call(int64_t position, int64_t tokens, int64_t num_kept, int64_t end,
                                                 bool is_prompt) {
  if (num_rows_ == 0) {
    settled_ = -1;
    call_position_ = position;
    call_tokens_ = tokens;
    return nullptr;
  }
  copies_.clear();
  written_.clear();
  set_source(position);
  call_position_ = position;
  call_tokens_ = tokens;
  call_end_ = end;
  is_prompt_ = is_prompt && end - position >= kLeastPrompt;
  call_.num_kept = num_kept;
  const int64_t first = std::max({position, end - num_rows_, position + tokens - num_rows_});
  call_.num_recorded = std::max<int64_t>(position + tokens - first, 0);
  call_.first_recorded = (position + tokens - call_.num_recorded) % num_rows_;
  plan_checkpoints(position, num_kept, end, is_prompt_);
  drop_spares();
  checkpoints_.reserve(checkpoints_.size() + written_.size());
  call_.copies = copies_;
  settled_ = -1;
  return &call_;
}

void RecurrentMemory::plan_checkpoints(int64_t position, int64_t num_kept, int64_t end, bool is_prompt) {
  const int64_t last = position + num_kept;
  int64_t of_prompt = -1;
  if (is_prompt && end - kPromptRows <= last && !has_checkpoint(end - kPromptRows, end))
    of_prompt = std::max(position, end - kPromptRows);
  const int64_t oldest = std::max(position, end - num_rows_);
  // Those of fixed strides that no rows lead on from are worth nothing any more.
  for (size_t i = checkpoints_.size(); i-- > 0;) {
    if (!checkpoints_[i].is_of_prompt && checkpoints_[i].position < last - num_rows_) drop(i);
  }
  for (int64_t at = oldest; at <= last; ++at) {
    // Where the next call begins it can still be written, and this one has enough to do.
    const bool is_left = at == last && call_.num_replayed > 0;
    const bool is_at_stride = at % kStride == 0 && !is_left && !has_checkpoint(at, at);
    if (at == of_prompt || is_at_stride) add_checkpoint(at, at - position, at == of_prompt);
  }
  if (of_prompt >= 0 && of_prompt < oldest) add_checkpoint(of_prompt, of_prompt - position, true);
  std::ranges::sort(copies_, {}, &RecurrentCopy::tokens);
}

bool RecurrentMemory::has_checkpoint(int64_t from, int64_t to) const {
  return std::ranges::any_of(checkpoints_, [&](const RecurrentCheckpoint& checkpoint) {
    return checkpoint.position >= from && checkpoint.position <= to;
  });
}

void RecurrentMemory::drop(size_t index) {
  spare(checkpoints_[index].states);
  checkpoints_.erase(checkpoints_.begin() + static_cast<ptrdiff_t>(index));
}

void RecurrentMemory::spare(Slab& states) {
  if (states.is_writable()) spares_.push_back(std::move(states));
}

// As many as do not fit beside what is kept.
void RecurrentMemory::drop_spares() {
  uint64_t held = static_cast<uint64_t>(num_rows_) * row_bytes();
  for (const RecurrentCheckpoint& each : checkpoints_) held += each.bytes();
  for (const RecurrentCheckpoint& each : written_) held += each.bytes();
  while (!spares_.empty() && held + spares_.size() * state_bytes() > limits_.max_bytes) spares_.pop_back();
}

// Drops checkpoints until another fits: the oldest of prompts as long as enough others stay, then the oldest at
// strides. False: it does not fit.
bool RecurrentMemory::make_room(bool is_of_prompt) {
  const auto rows = static_cast<uint64_t>(is_of_prompt ? std::min(kPromptRows, num_rows_) : 0);
  const uint64_t needed = state_bytes() + rows * row_bytes();
  while (true) {
    uint64_t held = static_cast<uint64_t>(num_rows_) * row_bytes() + needed;
    for (const RecurrentCheckpoint& each : checkpoints_) held += each.bytes();
    for (const RecurrentCheckpoint& each : written_) held += each.bytes();
    const auto num_prompts = std::ranges::count_if(checkpoints_, &RecurrentCheckpoint::is_of_prompt);
    const bool has_too_many = is_of_prompt && num_prompts >= kMostPrompts;
    if (held <= limits_.max_bytes && !has_too_many) return true;
    const bool gives_prompt = num_prompts > (is_of_prompt ? 1 : 2);
    const auto oldest = std::ranges::find(checkpoints_, gives_prompt, &RecurrentCheckpoint::is_of_prompt);
    if (oldest == checkpoints_.end()) return false;
    drop(static_cast<size_t>(oldest - checkpoints_.begin()));
  }
}

void RecurrentMemory::add_checkpoint(int64_t position, int64_t at, bool is_of_prompt) {
  if (!make_room(is_of_prompt)) return;
  Slab states;
  if (spares_.empty()) {
    states = Slab::allocate(float_bytes(num_floats_), true);
  } else {
    states = std::move(spares_.back());
    spares_.pop_back();
  }
  if (!states) return;
  copies_.push_back({at, reinterpret_cast<float*>(states.data())});
  written_.push_back({position, is_of_prompt, std::move(states), 0, 0, Slab()});
}

void RecurrentMemory::end_call(bool has_succeeded) {
  source_ = Slab();
  if (num_rows_ == 0) {
    if (has_succeeded) settled_ = call_position_ + call_tokens_;
    return;
  }
  const int64_t end = call_position_ + call_tokens_, begin = end - call_.num_recorded;
  // A call that failed may have written over rows of the ring.
  first_row_ = std::max(first_row_, end - num_rows_);
  if (!has_succeeded) {
    first_row_ = std::min(first_row_, end_row_);
    for (RecurrentCheckpoint& each : written_) spare(each.states);
    written_.clear();
    return;
  }
  if (begin > end_row_) first_row_ = begin;
  end_row_ = std::max(end, first_row_);
  settled_ = call_position_ + call_.num_kept;
  for (RecurrentCheckpoint& each : written_) {
    const auto place = std::ranges::upper_bound(checkpoints_, each.position, {}, &RecurrentCheckpoint::position);
    checkpoints_.insert(place, std::move(each));
  }
  written_.clear();
  if (is_prompt_ && end == call_end_) keep_rows_of_prompt(end);
  drop_spares();
}

// The rows from a prompt's checkpoint to its end go with the checkpoint, as the ring forgets them.
void RecurrentMemory::keep_rows_of_prompt(int64_t end) {
  for (RecurrentCheckpoint& each : checkpoints_) {
    if (each.position < end - kPromptRows || each.position >= end || each.num_rows > 0) continue;
    if (!has_rows(each.position, end)) continue;
    each.is_of_prompt = true;
    const int64_t count = end - each.position;
    each.rows = Slab::allocate(static_cast<size_t>(count) * static_cast<size_t>(row_bytes()), true);
    if (!each.rows) return;
    each.num_rows = each.rows_of_state = count;
    auto* to = reinterpret_cast<float*>(each.rows.data());
    for (const uint32_t i : indices_) {
      const RecurrentState& state = states_[i];
      for (int64_t p = each.position; p < end; ++p, to += state.row_floats)
        std::memcpy(to, row_of(state, p), static_cast<size_t>(state.row_floats) * sizeof(float));
    }
    return;
  }
}

int64_t RecurrentMemory::nearest(int64_t to) const {
  return base_of(to).position >= 0 ? to : nearest_in(checkpoints_, -1, to);
}

int64_t RecurrentMemory::nearest_in(std::span<const RecurrentCheckpoint> checkpoints, int64_t position,
                                    int64_t to) const {
  int64_t best = position <= to ? std::max<int64_t>(position, 0) : 0;
  for (const RecurrentCheckpoint& each : checkpoints) {
    if (each.position > to) continue;
    best = std::max(best, std::min(to, each.position + (each.num_rows <= num_rows_ ? each.num_rows : 0)));
  }
  return best;
}

void RecurrentMemory::rewind(int64_t to) {
  if (base_of(to).position < 0) {
    const auto from = std::ranges::find_if(checkpoints_, [&](const RecurrentCheckpoint& each) {
      return each.position <= to && to <= each.position + each.num_rows;
    });
    MOTE_ASSERT(from != checkpoints_.end());
    read_rows(*from, to);
  }
  end_row_ = std::min(end_row_, to);
  first_row_ = std::min(first_row_, end_row_);
  if (settled_ > to) settled_ = -1;
  while (!checkpoints_.empty() && checkpoints_.back().position > to) drop(checkpoints_.size() - 1);
  for (RecurrentCheckpoint& each : checkpoints_) each.num_rows = std::min(each.num_rows, to - each.position);
}

// The rows of a checkpoint up to `to` become those of the ring.
void RecurrentMemory::read_rows(const RecurrentCheckpoint& checkpoint, int64_t to) {
  const auto* from = reinterpret_cast<const float*>(checkpoint.rows ? checkpoint.rows.data() : nullptr);
  for (const uint32_t i : indices_) {
    if (from == nullptr) break;
    const RecurrentState& state = states_[i];
    for (int64_t p = checkpoint.position; p < to; ++p) {
      std::memcpy(row_of(state, p), from + (p - checkpoint.position) * state.row_floats,
                  static_cast<size_t>(state.row_floats) * sizeof(float));
    }
    from += checkpoint.rows_of_state * state.row_floats;
  }
  first_row_ = checkpoint.position;
  end_row_ = to;
}

const RecurrentCall* RecurrentMemory::begin_replay(int64_t position) {
  set_source(position);
  settled_ = -1;
  return &call_;
}

void RecurrentMemory::end_replay(int64_t position) {
  settled_ = position;
  source_ = Slab();
}

void RecurrentMemory::copy_to(std::vector<float>& states, std::vector<RecurrentCheckpoint>& checkpoints) const {
  const auto* from = reinterpret_cast<const float*>(memory_.get());
  states.assign(from, from + num_floats_);
  for (const RecurrentCheckpoint& each : checkpoints_) checkpoints.push_back(each.share());
}

void RecurrentMemory::adopt(std::span<const float> states, std::span<const RecurrentCheckpoint> checkpoints,
                            int64_t position, int64_t to) {
  clear();
  if (indices_.empty()) return;
  if (num_rows_ > 0 || to < position) {
    for (const RecurrentCheckpoint& each : checkpoints) {
      if (each.position <= to) checkpoints_.push_back(each.share());
    }
  }
  if (to == position) {
    std::memcpy(memory_.get(), states.data(), states.size_bytes());
    settled_ = first_row_ = end_row_ = to;
    return;
  }
  settled_ = -1;
  rewind(to);
  if (num_rows_ > 0) return;
  std::memcpy(memory_.get(), checkpoints_.back().states.data(), float_bytes(num_floats_));
  settled_ = to;
  checkpoints_.clear();
}

}  // namespace mote
