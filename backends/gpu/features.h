// What a device offers beside Vulkan 1.1's core, and how users and tests take some of it away.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/vulkan_api.h"

namespace mote::gpu {

enum class GpuFeature : uint32_t {
  kSubgroups = 1u << 0,  // sums and shuffles over the invocations of a subgroup, in compute shaders
  kDot = 1u << 1,        // products of four 8-bit integers
  kFloat16 = 1u << 2,    // arithmetic
  kInt8 = 1u << 3,       // arithmetic
  kStorage16 = 1u << 4,  // 16-bit elements of storage buffers
  kStorage8 = 1u << 5,   // 8-bit elements of storage buffers
  kStaging = 1u << 6,    // what a workgroup reads goes through shared memory, which every device has
};

class GpuFeatures {
 public:
  constexpr GpuFeatures() = default;
  constexpr GpuFeatures(GpuFeature feature) : bits_(static_cast<uint32_t>(feature)) {}

  constexpr bool has(GpuFeature feature) const { return (bits_ & static_cast<uint32_t>(feature)) != 0; }
  constexpr uint32_t bits() const { return bits_; }
  constexpr GpuFeatures operator|(GpuFeatures other) const { return GpuFeatures(bits_ | other.bits_); }
  constexpr GpuFeatures operator&(GpuFeatures other) const { return GpuFeatures(bits_ & other.bits_); }
  constexpr GpuFeatures without(GpuFeatures other) const { return GpuFeatures(bits_ & ~other.bits_); }
  bool operator==(const GpuFeatures&) const = default;
  static constexpr GpuFeatures all() { return GpuFeatures((1u << 7) - 1); }
  // Those that are features.
  static constexpr GpuFeatures of_bits(uint32_t bits) { return all() & GpuFeatures(bits); }

 private:
  explicit constexpr GpuFeatures(uint32_t bits) : bits_(bits) {}

  uint32_t bits_ = 0;
};

// "subgroups+dot", or "none".
std::string to_string(GpuFeatures features);
// A list of names between commas or pluses; "none" names none. Errors: kInvalidArgument naming the variable and what
// would be accepted.
Result<GpuFeatures> parse_gpu_features(std::string_view text, const char* variable = "MOTE_GPU_FEATURES",
                                       GpuFeatures accepted = GpuFeatures::all());
// What MOTE_GPU_FEATURES leaves of all features. Errors: as parse_gpu_features.
Result<GpuFeatures> allowed_gpu_features();

struct GpuLimits : VkPhysicalDeviceLimits {
  // Of a submission, as far as it can be told before: systems end what keeps a GPU from the screen for longer.
  uint32_t submission_us = 50'000;
};

// Takes away what MOTE_GPU_LIMITS says: a list of NAME=NUMBER between commas. Numbers above the device's own are
// ignored. Errors: kInvalidArgument naming what would be accepted.
Status apply_gpu_limits(std::string_view text, GpuLimits* limits);
Status apply_gpu_limits(GpuLimits* limits);

// The features of a device, and what vkCreateDevice takes to enable them.
class DeviceFeatures {
 public:
  // Errors: as the driver says.
  static Result<DeviceFeatures> find(const VulkanApi& api, VkPhysicalDevice device, GpuFeatures allowed);

  GpuFeatures features() const { return features_; }
  uint32_t subgroup_size() const { return subgroup_size_; }
  // Points `info` into this object, which must outlive the call and must not move before it.
  void enable(VkDeviceCreateInfo* info);

 private:
  GpuFeatures features_{};
  uint32_t subgroup_size_ = 1;
  std::vector<const char*> extensions_;
  VkPhysicalDevice16BitStorageFeatures storage16_{};
  VkPhysicalDevice8BitStorageFeatures storage8_{};
  VkPhysicalDeviceShaderFloat16Int8Features arithmetic_{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot_{};
};

}  // namespace mote::gpu
