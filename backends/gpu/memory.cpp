#include <algorithm>
#include <cstring>
#include <string_view>

#include "backends/gpu/context.h"

namespace mote::gpu {
namespace {

// Memory that the CPU sees without being told what changed.
constexpr VkMemoryPropertyFlags kShared = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkExternalMemoryHandleTypeFlagBits kHostPages = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

std::string megabytes(uint64_t bytes) {
  return std::to_string(bytes / 1'000'000) + "." + std::to_string(bytes / 100'000 % 10) + " MB";
}

}  // namespace

Status GpuBuffer::create(uint64_t bytes, const void* next) {
  bytes_ = bytes;
  auto info = of_type<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.pNext = next;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  return vulkan_status(context_->api().CreateBuffer(context_->device(), &info, nullptr, &buffer_), "vkCreateBuffer");
}

Status GpuBuffer::allocate(uint64_t bytes, int type, const void* next) {
  const VulkanApi& api = context_->api();
  auto allocation = of_type<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocation.pNext = next;
  allocation.allocationSize = bytes;
  allocation.memoryTypeIndex = static_cast<uint32_t>(type);
  MOTE_VULKAN(api.AllocateMemory(context_->device(), &allocation, nullptr, &memory_));
  return vulkan_status(api.BindBufferMemory(context_->device(), buffer_, memory_, 0), "vkBindBufferMemory");
}

Result<GpuBuffer> GpuBuffer::make(std::shared_ptr<const GpuContext> context, uint64_t bytes, Place place) {
  GpuBuffer made;
  made.context_ = std::move(context);
  const GpuContext& gpu = *made.context_;
  if (place == Place::device) MOTE_RETURN_IF_ERROR(gpu.require_free(bytes, "a buffer"));
  MOTE_RETURN_IF_ERROR(made.create(std::max<uint64_t>(bytes, 16), nullptr));
  VkMemoryRequirements needs{};
  gpu.api().GetBufferMemoryRequirements(gpu.device(), made.buffer_, &needs);
  const int type = gpu.memory_type(needs.memoryTypeBits, place);
  MOTE_REQUIRE(type >= 0, Code::kUnsupportedBackend, "the GPU has no memory for buffers that %s",
               place == Place::host ? "the CPU reads" : "it reads");
  MOTE_RETURN_IF_ERROR(made.allocate(needs.size, type, nullptr));
  if (place == Place::device) {
    made.counted_bytes_ = needs.size;
    gpu.allocated_bytes_ += needs.size;
  }
  if (gpu.is_host_visible(type)) {
    void* data = nullptr;
    MOTE_VULKAN(gpu.api().MapMemory(gpu.device(), made.memory_, 0, VK_WHOLE_SIZE, 0, &data));
    made.data_ = static_cast<std::byte*>(data);
  }
  return made;
}

Result<GpuBuffer> GpuBuffer::import(std::shared_ptr<const GpuContext> context, std::span<const std::byte> pages) {
  GpuBuffer made;
  made.context_ = std::move(context);
  const GpuContext& gpu = *made.context_;
  const auto refused = [&](const char* why) { return Status(Code::kUnsupportedBackend, gpu.device_name() + why); };
  if (gpu.imports_at() == 0 || gpu.api().GetMemoryHostPointerPropertiesEXT == nullptr)
    return refused(" takes over no memory of the CPU");
  auto* const first = const_cast<std::byte*>(pages.data());  // shaders only read it
  auto found = of_type<VkMemoryHostPointerPropertiesEXT>(VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
  if (gpu.api().GetMemoryHostPointerPropertiesEXT(gpu.device(), kHostPages, first, &found) != VK_SUCCESS)
    return refused(" does not take over these pages");
  auto external = of_type<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = kHostPages;
  MOTE_RETURN_IF_ERROR(made.create(pages.size(), &external));
  VkMemoryRequirements needs{};
  gpu.api().GetBufferMemoryRequirements(gpu.device(), made.buffer_, &needs);
  const int type = gpu.memory_type(needs.memoryTypeBits & found.memoryTypeBits, Place::device);
  if (type < 0 || needs.size > pages.size()) return refused(" has no type of memory for pages of the CPU");
  auto host = of_type<VkImportMemoryHostPointerInfoEXT>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  host.handleType = kHostPages;
  host.pHostPointer = first;
  MOTE_RETURN_IF_ERROR(made.allocate(pages.size(), type, &host));
  return made;
}

GpuBuffer::~GpuBuffer() {
  if (context_ == nullptr) return;
  context_->allocated_bytes_ -= counted_bytes_;
  if (!context_->may_destroy()) return;
  const VulkanApi& api = context_->api();
  if (buffer_ != VK_NULL_HANDLE) api.DestroyBuffer(context_->device(), buffer_, nullptr);
  if (memory_ != VK_NULL_HANDLE) api.FreeMemory(context_->device(), memory_, nullptr);
}

void GpuBuffer::swap(GpuBuffer& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(buffer_, other.buffer_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  std::swap(counted_bytes_, other.counted_bytes_);
}

int GpuContext::memory_type(uint32_t allowed, Place place) const {
  constexpr VkMemoryPropertyFlags kOwn = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags wishes[2][3] = {{kOwn | kShared, kOwn, 0},
                                              {kShared | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kShared, kShared}};
  VkDeviceSize most = 0;  // of the device's own heaps
  for (uint32_t i = 0; i < memory_.memoryHeapCount; ++i) {
    if ((memory_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      most = std::max(most, memory_.memoryHeaps[i].size);
  }
  for (const VkMemoryPropertyFlags wish : wishes[place == Place::host ? 1 : 0]) {
    for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
      const VkMemoryType& type = memory_.memoryTypes[i];
      // A window of some megabytes through which the CPU sees a card's memory has no room for a model.
      const bool is_window = wish == (kOwn | kShared) && memory_.memoryHeaps[type.heapIndex].size < most;
      if ((allowed >> i & 1) != 0 && (type.propertyFlags & wish) == wish && !is_window) return static_cast<int>(i);
    }
  }
  return -1;
}

bool GpuContext::is_host_visible(int memory_type) const {
  return (memory_.memoryTypes[memory_type].propertyFlags & kShared) == kShared;
}

uint64_t GpuContext::free_bytes() const {
  const int type = memory_type(~0u, Place::device);
  if (type < 0) return 0;
  const uint32_t heap = memory_.memoryTypes[type].heapIndex;
  const auto less = [](uint64_t all, uint64_t used) { return all > used ? all - used : 0; };
  if (!tells_budget_) return less(memory_.memoryHeaps[heap].size, allocated_bytes_);
  auto budget = of_type<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  auto properties = of_type<VkPhysicalDeviceMemoryProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  properties.pNext = &budget;
  api_.GetPhysicalDeviceMemoryProperties2(physical_, &properties);
  return less(budget.heapBudget[heap], budget.heapUsage[heap]);
}

Status GpuContext::require_free(uint64_t bytes, const std::string& what) const {
  const uint64_t free = free_bytes();
  MOTE_REQUIRE(bytes <= free, Code::kOutOfMemory,
               "%s takes %s of the GPU's memory, of which %s has %s free: free some, or take the backend cpu",
               what.c_str(), megabytes(bytes).c_str(), device_name_.c_str(), megabytes(free).c_str());
  return {};
}

Status GpuContext::add_extensions(std::vector<const char*>* names) {
  uint32_t count = 0;
  MOTE_VULKAN(api_.EnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr));
  std::vector<VkExtensionProperties> found(count);
  if (count > 0) MOTE_VULKAN(api_.EnumerateDeviceExtensionProperties(physical_, nullptr, &count, found.data()));
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(found, [&](const auto& each) { return name == each.extensionName; });
  };
  tells_budget_ = has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (tells_budget_) names->push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  tells_of_pipelines_ = has(VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME);
  if (tells_of_pipelines_) names->push_back(VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME);
  if ((is_cpu_ || is_integrated_) && has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
    names->push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    auto host = of_type<VkPhysicalDeviceExternalMemoryHostPropertiesEXT>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
    auto properties = of_type<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
    properties.pNext = &host;
    api_.GetPhysicalDeviceProperties2(physical_, &properties);
    imports_at_ = host.minImportedHostPointerAlignment;
  }
  return {};
}

}  // namespace mote::gpu
