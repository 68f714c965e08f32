// Drivers that are known to be wrong somewhere, found by others before they could be found here.
#pragma once

#include <cstdint>

#include "backends/gpu/features.h"

namespace mote::gpu {

struct DriverFault {
  GpuFeatures set_aside{};    // what shaders had better not use with it
  const char* why = nullptr;  // nullptr: nothing is known against it
};

// version: the driver's own number of its version
DriverFault known_fault(VkDriverId driver, uint32_t version);

}  // namespace mote::gpu
