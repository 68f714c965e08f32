#include "runner/session/draft_head.h"

#include <iterator>

namespace mote {

Result<DraftHead> DraftHead::open(const Bound& bound, const StateMemoryOptions& options) {
  DraftHead head;
  head.max_rows_ = options.prefill_chunk;
  for (size_t depth = 0; depth < std::size(kHeadMethods); ++depth) {
    const Result<uint32_t> method = bound.method_index(kHeadMethods[depth]);
    if (!method.ok()) break;
    const fb::Method& found = bound.method(*method);
    head.width_ = found.values()->Get(static_cast<uint32_t>(found.inputs()->Get(2)))->shape()->Get(2)->constant();
    Layer& layer = head.layers_.emplace_back();
    layer.method = *method;
    if (bound.head_reads_session()) break;
    StateMemoryOptions own = options;
    own.head = depth;
    MOTE_ASSIGN(layer.memory, StateMemory::allocate(bound, own));
  }
  return head;
}

void DraftHead::follow(bool wanted) {
  follows_ = exists() && wanted;
  if (follows_) {
    for (Layer& layer : layers_) layer.rows.reserve(static_cast<size_t>(max_rows_ * width_));
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
  guessed_.reset();
  layers_[0].rows.insert(layers_[0].rows.end(), rows.begin(), rows.end());
}

void DraftHead::truncate(int64_t count) {
  if (count <= base_) return clear();
  if (count < end()) guessed_.reset();
  for (Layer& layer : layers_) {
    const int64_t kept = std::clamp<int64_t>(count - base_ - layer.filled, 0, to_rows(layer.rows));
    layer.rows.resize(static_cast<size_t>(kept * width_));
    const int64_t filled = std::min(layer.filled, count - base_);
    if (filled < layer.filled) (void)layer.memory->rewind(layer.filled, filled);  // caches without a window always can
    layer.filled = filled;
  }
}

void DraftHead::clear() {
  for (Layer& layer : layers_) {
    if (layer.filled > 0) layer.memory->clear();
    layer.filled = 0;
    layer.rows.clear();
  }
  base_ = 0;
  guessed_.reset();
}

Result<SequenceStates> DraftHead::begin_call(size_t depth, int64_t from, int64_t tokens,
                                             std::span<const AdapterUse> adapters) {
  StateMemory& memory = *layers_[depth].memory;
  MOTE_RETURN_IF_ERROR(memory.reserve(from, tokens));
  return SequenceStates{tokens, memory.kv_caches(), memory.recurrent_states(), adapters, nullptr};
}

void DraftHead::end_call(size_t depth, int64_t count, std::span<const float> made) {
  Layer& layer = layers_[depth];
  layer.rows.erase(layer.rows.begin(), layer.rows.begin() + static_cast<ptrdiff_t>(count * width_));
  layer.filled += count;
  if (depth + 1 == layers_.size()) return;
  std::vector<float>& next = layers_[depth + 1].rows;
  next.insert(next.end(), made.begin(), made.begin() + static_cast<ptrdiff_t>(count * width_));
}

DraftHeadSnapshot DraftHead::snapshot() const {
  DraftHeadSnapshot snapshot;
  if (!follows_) return snapshot;
  if (reads_session()) {
    if (layers_[0].rows.empty()) return snapshot;
    snapshot.base = end() - 1;
    snapshot.layers.push_back({0, {}, {last_row().begin(), last_row().end()}});
    return snapshot;
  }
  snapshot.base = base_;
  for (const Layer& layer : layers_)
    snapshot.layers.push_back({layer.filled, layer.memory->snapshot(layer.filled), layer.rows});
  return snapshot;
}

void DraftHead::adopt(const DraftHeadSnapshot& snapshot, int64_t count) {
  clear();
  if (!follows_ || snapshot.layers.size() != layers_.size()) return;
  for (size_t depth = 0; depth < layers_.size(); ++depth) {
    Layer& layer = layers_[depth];
    const DraftHeadSnapshot::Layer& from = snapshot.layers[depth];
    if (from.filled > 0) {
      if (layer.memory->adoptable(from.states, from.filled) != from.filled) return clear();
      layer.memory->adopt(from.states, from.filled);
    }
    layer.filled = from.filled;
    layer.rows.assign(from.rows.begin(), from.rows.end());
  }
  base_ = snapshot.base;
  truncate(count);
}

}  // namespace mote
