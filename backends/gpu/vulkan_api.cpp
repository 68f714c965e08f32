#include "backends/gpu/vulkan_api.h"

#include <string>

#include "base/shared_library.h"

namespace mote::gpu {
namespace {

#if defined(_WIN32)
constexpr const char* kLibraries[] = {"vulkan-1.dll"};
#elif defined(__APPLE__)
constexpr const char* kLibraries[] = {"libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"};
#else
constexpr const char* kLibraries[] = {"libvulkan.so.1", "libvulkan.so"};
#endif

const char* result_name(VkResult result) {
  switch (result) {
    case VK_NOT_READY: return "VK_NOT_READY";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    default: return nullptr;
  }
}

std::function<void(VulkanApi&)>& replacement() {
  static std::function<void(VulkanApi&)> replace;
  return replace;
}

void replace_in(VulkanApi& api) {
  if (replacement()) replacement()(api);
}

Status all_found(const char* missing) {
  MOTE_REQUIRE(missing == nullptr, Code::kUnsupportedBackend, "the GPU's driver has no %s", missing);
  return {};
}

}  // namespace

Status vulkan_status(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return {};
  const std::string text(call);
  const std::string name = text.substr(0, text.find('('));
  const bool is_memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  const char* known = result_name(result);
  const std::string what = known != nullptr ? known : "VkResult " + std::to_string(static_cast<int>(result));
  return {is_memory ? Code::kOutOfMemory : Code::kInternal, "the GPU's driver returned " + what + " from " + name};
}

void replace_functions(std::function<void(VulkanApi&)> replace) { replacement() = std::move(replace); }

Result<VulkanApi> VulkanApi::open() {
  const Result<SharedLibrary> library = SharedLibrary::open_first(kLibraries);
  MOTE_REQUIRE(library.ok(), Code::kUnsupportedBackend,
               "Vulkan's loader was not found (%s): install the driver of a GPU", library.status().message().c_str());
  VulkanApi api;
  api.GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(library->find("vkGetInstanceProcAddr"));
  MOTE_REQUIRE(api.GetInstanceProcAddr != nullptr, Code::kUnsupportedBackend,
               "Vulkan's loader has no vkGetInstanceProcAddr: install another one");
#define MOTE_VULKAN_FIND_GLOBAL(name) \
  api.name = reinterpret_cast<PFN_vk##name>(api.GetInstanceProcAddr(VK_NULL_HANDLE, "vk" #name));
  MOTE_VULKAN_GLOBAL(MOTE_VULKAN_FIND_GLOBAL)
  MOTE_REQUIRE(api.EnumerateInstanceVersion != nullptr && api.CreateInstance != nullptr, Code::kUnsupportedBackend,
               "Vulkan's loader is of version 1.0: Mote needs 1.1");
  replace_in(api);
  return api;
}

// Of the functions that `find` gives by their names, the last that it does not give is named.
#define MOTE_VULKAN_FIND(name)                             \
  name = reinterpret_cast<PFN_vk##name>(find("vk" #name)); \
  if (name == nullptr) missing = "vk" #name;

Status VulkanApi::find_instance_functions(VkInstance instance) {
  const auto find = [&](const char* name) { return GetInstanceProcAddr(instance, name); };
  const char* missing = nullptr;
  MOTE_VULKAN_INSTANCE(MOTE_VULKAN_FIND)
  replace_in(*this);
  return all_found(missing);
}

Status VulkanApi::find_device_functions(VkDevice device) {
  const auto find = [&](const char* name) { return GetDeviceProcAddr(device, name); };
  const char* missing = nullptr;
  MOTE_VULKAN_DEVICE(MOTE_VULKAN_FIND)
  const Status status = all_found(missing);
  MOTE_VULKAN_OPTIONAL(MOTE_VULKAN_FIND)
  replace_in(*this);
  return status;
}

}  // namespace mote::gpu
