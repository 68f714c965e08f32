// The work of products with chosen experts: strips of an expert's rows for some of its choices.
#pragma once

#include <algorithm>

#include "kernels/ops/moe/experts.h"
#include "kernels/ops/moe/routing.h"
#include "kernels/support/rows.h"

namespace mote {

inline constexpr int64_t kBlocksAtOnce = kTokensAtOnce / kTokenBlock;
inline constexpr int64_t kExpertWide = kMaxStreams * kTileRows;

// One thread's results of a strip of rows, and the kernels' own memory.
inline size_t expert_thread_bytes(size_t kernel_bytes) {
  return array_bytes<float>(kTokensAtOnce * kExpertWide) + array_bytes<std::byte>(static_cast<int64_t>(kernel_bytes));
}

// Working memory of each thread; stride: expert_thread_bytes.
struct ExpertBuffers {
  std::byte* bytes = nullptr;
  int64_t stride = 0;

  float* results(int thread) const { return reinterpret_cast<float*>(bytes + thread * stride); }
  std::byte* scratch(int thread) const {
    return bytes + thread * stride + array_bytes<float>(kTokensAtOnce * kExpertWide);
  }
};

// Some sorted choices of one expert.
struct ExpertPart {
  int64_t expert;
  int64_t first;  // choice
  int64_t count;  // at most kTokensAtOnce
  int64_t first_block;
  int64_t num_blocks;
  int thread;
};

// body(part, strip) for each chosen expert, each strip of its output rows, and its choices in parts.
template <typename Body>
void for_each_expert_strip(const Routing& routing, int64_t outputs, int64_t strip_rows, int64_t work,
                           ThreadPool& threads, const Body& body) {
  const int64_t strips = (outputs + strip_rows - 1) / strip_rows;
  threads.parallel_for(routing.num_active * strips, row_grain(work), [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t expert = routing.active[index / strips], last = routing.first_block[expert + 1];
      for (int64_t first = routing.first_block[expert]; first < last; first += kBlocksAtOnce) {
        const int64_t end_block = std::min(first + kBlocksAtOnce, last);
        const int64_t choice = routing.blocks[first];
        body(ExpertPart{expert, choice, routing.blocks[end_block] - choice, first, end_block - first, thread},
             index % strips);
      }
    }
  });
}

}  // namespace mote
