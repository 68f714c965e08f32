#include "kernels/ops/attention/cache.h"

#include "kernels/support/contract.h"

namespace mote {

Status check_cache(const KvCache& cache, const StateShape& shape) {
  const bool matches = cache.pages != nullptr && cache.positions != nullptr && cache.num_heads == shape.num_heads &&
                       cache.head_dim == shape.head_dim && cache.value_head_dim == shape.value_head_dim &&
                       cache.window == shape.window && cache.stride == shape.stride && cache.num_sinks >= 0 &&
                       cache.capacity > cache.num_sinks;
  MOTE_REQUIRE(matches, Code::kInternal, "the session's cache has another shape than the program's state");
  return Status();
}

Status check_positions(const KvCache& cache, const Tensor& positions, int64_t first, int64_t tokens) {
  for (int64_t t = first; t < first + tokens; ++t) {
    const int64_t position = position_at(positions, t);
    MOTE_REQUIRE(position >= 0 && position < kMaxTensorElements, Code::kInvalidArgument,
                 "positions[%lld] = %lld: must be 0..2^40", static_cast<long long>(t),
                 static_cast<long long>(position));
    MOTE_REQUIRE(cache.window != 0 || position < cache.capacity, Code::kContextFull,
                 "position %lld does not fit: the context holds %lld", static_cast<long long>(position),
                 static_cast<long long>(cache.capacity));
    MOTE_REQUIRE(cache.pages[cache.slot_of(position) / kKvPageSlots] != nullptr, Code::kInternal,
                 "the session's cache has no page for position %lld", static_cast<long long>(position));
  }
  const int64_t most = cache.capacity - cache.num_sinks - cache.window + 1;
  MOTE_REQUIRE(cache.window == 0 || tokens <= most, Code::kInvalidArgument,
               "%lld tokens in one call: must be at most %lld, which the sliding window's cache holds",
               static_cast<long long>(tokens), static_cast<long long>(most));
  return Status();
}

}  // namespace mote
