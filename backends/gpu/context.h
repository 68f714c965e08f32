// A GPU as the delegates of a process share it: instance, device, queue and memory. Nothing of Vulkan is called before
// GpuContext::open, and all of it is given back when the last owner is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/features.h"
#include "backends/gpu/known_drivers.h"
#include "backends/gpu/vulkan_api.h"

namespace mote::gpu {

class GpuContext;

// Where a buffer lies: `device` is what the GPU reads fastest, `host` what the CPU reads and writes.
enum class Place { device, host };

// A storage buffer with memory of its own. Movable; empty until it is made.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  GpuBuffer(GpuBuffer&& other) noexcept { swap(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept {
    GpuBuffer(std::move(other)).swap(*this);
    return *this;
  }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;
  ~GpuBuffer();

  // Errors: kOutOfMemory, also where the device has less than that free; kInternal where the driver fails.
  static Result<GpuBuffer> make(std::shared_ptr<const GpuContext> context, uint64_t bytes, Place place);
  // Memory of the CPU's that the GPU reads where it is: `pages` begin and end at multiples of imports_at(), are only
  // read and outlive the buffer. Errors: kUnsupportedBackend where the device takes no such memory, or not these pages.
  static Result<GpuBuffer> import(std::shared_ptr<const GpuContext> context, std::span<const std::byte> pages);

  VkBuffer handle() const { return buffer_; }
  uint64_t bytes() const { return bytes_; }
  // What the CPU sees of it; nullptr: nothing, as a buffer on a device with memory of its own.
  std::byte* data() const { return data_; }

 private:
  void swap(GpuBuffer& other) noexcept;
  // next: of the infos of both.
  Status create(uint64_t bytes, const void* next);
  Status allocate(uint64_t bytes, int type, const void* next);

  std::shared_ptr<const GpuContext> context_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  uint64_t bytes_ = 0;
  std::byte* data_ = nullptr;
  uint64_t counted_bytes_ = 0;  // in the context's allocated_bytes_
};

// A list of commands while it is recorded, and afterwards for as long as it may run.
class Commands {
 public:
  // flags: VkCommandBufferUsageFlags
  static Result<Commands> begin(std::shared_ptr<const GpuContext> context, VkCommandBufferUsageFlags flags = 0);
  Commands(Commands&& other) noexcept
      : context_(std::move(other.context_)), pool_(other.pool_), buffer_(other.buffer_) {}
  Commands& operator=(Commands&&) = delete;
  ~Commands();

  VkCommandBuffer handle() const { return buffer_; }
  Status end() const;

 private:
  explicit Commands(std::shared_ptr<const GpuContext> context) : context_(std::move(context)) {}

  std::shared_ptr<const GpuContext> context_;  // nullptr: moved from
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
};

// Thread safety: any thread.
class GpuContext : public std::enable_shared_from_this<GpuContext> {
 public:
  // The process's one, or a new one where that is lost. Errors: kUnsupportedBackend saying what is missing.
  static Result<std::shared_ptr<const GpuContext>> open();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;
  ~GpuContext();

  const VulkanApi& api() const { return api_; }
  VkDevice device() const { return device_; }
  const GpuLimits& limits() const { return limits_; }
  // What shaders may use beside Vulkan 1.1's core.
  GpuFeatures features() const { return features_; }
  uint32_t subgroup_size() const { return subgroup_size_; }
  const std::string& device_name() const { return device_name_; }
  // The device, its driver and the driver's version, as far as they decide what it compiles.
  const std::string& identity() const { return identity_; }
  // Whether the driver says what came of making a pipeline.
  bool tells_of_pipelines() const { return tells_of_pipelines_; }
  // What the driver puts before the data of its pipeline caches.
  const VkPipelineCacheHeaderVersionOne& cache_header() const { return cache_header_; }
  uint32_t queue_family() const { return queue_family_; }
  // That its times count in; 0: it has none.
  uint32_t timestamp_bits() const { return timestamp_bits_; }
  // Whether the device is the CPU itself, as Mesa's lavapipe is.
  bool is_cpu() const { return is_cpu_; }
  // Of which the bounds of memory that it takes over from the CPU must be multiples; 0: it takes none, or has memory of
  // its own, from which it reads faster.
  uint64_t imports_at() const { return imports_at_; }
  // Of what buffers of Place::device lie in, free for this process as far as the driver tells, or else the device's
  // memory less what this process's buffers take.
  uint64_t free_bytes() const;
  // Whether that is the driver's word, which others change too, and not what is left of a heap by what was taken here.
  bool tells_budget() const { return tells_budget_; }
  // Errors: kOutOfMemory, saying what is free and what to do, unless `bytes` of Place::device are free for `what`.
  Status require_free(uint64_t bytes, const std::string& what) const;

  // Whether the device is gone, or has not ended what it was given: nothing more is submitted to it.
  bool is_lost() const { return is_lost_; }
  // From now on it is lost: something that it was given does not end.
  void abandon() const { is_lost_ = true; }
  // Whether nothing runs on the device that was not waited for. Else its objects must stay, for good: who would destroy
  // one lets it be.
  bool may_destroy() const;

  // Submits commands, each list for itself and one behind the other, and waits for all of them, for at most a minute,
  // or twenty where the device is the CPU. Errors: as the driver says; kInternal for a device that does not answer.
  // Afterwards the device is lost if the driver or the time says so.
  Status run(std::span<const VkCommandBuffer> commands) const;
  // `record`s commands that run once.
  Status run_once(const std::function<Status(VkCommandBuffer)>& record) const;
  // Copies bytes to or from a buffer of any place.
  Status write(const GpuBuffer& buffer, uint64_t offset, std::span<const std::byte> bytes) const;
  Status read(const GpuBuffer& buffer, uint64_t offset, std::span<std::byte> bytes) const;
  Status copy(const GpuBuffer& from, const GpuBuffer& to, uint64_t bytes) const { return copy(from, 0, to, 0, bytes); }

  // The type of memory for a buffer; -1: the device has none.
  int memory_type(uint32_t allowed, Place place) const;
  bool is_host_visible(int memory_type) const;

 private:
  friend class GpuBuffer;
  GpuContext() = default;
  Result<std::vector<VkFence>> make_fences(size_t count) const;
  // All that were submitted before it fails have their fences.
  VkResult submit(std::span<const VkCommandBuffer> commands, std::span<const VkFence> fences, size_t* submitted) const;
  Status start();
  Status choose_device();
  Status make_device();
  // Of those that are about memory and pipelines, what the device has.
  Status add_extensions(std::vector<const char*>* names);
  Status copy(const GpuBuffer& from, uint64_t from_offset, const GpuBuffer& to, uint64_t to_offset,
              uint64_t bytes) const;
  // move(staging, at, count) for pieces [at, at + count) of `bytes` that fit a buffer which the CPU sees.
  Status staged(uint64_t bytes, const std::function<Status(const GpuBuffer&, uint64_t, size_t)>& move) const;

  VulkanApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t queue_family_ = 0, timestamp_bits_ = 0;
  GpuLimits limits_{};
  GpuFeatures features_{};
  DriverFault fault_{};
  uint32_t subgroup_size_ = 1;
  VkPhysicalDeviceMemoryProperties memory_{};
  std::string device_name_, identity_;
  VkPipelineCacheHeaderVersionOne cache_header_{};
  bool is_cpu_ = false, is_integrated_ = false, tells_budget_ = false, tells_of_pipelines_ = false;
  uint64_t imports_at_ = 0;
  mutable std::atomic<uint64_t> allocated_bytes_ = 0;  // of Place::device
  mutable std::mutex queue_mutex_;
  mutable std::atomic<bool> is_lost_ = false;
  mutable std::vector<VkFence> unended_;  // of what the device did not end in time
  mutable bool leaves_objects_ = false;   // to the end of the process
  mutable std::mutex unended_mutex_;      // of the two
};

}  // namespace mote::gpu
