#include "backends/vulkan/pipelines.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/log.h"

namespace mote::vulkan {
namespace {

constexpr size_t kMaxCacheBytes = size_t{64} << 20;

}  // namespace

Result<std::unique_ptr<Pipelines>> Pipelines::make(std::shared_ptr<const gpu::GpuContext> context, KeptFile kept) {
  std::unique_ptr<Pipelines> made(new Pipelines(std::move(context)));
  made->kept_ = std::move(kept);
  const uint32_t most = made->context_->limits().maxPerStageDescriptorStorageBuffers;
  MOTE_REQUIRE(
      most >= kLeastBindings, Code::kUnsupportedBackend,
      "%s lets a shader see %u buffers: must be at least %zu; another driver may have more, or take the backend cpu",
      made->context_->device_name().c_str(), most, kLeastBindings);
  MOTE_RETURN_IF_ERROR(made->open_cache());
  return made;
}

Result<Pipeline> Pipelines::with_layout(size_t num_buffers) {
  if (const auto known = layouts_.find(num_buffers); known != layouts_.end()) return known->second;
  const gpu::VulkanApi& api = context_->api();
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (uint32_t i = 0; i < num_buffers; ++i)
    bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  auto sets = gpu::of_type<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  sets.bindingCount = static_cast<uint32_t>(num_buffers);
  sets.pBindings = bindings.data();
  Pipeline made;
  VkResult result = api.CreateDescriptorSetLayout(context_->device(), &sets, nullptr, &made.sets);
  const char* call = "vkCreateDescriptorSetLayout";
  if (result == VK_SUCCESS) {
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kMaxPush * sizeof(uint32_t)};
    auto layout = gpu::of_type<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &made.sets;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &push;
    result = api.CreatePipelineLayout(context_->device(), &layout, nullptr, &made.layout);
    call = "vkCreatePipelineLayout";
  }
  if (result == VK_SUCCESS) return layouts_[num_buffers] = made;
  if (made.sets != VK_NULL_HANDLE) api.DestroyDescriptorSetLayout(context_->device(), made.sets, nullptr);
  return gpu::vulkan_status(result, call);
}

Pipelines::~Pipelines() {
  if (!context_->may_destroy()) return;
  const gpu::VulkanApi& api = context_->api();
  for (const auto& [key, pipeline] : pipelines_) api.DestroyPipeline(context_->device(), pipeline.handle, nullptr);
  if (cache_ != VK_NULL_HANDLE) api.DestroyPipelineCache(context_->device(), cache_, nullptr);
  for (const auto& [num_buffers, made] : layouts_) {
    api.DestroyPipelineLayout(context_->device(), made.layout, nullptr);
    api.DestroyDescriptorSetLayout(context_->device(), made.sets, nullptr);
  }
}

Result<Pipeline> Pipelines::find(Shader shader, std::span<const uint32_t> constants, size_t num_buffers) {
  const std::lock_guard lock(mutex_);
  const std::pair key(shader, std::vector<uint32_t>(constants.begin(), constants.end()));
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;
  MOTE_ASSIGN(Pipeline made, with_layout(num_buffers));
  const gpu::VulkanApi& api = context_->api();
  const std::span<const uint32_t> words = spirv(shader);
  auto module_info = gpu::of_type<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module_info.codeSize = words.size_bytes();
  module_info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  MOTE_VULKAN(api.CreateShaderModule(context_->device(), &module_info, nullptr, &module));
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo specialization{static_cast<uint32_t>(entries.size()), entries.data(),
                                            constants.size_bytes(), constants.data()};
  auto info = gpu::of_type<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.flags = VK_PIPELINE_CREATE_DISPATCH_BASE;  // some of a dispatch's workgroups are a dispatch
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = made.layout;
  const Result<VkPipeline> pipeline = create(info);
  api.DestroyShaderModule(context_->device(), module, nullptr);
  if (!pipeline.ok()) {
    return Status(pipeline.status().code(),
                  std::string("shader ") + shader_name(shader) + ": " + pipeline.status().message());
  }
  if (in_calls_) MOTE_LOG_LINE(kInfo, "vulkan: a pipeline of %s is made in a call", shader_name(shader));
  made.handle = *pipeline;
  pipelines_.emplace(key, made);
  return made;
}

Result<VkPipeline> Pipelines::create(VkComputePipelineCreateInfo info) {
  VkPipelineCreationFeedback feedback{}, of_stage{};
  auto asked =
      gpu::of_type<VkPipelineCreationFeedbackCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO);
  asked.pPipelineCreationFeedback = &feedback;
  asked.pipelineStageCreationFeedbackCount = 1;
  asked.pPipelineStageCreationFeedbacks = &of_stage;
  if (context_->tells_of_pipelines()) {
    asked.pNext = info.pNext;
    info.pNext = &asked;
  }
  VkPipeline pipeline = VK_NULL_HANDLE;
  const gpu::VulkanApi& api = context_->api();
  const VkResult made = api.CreateComputePipelines(context_->device(), cache_, 1, &info, nullptr, &pipeline);
  if (made != VK_SUCCESS) return gpu::vulkan_status(made, "vkCreateComputePipelines");
  if ((feedback.flags & VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT) != 0) ++num_found_;
  return pipeline;
}

// Drivers check their data's header, some of them only that: what lies behind it is covered by the file's checksum.
Status Pipelines::open_cache() {
  if (!kept_.path.empty()) {
    Result<std::vector<std::byte>> read = kept_.read(kMaxCacheBytes);
    const VkPipelineCacheHeaderVersionOne& header = context_->cache_header();
    const bool is_ours =
        read.ok() && read->size() >= sizeof(header) && std::memcmp(read->data(), &header, sizeof(header)) == 0;
    if (is_ours) {
      kept_data_ = *std::move(read);
    } else if (read.status().code() != Code::kFileNotFound) {
      MOTE_LOG_LINE(kInfo, "vulkan: pipelines are made anew: %s",
                    read.ok() ? "they are another driver's" : read.status().message().c_str());
    }
  }
  auto info = gpu::of_type<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = kept_data_.size();
  info.pInitialData = kept_data_.data();
  const gpu::VulkanApi& api = context_->api();
  return gpu::vulkan_status(api.CreatePipelineCache(context_->device(), &info, nullptr, &cache_),
                            "vkCreatePipelineCache");
}

void Pipelines::keep() {
  if (kept_.path.empty()) return;
  const std::lock_guard lock(mutex_);
  const gpu::VulkanApi& api = context_->api();
  size_t count = 0;
  VkResult got = api.GetPipelineCacheData(context_->device(), cache_, &count, nullptr);
  std::vector<std::byte> data(std::min<size_t>(count, kMaxCacheBytes));
  count = data.size();
  if (got == VK_SUCCESS) got = api.GetPipelineCacheData(context_->device(), cache_, &count, data.data());
  data.resize(std::min(count, data.size()));
  if (got != VK_SUCCESS || data == kept_data_) return;
  const Status written = kept_.write(data);
  if (written.ok()) kept_data_ = std::move(data);
  if (!written.ok()) MOTE_LOG_LINE(kInfo, "vulkan: pipelines are not kept: %s", written.message().c_str());
}

Result<DescriptorSets> DescriptorSets::make(std::shared_ptr<const gpu::GpuContext> context, size_t count,
                                            size_t num_buffers) {
  DescriptorSets made(std::move(context));
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, static_cast<uint32_t>(num_buffers)};
  auto info = gpu::of_type<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  info.maxSets = static_cast<uint32_t>(count);
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  MOTE_VULKAN(made.context_->api().CreateDescriptorPool(made.context_->device(), &info, nullptr, &made.pool_));
  return made;
}

DescriptorSets::~DescriptorSets() {
  if (pool_ != VK_NULL_HANDLE && context_->may_destroy())
    context_->api().DestroyDescriptorPool(context_->device(), pool_, nullptr);
}

Result<VkDescriptorSet> DescriptorSets::add(const Pipeline& pipeline, std::span<const BoundRange> ranges) {
  const gpu::VulkanApi& api = context_->api();
  auto allocation = gpu::of_type<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  allocation.descriptorPool = pool_;
  allocation.descriptorSetCount = 1;
  allocation.pSetLayouts = &pipeline.sets;
  VkDescriptorSet set = VK_NULL_HANDLE;
  MOTE_VULKAN(api.AllocateDescriptorSets(context_->device(), &allocation, &set));
  std::array<VkDescriptorBufferInfo, kMaxBindings> buffers{};
  std::array<VkWriteDescriptorSet, kMaxBindings> writes{};
  // What a shader leaves alone must be bound too.
  const auto is_there = [](const BoundRange& range) { return range.buffer != VK_NULL_HANDLE; };
  const BoundRange& any = *std::ranges::find_if(ranges, is_there);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const BoundRange& range = is_there(ranges[i]) ? ranges[i] : any;
    buffers[i] = {range.buffer, range.offset, range.bytes};
    writes[i] = gpu::of_type<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    writes[i].dstSet = set;
    writes[i].dstBinding = static_cast<uint32_t>(i);
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  api.UpdateDescriptorSets(context_->device(), static_cast<uint32_t>(ranges.size()), writes.data(), 0, nullptr);
  return set;
}

}  // namespace mote::vulkan
