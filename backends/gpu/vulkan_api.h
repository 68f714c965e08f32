// The functions of Vulkan that Mote calls, found in the loader when the first device is asked for: a program starts
// where there is none.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <functional>

#include "base/status.h"

namespace mote::gpu {

// clang-format off
#define MOTE_VULKAN_GLOBAL(X) \
  X(EnumerateInstanceVersion) X(CreateInstance)
#define MOTE_VULKAN_INSTANCE(X) \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties2) \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceMemoryProperties2) \
  X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceFeatures2) X(EnumerateDeviceExtensionProperties) \
  X(CreateDevice) X(GetDeviceProcAddr)
#define MOTE_VULKAN_DEVICE(X) \
  X(DestroyDevice) X(GetDeviceQueue) X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) \
  X(AllocateMemory) X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(CreateShaderModule) X(DestroyShaderModule) \
  X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) X(CreatePipelineLayout) X(DestroyPipelineLayout) \
  X(CreateComputePipelines) X(DestroyPipeline) X(CreateDescriptorPool) X(DestroyDescriptorPool) \
  X(AllocateDescriptorSets) X(UpdateDescriptorSets) X(CreateCommandPool) X(DestroyCommandPool) \
  X(AllocateCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdBindPipeline) X(CmdBindDescriptorSets) \
  X(CmdPushConstants) X(CmdDispatch) X(CmdDispatchBase) X(CmdPipelineBarrier) X(CmdCopyBuffer) X(QueueSubmit) \
  X(CreateFence) X(DestroyFence) X(WaitForFences) X(CreateQueryPool) X(DestroyQueryPool) X(CmdResetQueryPool) \
  X(CmdWriteTimestamp) X(GetQueryPoolResults) X(CreatePipelineCache) X(DestroyPipelineCache) X(GetPipelineCacheData)
// Of extensions: nullptr where the device has not got them.
#define MOTE_VULKAN_OPTIONAL(X) \
  X(GetMemoryHostPointerPropertiesEXT)
// clang-format on

struct VulkanApi {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define MOTE_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  MOTE_VULKAN_GLOBAL(MOTE_VULKAN_MEMBER)
  MOTE_VULKAN_INSTANCE(MOTE_VULKAN_MEMBER)
  MOTE_VULKAN_DEVICE(MOTE_VULKAN_MEMBER)
  MOTE_VULKAN_OPTIONAL(MOTE_VULKAN_MEMBER)
#undef MOTE_VULKAN_MEMBER

  // The global functions. Errors: kUnsupportedBackend naming the libraries that were looked for.
  static Result<VulkanApi> open();
  Status find_instance_functions(VkInstance instance);
  Status find_device_functions(VkDevice device);
};

// For tests: from now on `replace` gets each table when functions of it were found, and may put others in their place.
void replace_functions(std::function<void(VulkanApi&)> replace);

// A struct of Vulkan with its sType, all else zero.
template <typename T> T of_type(VkStructureType type) {
  T made{};
  made.sType = type;
  return made;
}

// kOutOfMemory where the device or the host has none, else kInternal; the text names the call and what it returned.
Status vulkan_status(VkResult result, const char* call);

#define MOTE_VULKAN(expression) MOTE_RETURN_IF_ERROR(::mote::gpu::vulkan_status((expression), #expression))

}  // namespace mote::gpu
