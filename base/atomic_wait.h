// Waiting for a number to change, as std::atomic does it, but for Windows: GCC 12's wait there may sleep through a
// notification.
#pragma once

#include <atomic>
#include <cstdint>

namespace mote {

// Returns when the number is no longer `old` and somebody said so; it may return earlier.
void wait_on(const std::atomic<uint32_t>& number, uint32_t old);
void wake_one(std::atomic<uint32_t>& number);

#if !defined(_WIN32)
inline void wait_on(const std::atomic<uint32_t>& number, uint32_t old) { number.wait(old); }
inline void wake_one(std::atomic<uint32_t>& number) { number.notify_one(); }
#endif

}  // namespace mote
