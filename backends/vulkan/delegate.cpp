#include "backends/vulkan/delegate.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <set>

#include "backends/vulkan/caches.h"
#include "backends/vulkan/plan.h"
#include "backends/vulkan/timestamps.h"
#include "backends/vulkan/words.h"
#include "base/log.h"

namespace mote::vulkan {
namespace {

constexpr size_t kMaxRecordings = 8;  // of a session: calls of other lengths are recorded again

// Commands of one part for one number of tokens, recorded for the buffers that the session had then.
class Recording {
 public:
  Recording(std::shared_ptr<const gpu::GpuContext> context, size_t of_part, int64_t num_tokens, bool measures)
      : part(of_part), tokens(num_tokens), is_measured(measures), context_(std::move(context)) {}
  // bind(binding) gives what a shader sees of it.
  template <typename Bind>
  Status record(const Plan& plan, Pipelines& pipelines, const Graph& graph, const Bind& bind) {
    MOTE_ASSIGN(DescriptorSets sets,
                DescriptorSets::make(context_, pipelines, std::max<size_t>(1, plan.dispatches.size())));
    sets_.emplace(std::move(sets));
    MOTE_ASSIGN(gpu::Commands recorded, gpu::Commands::begin(context_));
    commands_.emplace(std::move(recorded));
    barrier(VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    if (is_measured) MOTE_RETURN_IF_ERROR(measure(plan));
    for (const Dispatch& dispatch : plan.dispatches) {
      MOTE_RETURN_IF_ERROR(add(dispatch, pipelines, graph, bind));
      if (timestamps_) timestamps_->write(commands_->handle(), ++num_written_);
    }
    barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
    return commands_->end();
  }

  Status run() const { return context_->run(commands_->handle()); }

  // What each dispatch of the latest run took. first, end: positions of its tokens
  Status add_steps(int64_t first, int64_t end, std::vector<DelegateStep>* steps) const {
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

  const size_t part;
  const int64_t tokens;
  const bool is_measured;

 private:
  void barrier(VkPipelineStageFlags from, VkPipelineStageFlags to) {
    auto memory = gpu::of_type<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    if ((from & VK_PIPELINE_STAGE_HOST_BIT) != 0) memory.srcAccessMask |= VK_ACCESS_HOST_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    if ((to & VK_PIPELINE_STAGE_HOST_BIT) != 0) memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    context_->api().CmdPipelineBarrier(commands_->handle(), from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
    written_.clear();
    read_.clear();
  }

  Status measure(const Plan& plan) {
    MOTE_ASSIGN(std::optional<Timestamps> made, Timestamps::make(context_, plan.dispatches.size() + 1));
    if (!made) {
      MOTE_LOG_LINE(kInfo, "%s counts no time: its parts are profiled as wholes", context_->device_name().c_str());
      return {};
    }
    timestamps_.emplace(std::move(*made));
    for (const Dispatch& each : plan.dispatches) {
      measured_.push_back({{profile_name(each.shader), each.origin, 0, 0, each.cost}, each.of_position, each.window});
    }
    timestamps_->reset(commands_->handle());
    timestamps_->write(commands_->handle(), 0);
    return {};
  }

  // What shares memory: a slot, an argument, a cache.
  using Memory = std::pair<int, uint32_t>;
  static std::optional<Memory> memory_of(const Bound& bound, const Graph& graph) {
    switch (bound.kind) {
      case Bind::value: {
        const GraphValue& value = graph.values[bound.index];
        if (value.kind == fb::ValueKind::scratch) return Memory(0, value.slot);
        return Memory(1, bound.index);
      }
      case Bind::keys: return Memory(2, bound.index);
      case Bind::values: return Memory(3, bound.index);
      case Bind::parts: return Memory(4, 0);
      case Bind::history: return Memory(5, bound.index);
      default: return std::nullopt;
    }
  }

  template <typename Bind>
  Status add(const Dispatch& dispatch, Pipelines& pipelines, const Graph& graph, const Bind& bind) {
    const gpu::VulkanApi& api = context_->api();
    std::vector<BoundRange> ranges;
    std::vector<Memory> reads, writes;
    for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
      ranges.push_back(bind(dispatch.bindings[i]));
      if (const auto memory = memory_of(dispatch.bindings[i], graph)) {
        ((dispatch.writes >> i & 1) != 0 ? writes : reads).push_back(*memory);
      }
    }
    const auto waits = [&](const Memory& memory, bool is_write) {
      return written_.contains(memory) || (is_write && read_.contains(memory));
    };
    const bool must_wait = std::ranges::any_of(reads, [&](const Memory& m) { return waits(m, false); }) ||
                           std::ranges::any_of(writes, [&](const Memory& m) { return waits(m, true); });
    if (must_wait || timestamps_) barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    written_.insert(writes.begin(), writes.end());
    read_.insert(reads.begin(), reads.end());
    MOTE_ASSIGN(const VkPipeline pipeline, pipelines.find(dispatch.shader, dispatch.constants));
    MOTE_ASSIGN(const VkDescriptorSet set, sets_->add(ranges));
    const VkCommandBuffer commands = commands_->handle();
    api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines.layout(), 0, 1, &set, 0, nullptr);
    api.CmdPushConstants(commands, pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                         static_cast<uint32_t>(dispatch.push.size() * sizeof(uint32_t)), dispatch.push.data());
    api.CmdDispatch(commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
    return {};
  }

  std::shared_ptr<const gpu::GpuContext> context_;
  std::optional<DescriptorSets> sets_;
  std::optional<gpu::Commands> commands_;
  std::set<Memory> written_, read_;  // since the latest barrier

  struct Measured {
    DelegateStep step;
    Cost of_position;
    int64_t window;
  };
  std::optional<Timestamps> timestamps_;
  std::vector<Measured> measured_;  // dispatches, in order
  size_t num_written_ = 0;
};

class SessionDelegate final : public Delegate {
 public:
  SessionDelegate(std::shared_ptr<const Program> program, const DelegateOptions& options)
      : program_(std::move(program)),
        context_(program_->context()),
        caches_(context_, program_->caches(), options.context_length,
                Histories(context_, program_->histories(), std::max<int64_t>(options.max_tokens, 1))) {}

  Result<size_t> prepare(size_t index, const Call& call, int64_t tokens) override try {
    MOTE_REQUIRE(index < program_->num_parts(), Code::kInvalidProgram, "part %zu: there are %zu", index,
                 program_->num_parts());
    const Graph& graph = program_->part(index).graph;
    MOTE_REQUIRE(tokens >= 1 && tokens <= kMaxTokens, Code::kInvalidProgram, "%s: T = %lld: must be 1 to %lld",
                 graph.place.c_str(), static_cast<long long>(tokens), static_cast<long long>(kMaxTokens));
    MOTE_RETURN_IF_ERROR(check_call(graph, call, tokens));
    MOTE_RETURN_IF_ERROR(caches_.reserve(1));
    MOTE_ASSIGN(const Plan plan, plan_of(index, tokens));
    MOTE_RETURN_IF_ERROR(at_place(graph.place, reserve(plan)));
    prepared_.resize(program_->num_parts());
    prepared_[index] = {tokens, plan.ids, plan.positions};
    return size_t{0};
  } catch (const std::bad_alloc&) { return no_memory(); }

  Status execute(size_t index, const Call& call, KernelContext& context) override {
    return execute_measured(index, call, context, nullptr);
  }

  Status execute_measured(size_t index, const Call& call, KernelContext&, std::vector<DelegateStep>* steps) override
      try {
    MOTE_REQUIRE(index < prepared_.size() && prepared_[index].tokens > 0, Code::kInternal, "part %zu was not prepared",
                 index);
    return at_place(program_->part(index).graph.place, run(index, call, prepared_[index], steps));
  } catch (const std::bad_alloc&) { return no_memory(); }

  uint64_t held_bytes() const override {
    return caches_.held_bytes() + arena_.bytes() + parts_.bytes() + arguments_.bytes();
  }

  bool seek(int64_t position) override { return caches_.seek(position); }
  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const override try {
    return caches_.snapshot();
  } catch (const std::bad_alloc&) { return no_memory(); }
  Status restore(const DelegateSnapshot& snapshot) override try {
    const int64_t before = caches_.capacity();
    const Status status = caches_.restore(snapshot);
    if (caches_.capacity() != before) recordings_.clear();
    return status;
  } catch (const std::bad_alloc&) { return no_memory(); }
  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const override try {
    return caches_.import(bytes);
  } catch (const std::bad_alloc&) { return no_memory(); }
  std::optional<DType> cache_dtype(int32_t state) const override {
    return caches_.has_state(state) ? std::optional(DType::kFloat16) : std::nullopt;
  }
  Status read_cache(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const override {
    return caches_.read(state, keys, values);
  }
  Status write_cache(int32_t state, int64_t positions, std::span<const std::byte> keys,
                     std::span<const std::byte> values) override try {
    const int64_t before = caches_.capacity();
    const Status status = caches_.write(state, positions, keys, values);
    if (caches_.capacity() != before) recordings_.clear();
    return status;
  } catch (const std::bad_alloc&) { return no_memory(); }

 private:
  static Status no_memory() { return {Code::kOutOfMemory, "no memory for a session on the GPU"}; }

  static Status check_call(const Graph& graph, const Call& call, int64_t tokens) {
    const auto fits = [&](const Tensor* tensor, uint32_t value) {
      const GraphValue& wanted = graph.values[value];
      const DType dtype = wanted.content == fb::Content::int64     ? DType::kInt64
                          : wanted.content == fb::Content::boolean ? DType::kBool
                                                                   : DType::kFloat32;
      return tensor != nullptr && tensor->bits == 0 && tensor->dtype == dtype && tensor->is_contiguous() &&
             tensor->num_elements() * 4 == wanted.bytes.at(tokens);
    };
    MOTE_REQUIRE(call.inputs.size() == graph.inputs.size() && call.outputs.size() == graph.outputs.size(),
                 Code::kInvalidProgram, "%s: has %zu inputs and %zu outputs: must have %zu and %zu",
                 graph.place.c_str(), call.inputs.size(), call.outputs.size(), graph.inputs.size(),
                 graph.outputs.size());
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      MOTE_REQUIRE(fits(call.inputs[i], graph.inputs[i]), Code::kInvalidProgram,
                   "%s: inputs[%zu] has another size or dtype", graph.place.c_str(), i);
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      MOTE_REQUIRE(fits(call.outputs[i], graph.outputs[i]), Code::kInvalidProgram,
                   "%s: outputs[%zu] has another size or dtype", graph.place.c_str(), i);
    }
    return {};
  }

  Result<Plan> plan_of(size_t index, int64_t tokens) const {
    return program_->plan(index, tokens, caches_.capacity() / kSplitPositions, caches_.histories().max_tokens());
  }

  // What is known of a part's calls before they come: their T, and the inputs that are looked at.
  struct Prepared {
    int64_t tokens = 0;  // 0: nothing yet
    std::vector<std::pair<uint32_t, int64_t>> ids{};
    std::vector<uint32_t> positions{};
  };

  // Memory for a plan; what was recorded for smaller buffers is forgotten.
  Status reserve(const Plan& plan) {
    for (const auto& [buffer, bytes] : {std::pair(&arena_, plan.arena_bytes), std::pair(&parts_, plan.parts_bytes)}) {
      if (buffer->bytes() >= bytes && buffer->handle() != VK_NULL_HANDLE) continue;
      recordings_.clear();
      *buffer = {};
      MOTE_ASSIGN(*buffer, gpu::GpuBuffer::make(context_, bytes, gpu::Place::device));
    }
    return {};
  }

  // Places of a part's arguments in their buffer.
  struct Places {
    std::vector<std::pair<uint32_t, uint64_t>> of;  // value, offset
    uint64_t start = 0;                             // of the position of histories' next row
    uint64_t bytes = 0;
    uint64_t at(uint32_t value) const {
      return std::ranges::find_if(of, [&](const auto& each) { return each.first == value; })->second;
    }
  };
  static Places places_of(const Graph& graph, int64_t tokens) {
    Places places;
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
      for (const uint32_t value : *list) {
        places.of.emplace_back(value, places.bytes);
        places.bytes += (static_cast<uint64_t>(graph.values[value].bytes.at(tokens)) + 255) / 256 * 256;
      }
    }
    places.start = places.bytes;
    places.bytes += 256;
    return places;
  }

  // The caches hold what comes before the call, and have room for it.
  Status make_room(const Graph& graph, const Prepared& prepared, const Call& call, int64_t* end) {
    const auto numbers_of = [&](uint32_t value) {
      const auto index = std::ranges::find(graph.inputs, value) - graph.inputs.begin();
      const Tensor& tensor = *call.inputs[static_cast<size_t>(index)];
      return std::span<const int64_t>(tensor.as<int64_t>(), static_cast<size_t>(tensor.num_elements()));
    };
    for (const auto& [value, limit] : prepared.ids) {
      for (const int64_t id : numbers_of(value)) {
        MOTE_REQUIRE(id >= 0 && id < limit, Code::kInvalidArgument, "token id %lld: must be 0..%lld",
                     static_cast<long long>(id), static_cast<long long>(limit - 1));
      }
    }
    *end = prepared.positions.empty() ? caches_.positions() : 0;
    for (const uint32_t value : prepared.positions) {
      const std::span<const int64_t> positions = numbers_of(value);
      for (size_t t = 0; t < positions.size(); ++t) {
        MOTE_REQUIRE(positions[t] == positions[0] + static_cast<int64_t>(t) && positions[0] >= 0 &&
                         positions[0] <= caches_.positions(),
                     Code::kInvalidArgument, "position %lld: the GPU holds %lld", static_cast<long long>(positions[t]),
                     static_cast<long long>(caches_.positions()));
      }
      *end = std::max(*end, positions.back() + 1);
    }
    const int64_t before = caches_.capacity();
    MOTE_RETURN_IF_ERROR(caches_.reserve(*end));
    if (caches_.capacity() != before) recordings_.clear();
    return {};
  }

  Result<const Recording*> recording(size_t index, int64_t tokens, const Places& places, bool is_measured) {
    for (const auto& known : recordings_) {
      if (known->part == index && known->tokens == tokens && known->is_measured == is_measured) return known.get();
    }
    MOTE_ASSIGN(const Plan plan, plan_of(index, tokens));
    MOTE_RETURN_IF_ERROR(reserve(plan));
    const LoadedPart& part = program_->part(index);
    const auto bind = [&](const Bound& bound) -> BoundRange {
      switch (bound.kind) {
        case Bind::none: return {};
        case Bind::value: {
          const GraphValue& value = part.graph.values[bound.index];
          const auto bytes = static_cast<uint64_t>(value.bytes.at(tokens));
          if (value.kind == fb::ValueKind::scratch) return {arena_.handle(), plan.slot_offsets[value.slot], bytes};
          return {arguments_.handle(), places.at(bound.index), bytes};
        }
        case Bind::weight: {
          const DeviceWeight& weight = *part.weights[bound.index];
          const WeightPiece& piece = weight.pieces[bound.piece];
          return {weight.buffer.handle(), piece.offset, (piece.bytes + 3) / 4 * 4};
        }
        case Bind::row_sums: {
          const DeviceWeight& weight = *part.weights[bound.index];
          return {weight.row_sums.handle(), 0, weight.row_sums.bytes()};
        }
        case Bind::keys: {
          const gpu::GpuBuffer& keys = caches_.keys(part.caches[bound.index]);
          return {keys.handle(), 0, keys.bytes()};
        }
        case Bind::values: {
          const gpu::GpuBuffer& values = caches_.values(part.caches[bound.index]);
          return {values.handle(), 0, values.bytes()};
        }
        case Bind::parts: return {parts_.handle(), 0, parts_.bytes()};
        case Bind::history: {
          const gpu::GpuBuffer& ring = caches_.histories().ring(part.histories[bound.index]);
          return {ring.handle(), 0, ring.bytes()};
        }
        case Bind::start: return {arguments_.handle(), places.start, 4};
      }
      return {};
    };
    auto made = std::make_unique<Recording>(context_, index, tokens, is_measured);
    MOTE_RETURN_IF_ERROR(made->record(plan, program_->pipelines(), part.graph, bind));
    if (recordings_.size() >= kMaxRecordings) recordings_.erase(recordings_.begin());
    recordings_.push_back(std::move(made));
    return recordings_.back().get();
  }

  static void write_argument(const Tensor& from, std::byte* to) {
    if (from.dtype == DType::kFloat32) {
      std::memcpy(to, from.data, static_cast<size_t>(from.num_elements()) * sizeof(float));
    } else {
      to_words(from, reinterpret_cast<int32_t*>(to));
    }
  }
  static void read_argument(const std::byte* from, Tensor* to) {
    if (to->dtype == DType::kFloat32) {
      std::memcpy(to->data, from, static_cast<size_t>(to->num_elements()) * sizeof(float));
    } else {
      from_words(reinterpret_cast<const int32_t*>(from), to);
    }
  }

  // The position of the next row of a part's histories.
  Status write_start(const LoadedPart& part, std::byte* to) const {
    int64_t start = 0;
    for (const size_t history : part.histories) {
      const int64_t next = caches_.histories().next(history);
      MOTE_REQUIRE(history == part.histories.front() || next == start, Code::kInternal,
                   "states that are at positions %lld and %lld", static_cast<long long>(start),
                   static_cast<long long>(next));
      start = next;
    }
    const auto word = static_cast<uint32_t>(start);
    std::memcpy(to, &word, sizeof(word));
    return {};
  }

  Status run(size_t index, const Call& call, const Prepared& prepared, std::vector<DelegateStep>* steps) {
    const Graph& graph = program_->part(index).graph;
    const int64_t tokens = prepared.tokens;
    const Places places = places_of(graph, tokens);
    if (arguments_.bytes() < places.bytes || arguments_.handle() == VK_NULL_HANDLE) {
      recordings_.clear();
      arguments_ = {};
      MOTE_ASSIGN(arguments_, gpu::GpuBuffer::make(context_, places.bytes, gpu::Place::host));
    }
    int64_t end = 0;
    MOTE_RETURN_IF_ERROR(make_room(graph, prepared, call, &end));
    MOTE_ASSIGN(const Recording* recorded, recording(index, tokens, places, steps != nullptr));
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const uint32_t value = graph.inputs[i];
      write_argument(*call.inputs[i], arguments_.data() + places.at(value));
    }
    MOTE_RETURN_IF_ERROR(write_start(program_->part(index), arguments_.data() + places.start));
    MOTE_RETURN_IF_ERROR(recorded->run());
    if (steps != nullptr) MOTE_RETURN_IF_ERROR(recorded->add_steps(std::max<int64_t>(end - tokens, 0), end, steps));
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const uint32_t value = graph.outputs[i];
      read_argument(arguments_.data() + places.at(value), call.outputs[i]);
    }
    for (const size_t history : program_->part(index).histories) {
      caches_.histories().advance(history, tokens);
      end = std::max(end, caches_.histories().next(history));
    }
    caches_.set_positions(end);
    return {};
  }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const gpu::GpuContext> context_;
  Caches caches_;
  gpu::GpuBuffer arena_, parts_, arguments_;
  std::vector<Prepared> prepared_;  // of each part
  std::vector<std::unique_ptr<Recording>> recordings_;
};

}  // namespace

Result<std::unique_ptr<Delegate>> Program::open(const DelegateOptions& options) const try {
  return std::unique_ptr<Delegate>(std::make_unique<SessionDelegate>(shared_from_this(), options));
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "no memory for a session on the GPU"); }

}  // namespace mote::vulkan
