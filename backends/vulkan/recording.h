// Commands of one part for one number of tokens, recorded for the buffers that a session had then.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/plan.h"
#include "backends/vulkan/submissions.h"
#include "backends/vulkan/timestamps.h"
#include "runner/program/delegate.h"

namespace mote::vulkan {

class Recording {
 public:
  // What a shader sees of a binding.
  using Bind = std::function<BoundRange(const Bound&)>;

  Recording(std::shared_ptr<const gpu::GpuContext> context, size_t of_part, int64_t num_tokens, size_t count_of_largest,
            bool measures)
      : part(of_part),
        tokens(num_tokens),
        largest(count_of_largest),
        is_measured(measures),
        context_(std::move(context)) {}

  // positions: that there is room for; most: work of a submission (submissions.h). Errors: as the driver says.
  Status record(const Plan& plan, Pipelines& pipelines, const Graph& graph, const Bind& bind, int64_t positions,
                double most);
  Status run() const { return context_->run(handles_); }
  bool fits(double most) const { return cut_.fits(most); }
  // Of a call that ends at a position.
  double work(int64_t end) const;
  // What each dispatch of the latest run took. first, end: positions of its tokens
  Status add_steps(int64_t first, int64_t end, std::vector<DelegateStep>* steps) const;

  const size_t part;
  const int64_t tokens;
  const size_t largest;  // elements that it finds of each row of the output; 0: it writes that
  const bool is_measured;

 private:
  // What shares memory: a slot, an argument, a cache.
  using Memory = std::pair<int, uint32_t>;
  static std::optional<Memory> memory_of(const Bound& bound, const Graph& graph);
  Status begin_submission();
  VkCommandBuffer commands() const { return commands_.back().handle(); }
  void barrier(VkPipelineStageFlags from, VkPipelineStageFlags to);
  Status measure(const Plan& plan);
  // Waits for those before where they must have ended.
  void wait_for_others(const Dispatch& dispatch, const Graph& graph);
  Status choose(const Dispatch& dispatch, Pipelines& pipelines, const Bind& bind);
  void add(const Slice& slice, const Dispatch& dispatch) const;

  std::shared_ptr<const gpu::GpuContext> context_;
  Cut cut_;
  std::vector<Work> work_;  // of the dispatches, in order
  std::optional<DescriptorSets> sets_;
  std::vector<gpu::Commands> commands_;  // of each submission
  std::vector<VkCommandBuffer> handles_;
  std::set<Memory> written_, read_;  // since the latest barrier
  bool follows_chain_ = false;

  struct Chosen {  // for the slices of a dispatch
    Pipeline pipeline{};
    VkDescriptorSet set = VK_NULL_HANDLE;
  } chosen_;

  struct Measured {
    DelegateStep step;
    Cost of_position;
    int64_t window;
  };
  std::optional<Timestamps> timestamps_;
  std::vector<Measured> measured_;  // dispatches, in order
};

}  // namespace mote::vulkan
