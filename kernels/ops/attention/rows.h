// Keys and values of a cache as plain rows, for those who keep them in another form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/state.h"
#include "kernels/thread_pool.h"

namespace mote {

// The rows of the first positions, float32 or float16.
struct CacheRows {
  DType dtype = DType::kFloat32;
  std::span<std::byte> keys{};    // [positions, num_heads, head_dim]
  std::span<std::byte> values{};  // [positions, num_heads, value_head_dim]
};

// Makes the slots of `cache` hold the rows of the first `positions`, as far as a window keeps them. Their pages are
// there. Errors: those of select_kernel.
Status store_rows(const KvCache& cache, int64_t positions, const CacheRows& rows, ThreadPool& threads);

// Whether load_rows can read the first `positions`: all of them are there, and not rotated as those of int4 are.
bool can_load_rows(const KvCache& cache, int64_t positions);
void load_rows(const KvCache& cache, int64_t positions, const CacheRows& rows, ThreadPool& threads);

}  // namespace mote
