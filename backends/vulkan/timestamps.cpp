#include "backends/vulkan/timestamps.h"

namespace mote::vulkan {

Result<std::optional<Timestamps>> Timestamps::make(std::shared_ptr<const gpu::GpuContext> context, size_t count) {
  if (context->timestamp_bits() == 0) return std::optional<Timestamps>();
  Timestamps made(std::move(context), count);
  auto info = gpu::of_type<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = made.count_;
  MOTE_VULKAN(made.context_->api().CreateQueryPool(made.context_->device(), &info, nullptr, &made.pool_));
  return std::optional<Timestamps>(std::move(made));
}

Timestamps::~Timestamps() {
  if (pool_ != VK_NULL_HANDLE && context_->may_destroy())
    context_->api().DestroyQueryPool(context_->device(), pool_, nullptr);
}

void Timestamps::reset(VkCommandBuffer commands) const {
  context_->api().CmdResetQueryPool(commands, pool_, 0, count_);
}

void Timestamps::write(VkCommandBuffer commands, size_t index) const {
  context_->api().CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_,
                                    static_cast<uint32_t>(index));
}

Result<std::vector<int64_t>> Timestamps::read() const {
  std::vector<uint64_t> ticks(count_);
  MOTE_VULKAN(context_->api().GetQueryPoolResults(context_->device(), pool_, 0, count_, count_ * sizeof(uint64_t),
                                                  ticks.data(), sizeof(uint64_t),
                                                  VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
  const uint32_t bits = context_->timestamp_bits();
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  std::vector<int64_t> times;
  for (const uint64_t each : ticks) {
    const auto since = static_cast<double>((each - ticks.front()) & mask);  // counters of few bits start over
    times.push_back(static_cast<int64_t>(since * static_cast<double>(context_->limits().timestampPeriod)));
  }
  return times;
}

}  // namespace mote::vulkan
