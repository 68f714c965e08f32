#include "runner/program/cpu_count.h"

#include <algorithm>
#include <thread>

namespace mote {

int available_cores() {
  int cores = physical_cores();
  if (cores <= 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  if (const int quota = quota_cores(); quota > 0) cores = std::min(cores, quota);
  return std::clamp(cores, 1, 256);
}

}  // namespace mote
