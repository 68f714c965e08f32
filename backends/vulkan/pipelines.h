// Shaders with their constants, made once a program, and how a dispatch of one is recorded.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/shaders.h"
#include "base/kept_file.h"

namespace mote::vulkan {

// No device is known that has more than Vulkan's least number of 4 bindings and fewer than 16 (docs/backends.md).
inline constexpr size_t kMaxBindings = 16, kMaxPush = 32;

// A range of a buffer that a shader sees.
struct BoundRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0, bytes = 0;
};

// Thread safety: any thread.
class Pipelines {
 public:
  // kept: what the driver made of pipelines in earlier processes; without a path: nothing
  static Result<std::unique_ptr<Pipelines>> make(std::shared_ptr<const gpu::GpuContext> context, KeptFile kept = {});
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;
  ~Pipelines();

  // constants: by their ids. Errors: as the driver says.
  Result<VkPipeline> find(Shader shader, std::span<const uint32_t> constants);
  VkPipelineLayout layout() const { return layout_; }
  // Writes what the driver made to the file, unless it is in there. What fails is logged: nothing depends on it.
  void keep();
  // The calls begin: a pipeline that is made from here on was not foreseen, which is logged.
  void begin_calls() { in_calls_ = true; }
  size_t num_made() const { return pipelines_.size(); }
  // Of those, what the driver says that it did not compile; nothing: it does not say.
  std::optional<size_t> num_found() const {
    return context_->tells_of_pipelines() ? std::optional(num_found_) : std::nullopt;
  }

 private:
  explicit Pipelines(std::shared_ptr<const gpu::GpuContext> context) : context_(std::move(context)) {}
  friend class DescriptorSets;
  Status open_cache();
  Result<VkPipeline> create(VkComputePipelineCreateInfo info);

  std::shared_ptr<const gpu::GpuContext> context_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  KeptFile kept_;
  std::vector<std::byte> kept_data_;
  size_t num_found_ = 0;
  bool in_calls_ = false;
  std::mutex mutex_;
  std::map<std::pair<Shader, std::vector<uint32_t>>, VkPipeline> pipelines_;
};

// The descriptors of recorded dispatches.
class DescriptorSets {
 public:
  static Result<DescriptorSets> make(std::shared_ptr<const gpu::GpuContext> context, const Pipelines& pipelines,
                                     size_t count);
  DescriptorSets(DescriptorSets&& other) noexcept
      : context_(std::move(other.context_)),
        set_layout_(other.set_layout_),
        pool_(std::exchange(other.pool_, VK_NULL_HANDLE)) {}
  DescriptorSets& operator=(DescriptorSets&&) = delete;
  ~DescriptorSets();

  // Bindings behind the last of `ranges` see the first of them.
  Result<VkDescriptorSet> add(std::span<const BoundRange> ranges);

 private:
  DescriptorSets(std::shared_ptr<const gpu::GpuContext> context, VkDescriptorSetLayout layout)
      : context_(std::move(context)), set_layout_(layout) {}

  std::shared_ptr<const gpu::GpuContext> context_;
  VkDescriptorSetLayout set_layout_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

}  // namespace mote::vulkan
