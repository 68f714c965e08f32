#include "backends/gpu/context.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/log.h"

namespace mote::gpu {
namespace {

// For one submission: a device that has not answered by then is taken for lost. What the CPU imitates is slow.
constexpr uint64_t kPatienceNs = 60'000'000'000, kPatienceWithCpuNs = 20 * kPatienceNs;
constexpr uint64_t kStagingBytes = uint64_t{16} << 20;

// Real GPUs first; what the CPU imitates last.
int rank_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    default: return 3;
  }
}

struct QueueFamily {
  uint32_t index = 0, timestamp_bits = 0;
};

std::optional<QueueFamily> compute_family(const VulkanApi& api, VkPhysicalDevice device) {
  uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 && families[i].queueCount > 0) {
      return QueueFamily{i, families[i].timestampValidBits};
    }
  }
  return std::nullopt;
}

void memory_barrier(const VulkanApi& api, VkCommandBuffer commands) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
                          VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT};
  api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0,
                         nullptr);
}

// Drivers tell of themselves from Vulkan 1.2 on.
VkDriverId driver_of(const VulkanApi& api, VkPhysicalDevice device, uint32_t version) {
  if (version < VK_API_VERSION_1_2) return VK_DRIVER_ID_MAX_ENUM;
  auto driver = of_type<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  auto properties = of_type<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &driver;
  api.GetPhysicalDeviceProperties2(device, &properties);
  return driver.driverID;
}

std::string identity_of(const VkPhysicalDeviceProperties& device) {
  std::string text = "Vulkan " + std::to_string(device.apiVersion);
  for (const uint32_t each : {device.vendorID, device.deviceID, device.driverVersion})
    text += " " + std::to_string(each);
  for (const uint8_t byte : device.pipelineCacheUUID) text += " " + std::to_string(byte);
  return text + " " + device.deviceName;
}

VkPipelineCacheHeaderVersionOne cache_header_of(const VkPhysicalDeviceProperties& device) {
  VkPipelineCacheHeaderVersionOne header{};
  header.headerSize = sizeof(header);
  header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  header.vendorID = device.vendorID;
  header.deviceID = device.deviceID;
  std::memcpy(header.pipelineCacheUUID, device.pipelineCacheUUID, sizeof(header.pipelineCacheUUID));
  return header;
}

}  // namespace

Result<std::shared_ptr<const GpuContext>> GpuContext::open() {
  static std::mutex mutex;
  static std::weak_ptr<const GpuContext> latest;
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<const GpuContext> context = latest.lock(); context != nullptr && !context->is_lost())
    return context;
  std::shared_ptr<GpuContext> context(new GpuContext());
  MOTE_RETURN_IF_ERROR(context->start());
  latest = context;
  return std::shared_ptr<const GpuContext>(std::move(context));
}

Status GpuContext::start() {
  MOTE_ASSIGN(api_, VulkanApi::open());
  uint32_t version = 0;
  MOTE_VULKAN(api_.EnumerateInstanceVersion(&version));
  MOTE_REQUIRE(version >= VK_API_VERSION_1_1, Code::kUnsupportedBackend,
               "Vulkan's loader is of version 1.0: Mote needs 1.1");
  auto application = of_type<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pEngineName = "mote";
  application.apiVersion = VK_API_VERSION_1_1;
  auto info = of_type<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  const VkResult made = api_.CreateInstance(&info, nullptr, &instance_);
  MOTE_REQUIRE(made == VK_SUCCESS, Code::kUnsupportedBackend, "%s: install the driver of a GPU",
               vulkan_status(made, "vkCreateInstance").message().c_str());
  MOTE_RETURN_IF_ERROR(api_.find_instance_functions(instance_));
  MOTE_RETURN_IF_ERROR(choose_device());
  return make_device();
}

Status GpuContext::choose_device() {
  uint32_t count = 0;
  MOTE_VULKAN(api_.EnumeratePhysicalDevices(instance_, &count, nullptr));
  std::vector<VkPhysicalDevice> devices(count);
  if (count > 0) MOTE_VULKAN(api_.EnumeratePhysicalDevices(instance_, &count, devices.data()));
  int best = 4;
  std::string passed_over;
  for (const VkPhysicalDevice device : devices) {
    auto properties = of_type<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
    api_.GetPhysicalDeviceProperties2(device, &properties);
    const VkPhysicalDeviceProperties& found = properties.properties;
    const std::optional<QueueFamily> family = compute_family(api_, device);
    if (found.apiVersion < VK_API_VERSION_1_1 || !family || rank_of(found.deviceType) >= best) {
      passed_over += std::string(passed_over.empty() ? "" : ", ") + found.deviceName;
      continue;
    }
    best = rank_of(found.deviceType);
    physical_ = device;
    queue_family_ = family->index;
    timestamp_bits_ = family->timestamp_bits;
    static_cast<VkPhysicalDeviceLimits&>(limits_) = found.limits;
    device_name_ = found.deviceName;
    fault_ = known_fault(driver_of(api_, device, found.apiVersion), found.driverVersion);
    identity_ = identity_of(found);
    cache_header_ = cache_header_of(found);
    is_cpu_ = found.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    is_integrated_ = found.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  }
  MOTE_REQUIRE(physical_ != VK_NULL_HANDLE, Code::kUnsupportedBackend,
               "Vulkan has no device with compute shaders of version 1.1%s%s: install the driver of a GPU",
               passed_over.empty() ? "" : ", but ", passed_over.c_str());
  return apply_gpu_limits(&limits_);
}

Status GpuContext::make_device() {
  MOTE_ASSIGN(const GpuFeatures allowed, allowed_gpu_features());
  MOTE_ASSIGN(DeviceFeatures found, DeviceFeatures::find(api_, physical_, allowed.without(fault_.set_aside)));
  if (fault_.why != nullptr) {
    MOTE_LOG_LINE(kInfo, "%s: %s set aside: %s", device_name_.c_str(), to_string(fault_.set_aside).c_str(), fault_.why);
  }
  features_ = found.features();
  subgroup_size_ = found.subgroup_size();
  const float priority = 1.0f;
  auto queue = of_type<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = of_type<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  found.enable(&info);
  std::vector<const char*> extensions(info.ppEnabledExtensionNames,
                                      info.ppEnabledExtensionNames + info.enabledExtensionCount);
  MOTE_RETURN_IF_ERROR(add_extensions(&extensions));
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult made = api_.CreateDevice(physical_, &info, nullptr, &device_);
  MOTE_REQUIRE(made == VK_SUCCESS, Code::kUnsupportedBackend, "%s: %s", device_name_.c_str(),
               vulkan_status(made, "vkCreateDevice").message().c_str());
  MOTE_RETURN_IF_ERROR(api_.find_device_functions(device_));
  api_.GetPhysicalDeviceMemoryProperties(physical_, &memory_);
  api_.GetDeviceQueue(device_, queue_family_, 0, &queue_);
  return {};
}

GpuContext::~GpuContext() {
  if (!may_destroy() || leaves_objects_) return;
  if (device_ != VK_NULL_HANDLE && api_.DestroyDevice != nullptr) api_.DestroyDevice(device_, nullptr);
  if (instance_ != VK_NULL_HANDLE && api_.DestroyInstance != nullptr) api_.DestroyInstance(instance_, nullptr);
}

bool GpuContext::may_destroy() const {
  if (!is_lost_) return true;
  const std::lock_guard lock(unended_mutex_);
  if (unended_.empty()) return true;
  const auto count = static_cast<uint32_t>(unended_.size());
  leaves_objects_ = api_.WaitForFences(device_, count, unended_.data(), VK_TRUE, 0) == VK_TIMEOUT;
  if (leaves_objects_) return false;
  for (const VkFence fence : unended_) api_.DestroyFence(device_, fence, nullptr);
  unended_.clear();
  return true;
}

Result<std::vector<VkFence>> GpuContext::make_fences(size_t count) const {
  std::vector<VkFence> fences;
  fences.reserve(count);
  const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
  for (size_t i = 0; i < count; ++i) {
    VkFence fence = VK_NULL_HANDLE;
    const VkResult made = api_.CreateFence(device_, &info, nullptr, &fence);
    if (made != VK_SUCCESS) {
      for (const VkFence each : fences) api_.DestroyFence(device_, each, nullptr);
      return vulkan_status(made, "vkCreateFence");
    }
    fences.push_back(fence);
  }
  return fences;
}

VkResult GpuContext::submit(std::span<const VkCommandBuffer> commands, std::span<const VkFence> fences,
                            size_t* submitted) const {
  auto submission = of_type<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submission.commandBufferCount = 1;
  for (*submitted = 0; *submitted < commands.size(); ++*submitted) {
    submission.pCommandBuffers = &commands[*submitted];
    const std::lock_guard lock(queue_mutex_);
    const VkResult result = api_.QueueSubmit(queue_, 1, &submission, fences[*submitted]);
    if (result != VK_SUCCESS) return result;
  }
  return VK_SUCCESS;
}

Status GpuContext::run(std::span<const VkCommandBuffer> commands) const {
  MOTE_REQUIRE(!is_lost_, Code::kInternal, "%s was lost in an earlier call", device_name_.c_str());
  // Each has a fence, so that what was submitted can be waited for where a later one is refused.
  MOTE_ASSIGN(const std::vector<VkFence> fences, make_fences(commands.size()));
  size_t submitted = 0;
  const VkResult refused = submit(commands, fences, &submitted);
  VkResult waited = VK_SUCCESS;
  if (submitted > 0 && refused != VK_ERROR_DEVICE_LOST) {
    waited = api_.WaitForFences(device_, static_cast<uint32_t>(submitted), fences.data(), VK_TRUE,
                                is_cpu_ ? kPatienceWithCpuNs : kPatienceNs);
  }
  const bool is_gone = refused == VK_ERROR_DEVICE_LOST || waited == VK_ERROR_DEVICE_LOST;  // and nothing of it runs
  const size_t num_running = waited != VK_SUCCESS && !is_gone ? submitted : 0;
  if (num_running > 0 || is_gone) is_lost_ = true;
  {
    const std::lock_guard lock(unended_mutex_);
    unended_.insert(unended_.end(), fences.begin(), fences.begin() + static_cast<std::ptrdiff_t>(num_running));
  }
  for (size_t i = num_running; i < fences.size(); ++i) api_.DestroyFence(device_, fences[i], nullptr);
  return refused != VK_SUCCESS ? vulkan_status(refused, "vkQueueSubmit") : vulkan_status(waited, "vkWaitForFences");
}

Result<Commands> Commands::begin(std::shared_ptr<const GpuContext> context, VkCommandBufferUsageFlags flags) {
  Commands made(std::move(context));
  const VulkanApi& api = made.context_->api();
  auto pool = of_type<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = made.context_->queue_family();
  MOTE_VULKAN(api.CreateCommandPool(made.context_->device(), &pool, nullptr, &made.pool_));
  auto allocation = of_type<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  allocation.commandPool = made.pool_;
  allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocation.commandBufferCount = 1;
  MOTE_VULKAN(api.AllocateCommandBuffers(made.context_->device(), &allocation, &made.buffer_));
  auto begin = of_type<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = flags;
  MOTE_VULKAN(api.BeginCommandBuffer(made.buffer_, &begin));
  return made;
}

Commands::~Commands() {
  if (context_ != nullptr && pool_ != VK_NULL_HANDLE && context_->may_destroy()) {
    context_->api().DestroyCommandPool(context_->device(), pool_, nullptr);
  }
}

Status Commands::end() const { return vulkan_status(context_->api().EndCommandBuffer(buffer_), "vkEndCommandBuffer"); }

Status GpuContext::run_once(const std::function<Status(VkCommandBuffer)>& record) const {
  MOTE_ASSIGN(const Commands commands,
              Commands::begin(shared_from_this(), VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT));
  MOTE_RETURN_IF_ERROR(record(commands.handle()));
  memory_barrier(api_, commands.handle());
  MOTE_RETURN_IF_ERROR(commands.end());
  const VkCommandBuffer handle = commands.handle();
  return run({&handle, 1});
}

Status GpuContext::write(const GpuBuffer& buffer, uint64_t offset, std::span<const std::byte> bytes) const {
  if (buffer.data() != nullptr) {
    std::memcpy(buffer.data() + offset, bytes.data(), bytes.size());
    return {};
  }
  return staged(bytes.size(), [&](const GpuBuffer& staging, uint64_t at, size_t count) {
    std::memcpy(staging.data(), bytes.data() + at, count);
    return copy(staging, 0, buffer, offset + at, count);
  });
}

Status GpuContext::read(const GpuBuffer& buffer, uint64_t offset, std::span<std::byte> bytes) const {
  MOTE_REQUIRE(!is_lost_, Code::kInternal, "%s was lost, and its memory with it", device_name_.c_str());
  if (buffer.data() != nullptr) {
    std::memcpy(bytes.data(), buffer.data() + offset, bytes.size());
    return {};
  }
  return staged(bytes.size(), [&](const GpuBuffer& staging, uint64_t at, size_t count) {
    MOTE_RETURN_IF_ERROR(copy(buffer, offset + at, staging, 0, count));
    std::memcpy(bytes.data() + at, staging.data(), count);
    return Status();
  });
}

Status GpuContext::staged(uint64_t bytes, const std::function<Status(const GpuBuffer&, uint64_t, size_t)>& move) const {
  const uint64_t most = std::min(bytes, kStagingBytes);
  MOTE_ASSIGN(const GpuBuffer staging, GpuBuffer::make(shared_from_this(), most, Place::host));
  for (uint64_t at = 0; at < bytes; at += most) {
    MOTE_RETURN_IF_ERROR(move(staging, at, static_cast<size_t>(std::min(most, bytes - at))));
  }
  return {};
}

Status GpuContext::copy(const GpuBuffer& from, uint64_t from_offset, const GpuBuffer& to, uint64_t to_offset,
                        uint64_t bytes) const {
  if (bytes == 0) return {};
  return run_once([&](VkCommandBuffer commands) {
    const VkBufferCopy region{from_offset, to_offset, bytes};
    api_.CmdCopyBuffer(commands, from.handle(), to.handle(), 1, &region);
    return Status();
  });
}

}  // namespace mote::gpu
