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

// Buffers of a shader at most, those that a device must let each see (shaders that see more run where they can), and
// words that are pushed.
inline constexpr size_t kMaxBindings = 19, kLeastBindings = 16, kMaxPush = 32;

// A range of a buffer that a shader sees.
struct BoundRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0, bytes = 0;
};

// A shader with its constants, and how buffers are bound to it.
struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout sets = VK_NULL_HANDLE;
};

// Thread safety: any thread.
class Pipelines {
 public:
  // kept: what the driver made of pipelines in earlier processes; without a path: nothing
  static Result<std::unique_ptr<Pipelines>> make(std::shared_ptr<const gpu::GpuContext> context, KeptFile kept = {});
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;
  ~Pipelines();

  // constants: by their ids; num_buffers: that the shader sees, at most kMaxBindings and always the same of
  // one. Errors: as the driver says.
  Result<Pipeline> find(Shader shader, std::span<const uint32_t> constants, size_t num_buffers);
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
  Status open_cache();
  // With `handle` yet to be made.
  Result<Pipeline> with_layout(size_t num_buffers);
  Result<VkPipeline> create(VkComputePipelineCreateInfo info);

  std::shared_ptr<const gpu::GpuContext> context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  KeptFile kept_;
  std::vector<std::byte> kept_data_;
  size_t num_found_ = 0;
  bool in_calls_ = false;
  std::mutex mutex_;
  std::map<size_t, Pipeline> layouts_;  // by their numbers of buffers, without pipelines
  std::map<std::pair<Shader, std::vector<uint32_t>>, Pipeline> pipelines_;
};

// The descriptors of recorded dispatches.
class DescriptorSets {
 public:
  // num_buffers: of all of them together
  static Result<DescriptorSets> make(std::shared_ptr<const gpu::GpuContext> context, size_t count, size_t num_buffers);
  DescriptorSets(DescriptorSets&& other) noexcept
      : context_(std::move(other.context_)), pool_(std::exchange(other.pool_, VK_NULL_HANDLE)) {}
  DescriptorSets& operator=(DescriptorSets&&) = delete;
  ~DescriptorSets();

  // ranges: as many as the pipeline sees; those without a buffer see the first that there is.
  Result<VkDescriptorSet> add(const Pipeline& pipeline, std::span<const BoundRange> ranges);

 private:
  explicit DescriptorSets(std::shared_ptr<const gpu::GpuContext> context) : context_(std::move(context)) {}

  std::shared_ptr<const gpu::GpuContext> context_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

}  // namespace mote::vulkan
