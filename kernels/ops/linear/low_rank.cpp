#include "kernels/ops/linear/low_rank.h"

#include <algorithm>

#include "kernels/support/contract.h"
#include "kernels/support/rows.h"
#include "kernels/support/scratch.h"

namespace mote {

namespace {

constexpr int64_t kMostColumns = 64;  // of a strip

// The rows of activations of each sequence.
struct SequenceRows {
  int64_t first = 0;
  int64_t count = 0;
};

// Collects the items of a call.
struct Items {
  const void* weight;
  Scratch& scratch;
  AdapterItem* items;
  AdapterBlock* blocks;
  int64_t num_items = 0;
  int64_t num_blocks = 0;

  void add(const SequenceStates& sequence, SequenceRows rows) {
    const int64_t first_item = num_items;
    for (const AdapterUse& use : sequence.adapters) {
      for (const LowRank& part : use.adapter->parts_of(weight)) {
        items[num_items++] = {&part, scratch.take<float>(rows.count * part.rank), rows.first, rows.count, use.weight};
      }
    }
    if (num_items == first_item) return;
    for (int64_t first = 0; first < rows.count; first += kAdapterBlock) {
      blocks[num_blocks++] = {rows.first + first, std::min(kAdapterBlock, rows.count - first), first_item,
                              num_items - first_item};
    }
  }
};

// Rows of x as A reads them, normalised if the op says so; in `buffer` unless they lie there already.
const float* read_rows(const Tensor& x, const FusedNorm& norm, const RowKernels& kernels, const AdapterBlock& block,
                       float* buffer) {
  const int64_t width = row_length(x);
  if (!norm.present && x.is_contiguous()) return x.as<float>() + block.first * width;
  for (int64_t t = 0; t < block.count; ++t) {
    float* to = buffer + t * width;
    copy_row(x, block.first + t, to);
    if (norm.present) kernels.rms_norm(to, width, norm.eps, norm.weight, norm.offset, to);
  }
  return buffer;
}

// inner = weight * scale * A x for one block of rows.
void multiply_by_a(const AdapterItem& item, const AdapterBlock& block, const float* x) {
  const LowRank& part = *item.part;
  const auto& products = *static_cast<const DenseProducts*>(part.down->functions);
  float* inner = item.inner + (block.first - item.first) * part.rank;
  products.multiply({part.a, part.dtype, part.columns * dtype_bytes(part.dtype), part.rank, part.columns}, x,
                    part.columns, block.count, inner, part.rank);
  const float factor = item.weight * part.scale;
  for (int64_t i = 0; i < block.count * part.rank; ++i) inner[i] *= factor;
}

// What a strip of columns shares with the rows of a part.
struct Overlap {
  int64_t begin = 0;
  int64_t end = 0;

  static Overlap of(int64_t begin_a, int64_t count_a, int64_t begin_b, int64_t count_b) {
    return {std::max(begin_a, begin_b), std::min(begin_a + count_a, begin_b + count_b)};
  }
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

// The most items and blocks that a call can have, and its tokens.
struct Counts {
  int64_t tokens = 0;
  int64_t items = 0;
  int64_t blocks = 0;

  Counts(std::span<const SequenceStates> sequences, const void* weight) {
    for (const SequenceStates& sequence : sequences) {
      tokens += sequence.tokens;
      blocks += sequence.tokens / kAdapterBlock + 1;
      for (const AdapterUse& use : sequence.adapters)
        items += static_cast<int64_t>(use.adapter->parts_of(weight).size());
    }
  }
};

}  // namespace

Result<AddedProducts> AddedProducts::make(const Call& call, const FusedNorm& norm, const KernelContext& context) {
  AddedProducts added;
  if (context.adapter_memory.empty()) return added;
  const Tensor& x = *call.inputs[kX];
  const void* weight = call.inputs[kWeight]->data;
  const Counts most(context.sequences, weight);
  if (most.items == 0) return added;
  const int64_t num_rows = mote::num_rows(x), width = row_length(x);
  MOTE_REQUIRE(num_rows == most.tokens || (context.sequences.size() == 1 && num_rows < most.tokens),
               Code::kUnsupportedOp, "an adapter changes a weight whose input has %lld rows for %lld tokens",
               static_cast<long long>(num_rows), static_cast<long long>(most.tokens));
  Scratch scratch(context.adapter_memory);
  Items items{weight, scratch, scratch.take<AdapterItem>(most.items), scratch.take<AdapterBlock>(most.blocks)};
  int64_t first = 0;
  for (const SequenceStates& sequence : context.sequences) {
    const int64_t count = std::min(sequence.tokens, num_rows - first);
    items.add(sequence, {first, count});
    first += count;
  }
  const auto pitch = static_cast<int64_t>(array_bytes<float>(kAdapterBlock * width) / sizeof(float));
  float* buffers = scratch.take<float>(pitch * context.threads->num_threads());
  const RowKernels& rows = *call.get_params<LinearParams>().product.x.rows;
  context.threads->parallel_for(items.num_blocks, row_grain(kAdapterBlock * width),
                                [&](int64_t begin, int64_t end, int thread) {
                                  for (int64_t i = begin; i < end; ++i) {
                                    const AdapterBlock& block = items.blocks[i];
                                    const float* from = read_rows(x, norm, rows, block, buffers + thread * pitch);
                                    for (int64_t k = 0; k < block.num_items; ++k)
                                      multiply_by_a(items.items[block.first_item + k], block, from);
                                  }
                                });
  added.items_ = items.items;
  added.num_items_ = items.num_items;
  added.has_gains_ = std::any_of(items.items, items.items + items.num_items,
                                 [](const AdapterItem& item) { return item.part->gains != nullptr; });
  return added;
}

void AddedProducts::add_items(int64_t first, int64_t count, int64_t row, int64_t width, float* y,
                              int64_t stride) const {
  if (has_gains_) scale_rows(first, count, row, width, y, stride);
  for (int64_t i = 0; i < num_items_; ++i) {
    const AdapterItem& item = items_[i];
    const LowRank& part = *item.part;
    const Overlap tokens = Overlap::of(first, count, item.first, item.count);
    const Overlap rows = Overlap::of(row, width, part.first_row, part.rows);
    if (tokens.size() == 0 || rows.size() == 0) continue;
    const auto& products = *static_cast<const LowRankProducts*>(part.up->functions);
    products.add(part.b + (rows.begin - part.first_row) * dtype_bytes(part.dtype), part.dtype, part.rows, part.rank,
                 item.inner + (tokens.begin - item.first) * part.rank, tokens.size(), rows.size(),
                 y + (tokens.begin - first) * stride + (rows.begin - row), stride);
  }
}

// y *= 1 + the sum of weight * gain over the adapters of the row's sequence.
void AddedProducts::scale_rows(int64_t first, int64_t count, int64_t row, int64_t width, float* y,
                               int64_t stride) const {
  for (int64_t begin = 0, end = 0; begin < num_items_; begin = end) {
    float factors[kMostColumns];
    std::fill(factors, factors + width, 1.0f);
    for (end = begin; end < num_items_ && items_[end].first == items_[begin].first; ++end) {
      const LowRank& part = *items_[end].part;
      const Overlap rows = Overlap::of(row, width, part.first_row, part.rows);
      for (int64_t n = rows.begin; part.gains != nullptr && n < rows.end; ++n)
        factors[n - row] += items_[end].weight * part.gains[n - part.first_row];
    }
    const Overlap tokens = Overlap::of(first, count, items_[begin].first, items_[begin].count);
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      float* to = y + (t - first) * stride;
      for (int64_t n = 0; n < width; ++n) to[n] *= factors[n];
    }
  }
}

}  // namespace mote
