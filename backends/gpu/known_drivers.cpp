#include "backends/gpu/known_drivers.h"

#include <algorithm>
#include <iterator>

namespace mote::gpu {
namespace {

struct KnownDriver {
  VkDriverId driver;
  uint32_t fixed_in;  // the first version that is right; UINT32_MAX: none is known
  DriverFault fault;
};

// A feature that is set aside costs speed alone, so a report that several others confirm is enough.
const KnownDriver kKnownDrivers[] = {
    // llama.cpp issue 28341: on a Pixel with a PowerVR DXT its shaders that reduce within subgroups alone do not
    // compile
    {VK_DRIVER_ID_IMAGINATION_PROPRIETARY,
     UINT32_MAX,
     {GpuFeature::kSubgroups, "its compiler refuses shaders that reduce over subgroups"}},
    // eliza issue 9715: on Mali the same attention over subgroups gives other sums from run to run
    {VK_DRIVER_ID_ARM_PROPRIETARY,
     UINT32_MAX,
     {GpuFeature::kSubgroups, "its sums over subgroups differ from run to run"}},
};

}  // namespace

DriverFault known_fault(VkDriverId driver, uint32_t version) {
  const auto known = std::ranges::find_if(
      kKnownDrivers, [&](const KnownDriver& each) { return each.driver == driver && version < each.fixed_in; });
  return known == std::end(kKnownDrivers) ? DriverFault{} : known->fault;
}

}  // namespace mote::gpu
