#include "backends/vulkan/pipelines.h"

#include <algorithm>
#include <string>

namespace mote::vulkan {

Result<std::unique_ptr<Pipelines>> Pipelines::make(std::shared_ptr<const gpu::GpuContext> context) {
  std::unique_ptr<Pipelines> made(new Pipelines(std::move(context)));
  const gpu::VulkanApi& api = made->context_->api();
  std::array<VkDescriptorSetLayoutBinding, kMaxBindings> bindings{};
  for (uint32_t i = 0; i < kMaxBindings; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  auto sets = gpu::of_type<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  sets.bindingCount = kMaxBindings;
  sets.pBindings = bindings.data();
  MOTE_VULKAN(api.CreateDescriptorSetLayout(made->context_->device(), &sets, nullptr, &made->set_layout_));
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kMaxPush * sizeof(uint32_t)};
  auto layout = gpu::of_type<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &made->set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &push;
  MOTE_VULKAN(api.CreatePipelineLayout(made->context_->device(), &layout, nullptr, &made->layout_));
  return made;
}

Pipelines::~Pipelines() {
  const gpu::VulkanApi& api = context_->api();
  for (const auto& [key, pipeline] : pipelines_) api.DestroyPipeline(context_->device(), pipeline, nullptr);
  if (layout_ != VK_NULL_HANDLE) api.DestroyPipelineLayout(context_->device(), layout_, nullptr);
  if (set_layout_ != VK_NULL_HANDLE) api.DestroyDescriptorSetLayout(context_->device(), set_layout_, nullptr);
}

Result<VkPipeline> Pipelines::find(Shader shader, std::span<const uint32_t> constants) {
  const std::lock_guard lock(mutex_);
  const std::pair key(shader, std::vector<uint32_t>(constants.begin(), constants.end()));
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;
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
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult made = api.CreateComputePipelines(context_->device(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  api.DestroyShaderModule(context_->device(), module, nullptr);
  if (made != VK_SUCCESS) {
    const Status status = gpu::vulkan_status(made, "vkCreateComputePipelines");
    return Status(status.code(), std::string("shader ") + shader_name(shader) + ": " + status.message());
  }
  pipelines_.emplace(key, pipeline);
  return pipeline;
}

Result<DescriptorSets> DescriptorSets::make(std::shared_ptr<const gpu::GpuContext> context, const Pipelines& pipelines,
                                            size_t count) {
  DescriptorSets made(std::move(context), pipelines.set_layout_);
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, static_cast<uint32_t>(kMaxBindings * count)};
  auto info = gpu::of_type<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  info.maxSets = static_cast<uint32_t>(count);
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  MOTE_VULKAN(made.context_->api().CreateDescriptorPool(made.context_->device(), &info, nullptr, &made.pool_));
  return made;
}

DescriptorSets::~DescriptorSets() {
  if (pool_ != VK_NULL_HANDLE) context_->api().DestroyDescriptorPool(context_->device(), pool_, nullptr);
}

Result<VkDescriptorSet> DescriptorSets::add(std::span<const BoundRange> ranges) {
  const gpu::VulkanApi& api = context_->api();
  auto allocation = gpu::of_type<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  allocation.descriptorPool = pool_;
  allocation.descriptorSetCount = 1;
  allocation.pSetLayouts = &set_layout_;
  VkDescriptorSet set = VK_NULL_HANDLE;
  MOTE_VULKAN(api.AllocateDescriptorSets(context_->device(), &allocation, &set));
  std::array<VkDescriptorBufferInfo, kMaxBindings> buffers{};
  std::array<VkWriteDescriptorSet, kMaxBindings> writes{};
  // What a shader leaves alone must be bound too.
  const auto is_there = [](const BoundRange& range) { return range.buffer != VK_NULL_HANDLE; };
  const BoundRange& any = *std::ranges::find_if(ranges, is_there);
  for (size_t i = 0; i < kMaxBindings; ++i) {
    const BoundRange& range = i < ranges.size() && is_there(ranges[i]) ? ranges[i] : any;
    buffers[i] = {range.buffer, range.offset, range.bytes};
    writes[i] = gpu::of_type<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    writes[i].dstSet = set;
    writes[i].dstBinding = static_cast<uint32_t>(i);
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  api.UpdateDescriptorSets(context_->device(), kMaxBindings, writes.data(), 0, nullptr);
  return set;
}

}  // namespace mote::vulkan
