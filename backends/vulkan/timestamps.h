// When the device was done with each dispatch of a list of commands.
#pragma once

#include <optional>
#include <vector>

#include "backends/gpu/context.h"

namespace mote::vulkan {

class Timestamps {
 public:
  // Empty: the device's queue counts no time. Errors: as the driver says.
  static Result<std::optional<Timestamps>> make(std::shared_ptr<const gpu::GpuContext> context, size_t count);
  Timestamps(Timestamps&& other) noexcept
      : context_(std::move(other.context_)), pool_(std::exchange(other.pool_, VK_NULL_HANDLE)), count_(other.count_) {}
  Timestamps& operator=(Timestamps&&) = delete;
  ~Timestamps();

  // Recorded before the first of them is written.
  void reset(VkCommandBuffer commands) const;
  // The time when all commands before it are done.
  void write(VkCommandBuffer commands, size_t index) const;
  // Nanoseconds since the first of them, after the commands have run. Errors: as the driver says.
  Result<std::vector<int64_t>> read() const;

 private:
  Timestamps(std::shared_ptr<const gpu::GpuContext> context, size_t count)
      : context_(std::move(context)), count_(static_cast<uint32_t>(count)) {}

  std::shared_ptr<const gpu::GpuContext> context_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
  uint32_t count_ = 0;
};

}  // namespace mote::vulkan
