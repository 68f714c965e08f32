#include "runner/capi/occupancy.h"

namespace mote::capi {
namespace {

thread_local const char this_thread = 0;

}  // namespace

const char Occupancy::kBatch = 0;

Status Occupancy::enter() {
  const void* holder = nullptr;
  if (holder_.compare_exchange_strong(holder, &this_thread, std::memory_order_acquire, std::memory_order_relaxed))
    return {};
  MOTE_REQUIRE(holder != &kBatch, Code::kInvalidState,
               "the %s continues in a batch: it has no other calls until the last piece there", name_);
  MOTE_REQUIRE(holder != &this_thread, Code::kInvalidState,
               "the %s is in a call of this thread already: wait for its end", name_);
  return {Code::kInvalidState, format("the %s is in a call of another thread: it takes one call at a time", name_)};
}

}  // namespace mote::capi
