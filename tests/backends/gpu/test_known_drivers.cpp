#include <gtest/gtest.h>

#include "backends/gpu/known_drivers.h"

namespace mote::gpu::test {
namespace {

TEST(KnownDrivers, areTrustedLess) {
  for (const VkDriverId driver : {VK_DRIVER_ID_IMAGINATION_PROPRIETARY, VK_DRIVER_ID_ARM_PROPRIETARY}) {
    const DriverFault fault = known_fault(driver, 1);
    EXPECT_TRUE(fault.set_aside.has(GpuFeature::kSubgroups));
    EXPECT_FALSE(fault.set_aside.has(GpuFeature::kDot));
    EXPECT_NE(fault.why, nullptr);
  }
}

TEST(KnownDrivers, leaveOthersAsTheyAre) {
  for (const VkDriverId driver : {VK_DRIVER_ID_MESA_LLVMPIPE, VK_DRIVER_ID_MESA_RADV, VK_DRIVER_ID_MAX_ENUM}) {
    EXPECT_EQ(known_fault(driver, 1).set_aside, GpuFeatures());
    EXPECT_EQ(known_fault(driver, 1).why, nullptr);
  }
}

}  // namespace
}  // namespace mote::gpu::test
