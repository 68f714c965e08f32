// run_broken FILE FEATURE HOW: loads a file with the target vulkan, on a device on which the shaders that use a feature
// for products are broken: "wrong" (they compute other numbers), "refused" (their pipelines do not compile) or "hangs"
// (what they are in does not end). Prints the backend and some ids that were generated.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/vulkan_api.h"
#include "backends/vulkan/shaders.h"
#include "runner/session/session.h"

namespace mote::test {
namespace {

using vulkan::Shader;

std::vector<Shader> broken;
std::string how;
std::mutex mutex;
gpu::VulkanApi real;
std::set<VkShaderModule> modules;
std::set<VkPipeline> pipelines;
std::set<VkCommandBuffer> commands;
std::set<VkFence> fences;

std::vector<Shader> shaders_of(const std::string& feature) {
  if (feature == "dot") {
    return {Shader::product_dot, Shader::product_dot_staged, Shader::product_dot_subgroups, Shader::group_product_dot};
  }
  if (feature == "subgroups") return {Shader::product_subgroups, Shader::product_dot_subgroups};
  if (feature == "staging") return {Shader::product_staged, Shader::product_dot_staged};
  return {};
}

bool is_broken(const VkShaderModuleCreateInfo& info) {
  return std::ranges::any_of(broken, [&](Shader shader) { return info.pCode == vulkan::spirv(shader).data(); });
}

// Of the masks that take digits out of words, which then lack some.
std::vector<uint32_t> with_other_masks(const VkShaderModuleCreateInfo& info) {
  std::vector<uint32_t> words(info.pCode, info.pCode + info.codeSize / 4);
  for (uint32_t& word : words) {
    if (word == 0x01010101u || word == 0x00010001u) --word;
  }
  return words;
}

VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                                  const VkAllocationCallbacks* allocator, VkShaderModule* module) {
  const std::lock_guard lock(mutex);
  if (!is_broken(*info)) return real.CreateShaderModule(device, info, allocator, module);
  VkShaderModuleCreateInfo other = *info;
  const std::vector<uint32_t> words = with_other_masks(*info);
  if (how == "wrong") other.pCode = words.data();
  const VkResult result = real.CreateShaderModule(device, &other, allocator, module);
  modules.insert(*module);
  return result;
}

void VKAPI_CALL destroy_module(VkDevice device, VkShaderModule module, const VkAllocationCallbacks* allocator) {
  const std::lock_guard lock(mutex);
  modules.erase(module);
  real.DestroyShaderModule(device, module, allocator);
}

VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                     const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks* allocator,
                                     VkPipeline* made) {
  const std::lock_guard lock(mutex);
  const bool is_of_broken = modules.contains(infos[0].stage.module);
  if (is_of_broken && how == "refused") return VK_ERROR_INITIALIZATION_FAILED;
  const VkResult result = real.CreateComputePipelines(device, cache, count, infos, allocator, made);
  if (is_of_broken) pipelines.insert(made[0]);
  return result;
}

void VKAPI_CALL bind_pipeline(VkCommandBuffer buffer, VkPipelineBindPoint point, VkPipeline pipeline) {
  const std::lock_guard lock(mutex);
  if (how == "hangs" && pipelines.contains(pipeline)) commands.insert(buffer);
  real.CmdBindPipeline(buffer, point, pipeline);
}

VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  const std::lock_guard lock(mutex);
  if (infos[0].commandBufferCount > 0 && commands.contains(infos[0].pCommandBuffers[0])) fences.insert(fence);
  return real.QueueSubmit(queue, count, infos, fence);
}

VkResult VKAPI_CALL wait(VkDevice device, uint32_t count, const VkFence* waited, VkBool32 all, uint64_t ns) {
  const VkResult result = real.WaitForFences(device, count, waited, all, ns);
  const std::lock_guard lock(mutex);
  return fences.contains(waited[0]) ? VK_TIMEOUT : result;
}

void install() {
  gpu::replace_functions([](gpu::VulkanApi& api) {
    if (api.CreateShaderModule == nullptr || api.CreateShaderModule == &create_module) return;
    real = api;
    api.CreateShaderModule = &create_module;
    api.DestroyShaderModule = &destroy_module;
    api.CreateComputePipelines = &create_pipelines;
    api.CmdBindPipeline = &bind_pipeline;
    api.QueueSubmit = &submit;
    api.WaitForFences = &wait;
  });
}

int run(const char* path) {
  const auto model = Model::open(Source(path), {.backend = "vulkan"});
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 1;
  }
  SessionOptions options;
  options.context_length = 64;
  auto session = Session::open(*model, options);
  if (!session.ok()) return 1;
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 13; ++i) prompt.push_back((i * 37 + 11) % (*model)->vocab_size());
  auto logits = (*session)->prefill(prompt);
  std::vector<int32_t> ids;
  for (int i = 0; i < 6 && logits.ok(); ++i) {
    ids.push_back(static_cast<int32_t>(std::ranges::max_element(*logits) - logits->begin()));
    logits = (*session)->decode(ids.back());
  }
  std::printf("%s", std::string((*session)->backend()).c_str());
  for (const int32_t id : ids) std::printf(" %d", id);
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: run_broken FILE FEATURE wrong|refused|hangs\n");
    return 2;
  }
  mote::test::broken = mote::test::shaders_of(argv[2]);
  mote::test::how = argv[3];
  mote::test::install();
  return mote::test::run(argv[1]);
}
