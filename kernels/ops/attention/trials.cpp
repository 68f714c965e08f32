#include "kernels/ops/attention/trials.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/ops/attention/kernel.h"

namespace mote {
namespace {

constexpr int64_t kLeastColumns = 512;  // of the keys of a position
constexpr int64_t kMostWidth = 1024;    // of a head, of which a trial's memory holds some pages

// A tile of queries with its working memory, and a place for results.
class Queries {
 public:
  Queries(int rows, int64_t head_dim, int64_t value_head_dim)
      : floats_(static_cast<size_t>(rows * (head_dim + kSplitLanes + 1 + 2 + padded_width(value_head_dim)))),
        positions_(static_cast<size_t>(rows), INT64_MAX / 2),
        visible_(static_cast<size_t>(rows * kSplitBlocks)) {
    float* next = floats_.data();
    const auto take = [&](int64_t count) { return std::exchange(next, next + count * rows); };
    tile.rows = rows;
    tile.queries = take(head_dim);
    tile.scores = take(kSplitLanes);
    tile.slopes = take(1);
    tile.positions = positions_.data();
    tile.visible = visible_.data();
    sums = {take(1), take(1), take(padded_width(value_head_dim))};
  }

  QueryTile tile;
  SoftmaxSums sums;

 private:
  std::vector<float> floats_;
  std::vector<int64_t> positions_;
  std::vector<uint32_t> visible_;
};

void attend_all(const AttentionKernel& kernel, KvHead head, Queries& queries, std::span<std::byte> memory) {
  head.values_offset = kKvPageBlocks * head.key_block_bytes;
  const int64_t page_bytes = head.values_offset + kKvPageBlocks * head.value_block_bytes;
  std::byte* page = memory.data();
  head.pages = &page;
  head.num_pages = 1;
  SplitBlocks blocks;
  blocks.count = kKvPageBlocks;
  for (int b = 0; b < blocks.count; ++b) {
    blocks.index[b] = b;
    blocks.first[b] = b * kKvBlockSlots;
    blocks.held[b] = 0xFFFF;
  }
  for (const std::byte* end = memory.data() + memory.size(); end - page >= page_bytes; page += page_bytes)
    kernel.attend(head, blocks, ScoreRule(), queries.tile, queries.sums);
}

}  // namespace

Trial attention_trial(const StateShape& shape, int64_t num_heads, int64_t tokens) {
  Trial trial;
  const int64_t rows = num_heads / std::max<int64_t>(shape.num_heads, 1) * tokens;
  if (rows < 1 || rows > kFewRows || int64_t{shape.num_heads} * shape.head_dim < kLeastColumns) return trial;
  if (shape.value_head_dim == 0) return trial;  // values in keys, which a trial has no memory for
  if (shape.head_dim > kMostWidth || shape.value_head_dim > kMostWidth) return trial;
  KvHead head;
  head.type = KvType::kFloat16;  // as sessions hold it unless told otherwise
  head.head_dim = static_cast<int32_t>(shape.head_dim);
  head.value_head_dim = static_cast<int32_t>(shape.value_head_dim);
  head.key_block_bytes = kv_key_block_bytes(head.type, head.head_dim);
  head.value_block_bytes = kv_value_block_bytes(head.type, head.value_head_dim);
  trial.work = std::to_string(rows) + " queries of " + std::to_string(head.head_dim);
  trial.run = [head, rows, queries = std::shared_ptr<Queries>()](const void* functions,
                                                                 std::span<std::byte> memory) mutable {
    if (queries == nullptr)
      queries = std::make_shared<Queries>(static_cast<int>(rows), head.head_dim, head.value_head_dim);
    attend_all(*static_cast<const AttentionKernel*>(functions), head, *queries, memory);
  };
  return trial;
}

}  // namespace mote
