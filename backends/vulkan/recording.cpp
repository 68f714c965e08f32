#include "backends/vulkan/recording.h"

#include <algorithm>

#include "base/log.h"

namespace mote::vulkan {

Status Recording::record(const Plan& plan, Pipelines& pipelines, const Graph& graph, const Bind& bind,
                         int64_t positions, double most) {
  std::vector<double> work;
  for (const Dispatch& dispatch : plan.dispatches) {
    work_.push_back(Work::of(dispatch));
    work.push_back(work_.back().at(tokens, positions));
  }
  cut_ = cut(plan.dispatches, work, most);
  size_t num_buffers = 1;
  for (const Dispatch& dispatch : plan.dispatches) num_buffers += dispatch.bindings.size();
  MOTE_ASSIGN(DescriptorSets sets,
              DescriptorSets::make(context_, std::max<size_t>(1, plan.dispatches.size()), num_buffers));
  sets_.emplace(std::move(sets));
  MOTE_RETURN_IF_ERROR(begin_submission());
  barrier(VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
  if (is_measured) MOTE_RETURN_IF_ERROR(measure(plan));
  for (size_t i = 0; i < cut_.slices.size(); ++i) {
    const Slice& slice = cut_.slices[i];
    const Dispatch& dispatch = plan.dispatches[slice.dispatch];
    const bool begins_dispatch = i == 0 || cut_.slices[i - 1].ends_dispatch;
    if (slice.begins_submission && i > 0) {
      MOTE_RETURN_IF_ERROR(commands_.back().end());
      MOTE_RETURN_IF_ERROR(begin_submission());
    }
    if (begins_dispatch) {
      wait_for_others(dispatch, graph);
      MOTE_RETURN_IF_ERROR(choose(dispatch, pipelines, bind));
    }
    add(slice, dispatch);
    if (timestamps_ && slice.ends_dispatch) {
      timestamps_->write(commands(), slice.dispatch + 1);
      measured_[slice.dispatch].step.submission = static_cast<int32_t>(commands_.size());
    }
  }
  barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
  return commands_.back().end();
}

Status Recording::begin_submission() {
  MOTE_ASSIGN(gpu::Commands begun, gpu::Commands::begin(context_));
  handles_.push_back(begun.handle());
  commands_.push_back(std::move(begun));
  return {};
}

double Recording::work(int64_t end) const {
  double sum = 0;
  for (const Work& each : work_) sum += each.at(tokens, end);
  return sum;
}

Status Recording::add_steps(int64_t first, int64_t end, std::vector<DelegateStep>* steps) const {
  if (!timestamps_) return {};
  MOTE_ASSIGN(const std::vector<int64_t> times, timestamps_->read());
  for (size_t i = 0; i < measured_.size(); ++i) {
    DelegateStep step = measured_[i].step;
    const int64_t window = measured_[i].window;
    int64_t visible = 0, oldest = first;
    for (int64_t position = first; position < end; ++position) {
      const int64_t seen = window > 0 ? std::min(window, position + 1) : position + 1;
      oldest = std::min(oldest, position + 1 - seen);
      visible += seen;
    }
    step.cost.bytes += measured_[i].of_position.bytes * (end - oldest);
    step.cost.macs += measured_[i].of_position.macs * visible;
    step.start_ns = times[i];
    step.end_ns = times[i + 1];
    steps->push_back(step);
  }
  return {};
}

void Recording::barrier(VkPipelineStageFlags from, VkPipelineStageFlags to) {
  auto memory = gpu::of_type<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  if ((from & VK_PIPELINE_STAGE_HOST_BIT) != 0) memory.srcAccessMask |= VK_ACCESS_HOST_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  if ((to & VK_PIPELINE_STAGE_HOST_BIT) != 0) memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  context_->api().CmdPipelineBarrier(commands(), from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  written_.clear();
  read_.clear();
}

Status Recording::measure(const Plan& plan) {
  MOTE_ASSIGN(std::optional<Timestamps> made, Timestamps::make(context_, plan.dispatches.size() + 1));
  if (!made) {
    MOTE_LOG_LINE(kInfo, "%s counts no time: its parts are profiled as wholes", context_->device_name().c_str());
    return {};
  }
  timestamps_.emplace(std::move(*made));
  for (const Dispatch& each : plan.dispatches) {
    measured_.push_back({{profile_name(each.shader), each.origin, 0, 0, each.cost}, each.of_position, each.window});
  }
  timestamps_->reset(commands());
  timestamps_->write(commands(), 0);
  return {};
}

std::optional<Recording::Memory> Recording::memory_of(const Bound& bound, const Graph& graph) {
  switch (bound.kind) {
    case vulkan::Bind::value: {
      const GraphValue& value = graph.values[bound.index];
      if (value.kind == fb::ValueKind::scratch) return Memory(0, value.slot);
      return Memory(1, bound.index);
    }
    case vulkan::Bind::keys: return Memory(2, bound.index);
    case vulkan::Bind::values: return Memory(3, bound.index);
    case vulkan::Bind::parts: return Memory(4, 0);
    case vulkan::Bind::history: return Memory(5, bound.index);
    case vulkan::Bind::largest: return Memory(6, 0);
    case vulkan::Bind::counters: return Memory(7, bound.index);
    case vulkan::Bind::slots: return Memory(8, bound.index);
    case vulkan::Bind::rows: return Memory(9, bound.index);
    default: return std::nullopt;
  }
}

void Recording::wait_for_others(const Dispatch& dispatch, const Graph& graph) {
  std::vector<Memory> reads, writes;
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    if (const auto memory = memory_of(dispatch.bindings[i], graph)) {
      ((dispatch.writes >> i & 1) != 0 ? writes : reads).push_back(*memory);
    }
  }
  const auto waits = [&](const Memory& memory, bool is_write) {
    return written_.contains(memory) || (is_write && read_.contains(memory));
  };
  const bool must_wait = std::ranges::any_of(reads, [&](const Memory& m) { return waits(m, false); }) ||
                         std::ranges::any_of(writes, [&](const Memory& m) { return waits(m, true); });
  // For tools that look for races, a chain's shader writes all that it sees, weights too.
  const bool is_chain = dispatch.shader == Shader::chain || dispatch.shader == Shader::chain_rounds ||
                        dispatch.shader == Shader::float_product_chain;
  if (must_wait || is_chain || follows_chain_ || timestamps_)
    barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
  follows_chain_ = is_chain;
  written_.insert(writes.begin(), writes.end());
  read_.insert(reads.begin(), reads.end());
}

Status Recording::choose(const Dispatch& dispatch, Pipelines& pipelines, const Bind& bind) {
  std::vector<BoundRange> ranges;
  for (const Bound& each : dispatch.bindings) ranges.push_back(bind(each));
  MOTE_ASSIGN(chosen_.pipeline, pipelines.find(dispatch.shader, dispatch.constants, ranges.size()));
  MOTE_ASSIGN(chosen_.set, sets_->add(chosen_.pipeline, ranges));
  return {};
}

void Recording::add(const Slice& slice, const Dispatch& dispatch) const {
  const gpu::VulkanApi& api = context_->api();
  api.CmdBindPipeline(commands(), VK_PIPELINE_BIND_POINT_COMPUTE, chosen_.pipeline.handle);
  api.CmdBindDescriptorSets(commands(), VK_PIPELINE_BIND_POINT_COMPUTE, chosen_.pipeline.layout, 0, 1, &chosen_.set, 0,
                            nullptr);
  api.CmdPushConstants(commands(), chosen_.pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       static_cast<uint32_t>(dispatch.push.size() * sizeof(uint32_t)), dispatch.push.data());
  if (slice.groups == dispatch.groups) {
    api.CmdDispatch(commands(), slice.groups[0], slice.groups[1], slice.groups[2]);
  } else {
    api.CmdDispatchBase(commands(), slice.base[0], slice.base[1], slice.base[2], slice.groups[0], slice.groups[1],
                        slice.groups[2]);
  }
}

}  // namespace mote::vulkan
