#include "backends/gpu/features.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <set>

namespace mote::gpu {
namespace {

struct FeatureName {
  std::string_view name;
  GpuFeature feature;
};
constexpr FeatureName kFeatureNames[] = {
    {"subgroups", GpuFeature::kSubgroups}, {"dot", GpuFeature::kDot},
    {"float16", GpuFeature::kFloat16},     {"int8", GpuFeature::kInt8},
    {"storage16", GpuFeature::kStorage16}, {"storage8", GpuFeature::kStorage8},
    {"staging", GpuFeature::kStaging},
};

// What MOTE_GPU_LIMITS names.
struct LimitName {
  std::string_view name;
  uint32_t GpuLimits::* limit;
};
constexpr LimitName kLimitNames[] = {
    {"shared_memory", &VkPhysicalDeviceLimits::maxComputeSharedMemorySize},
    {"invocations", &VkPhysicalDeviceLimits::maxComputeWorkGroupInvocations},
    {"storage_range", &VkPhysicalDeviceLimits::maxStorageBufferRange},
    {"storage_buffers", &VkPhysicalDeviceLimits::maxPerStageDescriptorStorageBuffers},
    {"submission_us", &GpuLimits::submission_us},
};

template <typename Names> std::string listed(const Names& names) {
  std::string text;
  for (const auto& entry : names) text += (text.empty() ? "" : ", ") + std::string(entry.name);
  return text;
}

std::string listed(GpuFeatures features) {
  std::string text;
  for (const FeatureName& entry : kFeatureNames) {
    if (features.has(entry.feature)) text += (text.empty() ? "" : ", ") + std::string(entry.name);
  }
  return text;
}

// What comes before the next comma or plus, which is taken away with it.
std::string_view next_of(std::string_view* text) {
  const std::string_view found = text->substr(0, text->find_first_of(",+"));
  text->remove_prefix(std::min(text->size(), found.size() + 1));
  return found;
}

Result<std::set<std::string>> extensions_of(const VulkanApi& api, VkPhysicalDevice device) {
  uint32_t count = 0;
  MOTE_VULKAN(api.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr));
  std::vector<VkExtensionProperties> found(count);
  MOTE_VULKAN(api.EnumerateDeviceExtensionProperties(device, nullptr, &count, found.data()));
  std::set<std::string> names;
  for (const VkExtensionProperties& each : found) names.insert(each.extensionName);
  return names;
}

}  // namespace

std::string to_string(GpuFeatures features) {
  std::string text;
  for (const FeatureName& entry : kFeatureNames) {
    if (features.has(entry.feature)) text += (text.empty() ? "" : "+") + std::string(entry.name);
  }
  return text.empty() ? "none" : text;
}

Result<GpuFeatures> parse_gpu_features(std::string_view text, const char* variable, GpuFeatures accepted) {
  GpuFeatures features;
  while (!text.empty()) {
    const std::string_view name = next_of(&text);
    if (name == "none") continue;
    const auto known = std::ranges::find(kFeatureNames, name, &FeatureName::name);
    const bool is_accepted = known != std::end(kFeatureNames) && accepted.has(known->feature);
    MOTE_REQUIRE(is_accepted, Code::kInvalidArgument, "%s holds '%.*s': must be a list of none, %s separated by commas",
                 variable, static_cast<int>(name.size()), name.data(), listed(accepted).c_str());
    features = features | known->feature;
  }
  return features;
}

Result<GpuFeatures> allowed_gpu_features() {
  const char* text = std::getenv("MOTE_GPU_FEATURES");
  return text == nullptr ? Result<GpuFeatures>(GpuFeatures::all()) : parse_gpu_features(text);
}

Status apply_gpu_limits(std::string_view text, GpuLimits* limits) {
  while (!text.empty()) {
    const std::string_view entry = next_of(&text);
    const size_t equals = std::min(entry.find('='), entry.size());
    const auto known = std::ranges::find(kLimitNames, entry.substr(0, equals), &LimitName::name);
    uint32_t number = 0;
    const std::string_view digits = entry.substr(std::min(equals + 1, entry.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool is_number = !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
    MOTE_REQUIRE(known != std::end(kLimitNames) && is_number, Code::kInvalidArgument,
                 "MOTE_GPU_LIMITS holds '%.*s': must be a list of NAME=NUMBER separated by commas, names being %s",
                 static_cast<int>(entry.size()), entry.data(), listed(kLimitNames).c_str());
    limits->*known->limit = std::min(limits->*known->limit, number);
  }
  // A dimension of a workgroup has no more invocations than the whole.
  for (uint32_t& size : limits->maxComputeWorkGroupSize) size = std::min(size, limits->maxComputeWorkGroupInvocations);
  return {};
}

Status apply_gpu_limits(GpuLimits* limits) {
  const char* text = std::getenv("MOTE_GPU_LIMITS");
  return text == nullptr ? Status() : apply_gpu_limits(text, limits);
}

Result<DeviceFeatures> DeviceFeatures::find(const VulkanApi& api, VkPhysicalDevice device, GpuFeatures allowed) {
  DeviceFeatures found;
  auto subgroups = of_type<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  auto properties = of_type<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &subgroups;
  api.GetPhysicalDeviceProperties2(device, &properties);
  found.subgroup_size_ = std::max(subgroups.subgroupSize, 1u);

  MOTE_ASSIGN(const std::set<std::string> extensions, extensions_of(api, device));
  auto storage16 =
      of_type<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  auto storage8 = of_type<VkPhysicalDevice8BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
  auto arithmetic = of_type<VkPhysicalDeviceShaderFloat16Int8Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  auto dot = of_type<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  auto asked = of_type<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  const auto ask = [&](auto* part, const char* extension) {
    if (extension != nullptr && !extensions.contains(extension)) return;
    part->pNext = asked.pNext;
    asked.pNext = part;
  };
  ask(&storage16, nullptr);
  ask(&storage8, VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
  ask(&arithmetic, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  ask(&dot, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  api.GetPhysicalDeviceFeatures2(device, &asked);

  const auto has = [&](GpuFeature feature, bool is_there) {
    const bool is_taken = is_there && allowed.has(feature);
    if (is_taken) found.features_ = found.features_ | feature;
    return static_cast<VkBool32>(is_taken);
  };
  constexpr VkSubgroupFeatureFlags kNeeded =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  has(GpuFeature::kSubgroups, (subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                                  (subgroups.supportedOperations & kNeeded) == kNeeded);
  has(GpuFeature::kStaging, true);
  found.dot_.shaderIntegerDotProduct = has(GpuFeature::kDot, dot.shaderIntegerDotProduct != VK_FALSE);
  found.arithmetic_.shaderFloat16 = has(GpuFeature::kFloat16, arithmetic.shaderFloat16 != VK_FALSE);
  found.arithmetic_.shaderInt8 = has(GpuFeature::kInt8, arithmetic.shaderInt8 != VK_FALSE);
  found.storage16_.storageBuffer16BitAccess =
      has(GpuFeature::kStorage16, storage16.storageBuffer16BitAccess != VK_FALSE);
  found.storage8_.storageBuffer8BitAccess = has(GpuFeature::kStorage8, storage8.storageBuffer8BitAccess != VK_FALSE);
  return found;
}

void DeviceFeatures::enable(VkDeviceCreateInfo* info) {
  extensions_.clear();
  const auto add = [&](auto* part, VkStructureType type, bool is_used, const char* extension) {
    if (!is_used) return;
    part->sType = type;
    part->pNext = const_cast<void*>(info->pNext);
    info->pNext = part;
    if (extension != nullptr) extensions_.push_back(extension);
  };
  add(&storage16_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, features_.has(GpuFeature::kStorage16),
      nullptr);
  add(&storage8_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, features_.has(GpuFeature::kStorage8),
      VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
  add(&arithmetic_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
      features_.has(GpuFeature::kFloat16) || features_.has(GpuFeature::kInt8),
      VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  add(&dot_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, features_.has(GpuFeature::kDot),
      VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  info->enabledExtensionCount = static_cast<uint32_t>(extensions_.size());
  info->ppEnabledExtensionNames = extensions_.data();
}

}  // namespace mote::gpu
