#include "base/atomic_wait.h"

#include "base/windows.h"

namespace mote {

void wait_on(const std::atomic<uint32_t>& number, uint32_t old) {
  ::WaitOnAddress(const_cast<std::atomic<uint32_t>*>(&number), &old, sizeof(old), INFINITE);
}

void wake_one(std::atomic<uint32_t>& number) { ::WakeByAddressSingle(&number); }

}  // namespace mote
