#include "backends/vulkan/delegate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "backends/vulkan/caches.h"
#include "backends/vulkan/plan.h"
#include "backends/vulkan/recording.h"
#include "backends/vulkan/submissions.h"
#include "backends/vulkan/words.h"

namespace mote::vulkan {
namespace {

static_assert(sizeof(LargestElement) == 2 * sizeof(uint32_t), "as largest.comp writes them");
static_assert(sizeof(SlotPlan) <= 256, "what is bound of a call's arguments");
constexpr int64_t kMostElements = int64_t{1} << 31, kMostRows = 65536;  // of an output, as shaders count them
constexpr size_t kMaxRecordings = 8;  // of a session: calls of other lengths are recorded again

class SessionDelegate final : public Delegate {
 public:
  SessionDelegate(std::shared_ptr<const Program> program, const DelegateOptions& options)
      : program_(std::move(program)),
        context_(program_->context()),
        caches_(context_, program_->caches(), options.context_length,
                Histories(context_, program_->histories(),
                          std::max<int64_t>(options.max_tokens, 1) + options.rewind_tokens),
                Recurrences(context_, program_->recurrences(), {options.rewind_tokens, options.rewind_bytes})) {}

  Result<size_t> prepare(size_t index, const Call& call, int64_t tokens) override try {
    MOTE_REQUIRE(index < program_->num_parts(), Code::kInvalidProgram, "part %zu: there are %zu", index,
                 program_->num_parts());
    const Graph& graph = program_->part(index).graph;
    MOTE_REQUIRE(tokens >= 1 && tokens <= kMaxTokens, Code::kInvalidProgram, "%s: T = %lld: must be 1 to %lld",
                 graph.place.c_str(), static_cast<long long>(tokens), static_cast<long long>(kMaxTokens));
    MOTE_RETURN_IF_ERROR(check_call(graph, call, tokens));
    MOTE_RETURN_IF_ERROR(caches_.reserve(1));
    prepared_.resize(program_->num_parts());
    const auto known = std::ranges::find_if(recordings_, [&](const Recorded& each) {
      return each.commands->part == index && each.commands->tokens == tokens;
    });
    if (known != recordings_.end()) {
      prepared_[index] = {tokens, known->ids, known->positions, rows_of(graph, call)};
      return size_t{0};
    }
    MOTE_ASSIGN(Plan plan, plan_of(index, tokens));
    MOTE_RETURN_IF_ERROR(at_place(graph.place, reserve(plan)));
    prepared_[index] = {tokens, plan.ids, plan.positions, rows_of(graph, call)};
    planned_ = {index, tokens, std::move(plan)};
    return size_t{0};
  } catch (const std::bad_alloc&) { return no_memory(); }

  Status execute(size_t index, const Call& call, KernelContext& context) override {
    return execute_measured(index, call, context, nullptr);
  }

  Status execute_measured(size_t index, const Call& call, KernelContext& context,
                          std::vector<DelegateStep>* steps) override try {
    MOTE_REQUIRE(index < prepared_.size() && prepared_[index].tokens > 0, Code::kInternal, "part %zu was not prepared",
                 index);
    num_kept_ = context.sequences.empty() ? -1 : context.sequences.front().num_kept;
    return at_place(program_->part(index).graph.place, run(index, call, prepared_[index], steps));
  } catch (const std::bad_alloc&) { return no_memory(); }

  void want_largest(size_t count) override { wanted_largest_ = count; }
  std::span<const LargestElement> largest() const override { return largest_; }
  Status read_output(Tensor* output) override {
    const auto count = static_cast<size_t>(output->num_elements());
    MOTE_REQUIRE(!largest_.empty() && count * sizeof(float) <= output_.bytes(), Code::kInternal,
                 "the latest call left no output of %zu elements", count);
    return context_->read(output_, 0, std::as_writable_bytes(std::span(output->as<float>(), count)));
  }

  uint64_t held_bytes() const override {
    return caches_.held_bytes() + arena_.bytes() + parts_.bytes() + arguments_.bytes() + counters_.bytes() +
           output_.bytes();
  }

  bool seek(int64_t position) override { return caches_.seek(position); }
  int64_t nearest(int64_t to) const override { return caches_.nearest(to); }
  int64_t most_taken_back() const override {
    return caches_.recurrences().empty() ? Delegate::most_taken_back()
                                         : StateSlots::reach(caches_.recurrences().num_rows());
  }
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
  bool has_recurrent(int32_t state) const override {
    return caches_.histories().index_of(state) != SIZE_MAX || caches_.recurrences().index_of(state) != SIZE_MAX;
  }
  Status read_recurrent(int32_t state, std::span<std::byte> elements) const override {
    return caches_.read_recurrent(state, elements);
  }
  Status write_recurrent(int32_t state, int64_t positions, std::span<const std::byte> elements) override try {
    const int64_t before = caches_.capacity();
    const Status status = caches_.write_recurrent(state, positions, elements);
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

  int64_t splits() const { return caches_.capacity() / kSplitPositions; }
  Result<Plan> plan_of(size_t index, int64_t tokens) {
    const bool is_planned = planned_ && planned_->part == index && planned_->tokens == tokens;
    std::optional<Planned> planned = std::exchange(planned_, std::nullopt);
    const bool fits = is_planned && (planned->plan.splits == 0 || planned->plan.splits == splits());
    if (fits) return std::move(planned->plan);
    return program_->plan(index, tokens,
                          {splits(), caches_.histories().spare_rows(), caches_.recurrences().num_rows()});
  }

  // Made by prepare for the call that comes next.
  struct Planned {
    size_t part = 0;
    int64_t tokens = 0;
    Plan plan{};
  };
  struct Recorded {
    gpu::GpuBuffer steps;  // of chains
    std::unique_ptr<Recording> commands;
    std::vector<std::pair<uint32_t, int64_t>> ids;  // of the plan
    std::vector<uint32_t> positions;
  };

  // What is known of a part's calls before they come: their T, and the inputs that are looked at.
  struct Prepared {
    int64_t tokens = 0;  // 0: nothing yet
    std::vector<std::pair<uint32_t, int64_t>> ids{};
    std::vector<uint32_t> positions{};
    OutputRows output{};
  };

  static OutputRows rows_of(const Graph& graph, const Call& call) {
    const Tensor& output = *call.outputs[0];
    const bool has_rows = graph.outputs.size() == 1 && output.dtype == DType::kFloat32 && output.rank > 0 &&
                          output.num_elements() > 0 && output.num_elements() < kMostElements &&
                          graph.values[graph.outputs[0]].kind == fb::ValueKind::output;
    if (!has_rows) return {};
    const int64_t width = output.size(-1), rows = output.num_elements() / width;
    return rows < kMostRows ? OutputRows{graph.outputs[0], rows, width} : OutputRows{};
  }
  // Of the latest call's largest elements; 0: it writes its output.
  size_t count_of_largest(const OutputRows& output) const {
    return output.rows > 0 && wanted_largest_ <= static_cast<size_t>(output.width) ? wanted_largest_ : 0;
  }

  // Memory for a plan; what was recorded for smaller buffers is forgotten.
  Status reserve(const Plan& plan) {
    for (const auto& [buffer, bytes] : {std::pair(&arena_, plan.arena_bytes), std::pair(&parts_, plan.parts_bytes)}) {
      if (buffer->bytes() >= bytes && buffer->handle() != VK_NULL_HANDLE) continue;
      recordings_.clear();
      *buffer = {};
      MOTE_ASSIGN(*buffer, gpu::GpuBuffer::make(context_, bytes, gpu::Place::device));
    }
    if (counters_.bytes() >= plan.counters_bytes) return {};
    recordings_.clear();
    counters_ = {};
    MOTE_ASSIGN(gpu::GpuBuffer made, gpu::GpuBuffer::make(context_, plan.counters_bytes, gpu::Place::device));
    MOTE_RETURN_IF_ERROR(context_->write(made, 0, std::vector<std::byte>(plan.counters_bytes)));
    counters_ = std::move(made);
    return {};
  }

  // Places of a part's arguments in their buffer.
  struct Places {
    std::vector<std::pair<uint32_t, uint64_t>> of;  // value, offset
    uint64_t start = 0;                             // of what the call does with recurrent states
    uint64_t largest = 0;                           // of an output's rows
    uint64_t bytes = 0;
    uint64_t at(uint32_t value) const {
      return std::ranges::find_if(of, [&](const auto& each) { return each.first == value; })->second;
    }
  };
  static Places places_of(const Graph& graph, const Prepared& prepared) {
    Places places;
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
      for (const uint32_t value : *list) {
        places.of.emplace_back(value, places.bytes);
        places.bytes += (static_cast<uint64_t>(graph.values[value].bytes.at(prepared.tokens)) + 255) / 256 * 256;
      }
    }
    places.start = places.bytes;
    places.bytes += 256;
    places.largest = places.bytes;
    places.bytes += static_cast<uint64_t>(prepared.output.rows) * kMostLargest * sizeof(LargestElement);
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

  // Of a submission: half of what it may take, as devices do not keep the same pace.
  double most_work(int64_t tokens) const {
    return 500.0 * context_->limits().submission_us / program_->pace(tokens).factor();
  }

  Result<const Recording*> recording(size_t index, const Prepared& prepared, const Places& places, bool is_measured) {
    const int64_t tokens = prepared.tokens;
    const size_t largest = count_of_largest(prepared.output);
    const double most = most_work(tokens);
    const auto found = std::ranges::find_if(recordings_, [&](const Recorded& known) {
      const Recording& commands = *known.commands;
      return commands.part == index && commands.tokens == tokens && commands.is_measured == is_measured &&
             commands.largest == largest;
    });
    if (found != recordings_.end() && found->commands->fits(most)) return found->commands.get();
    if (found != recordings_.end()) recordings_.erase(found);
    MOTE_ASSIGN(Plan plan, plan_of(index, tokens));
    if (largest > 0) add_largest(prepared.output, static_cast<int64_t>(largest), &plan);
    MOTE_RETURN_IF_ERROR(reserve(plan));
    if (largest > 0) MOTE_RETURN_IF_ERROR(reserve_output(prepared.output));
    gpu::GpuBuffer steps;
    if (!plan.steps.empty()) {
      const auto words = std::as_bytes(std::span(plan.steps));
      MOTE_ASSIGN(steps, gpu::GpuBuffer::make(context_, words.size(), gpu::Place::device));
      MOTE_RETURN_IF_ERROR(context_->write(steps, 0, words));
    }
    const LoadedPart& part = program_->part(index);
    const auto bind = [&](const Bound& bound) -> BoundRange {
      switch (bound.kind) {
        case Bind::none: return {};
        case Bind::value: {
          const GraphValue& value = part.graph.values[bound.index];
          const auto bytes = static_cast<uint64_t>(value.bytes.at(tokens));
          if (value.kind == fb::ValueKind::scratch) return {arena_.handle(), plan.slot_offsets[value.slot], bytes};
          if (largest > 0 && bound.index == prepared.output.value) return {output_.handle(), 0, bytes};
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
        case Bind::counters: return {counters_.handle(), kAlignment * bound.index, sizeof(uint32_t) * bound.piece};
        case Bind::slots: {
          const gpu::GpuBuffer& slots = caches_.recurrences().slots(part.recurrences[bound.index]);
          return {slots.handle(), 0, slots.bytes()};
        }
        case Bind::rows: {
          const gpu::GpuBuffer& rows = caches_.recurrences().rows(part.recurrences[bound.index]);
          return {rows.handle(), 0, rows.bytes()};
        }
        case Bind::steps: return {steps.handle(), 0, steps.bytes()};
        case Bind::start: return {arguments_.handle(), places.start, sizeof(SlotPlan)};
        case Bind::largest:
          return {arguments_.handle(), places.largest,
                  static_cast<uint64_t>(prepared.output.rows) * largest * sizeof(LargestElement)};
      }
      return {};
    };
    auto made = std::make_unique<Recording>(context_, index, tokens, largest, is_measured);
    MOTE_RETURN_IF_ERROR(made->record(plan, program_->pipelines(), part.graph, bind, caches_.capacity(), most));
    if (recordings_.size() >= kMaxRecordings) recordings_.erase(recordings_.begin());
    recordings_.push_back({std::move(steps), std::move(made), std::move(plan.ids), std::move(plan.positions)});
    return recordings_.back().commands.get();
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

  // What the call gives: its outputs, or their largest elements. Returns how many bytes that are.
  Result<int64_t> read_results(const Graph& graph, const Prepared& prepared, const Places& places, const Call& call) {
    const OutputRows& output = prepared.output;
    largest_.resize(static_cast<size_t>(output.rows) * count_of_largest(output));
    int64_t bytes = 0;
    for (size_t i = 0; largest_.empty() && i < graph.outputs.size(); ++i) {
      read_argument(arguments_.data() + places.at(graph.outputs[i]), call.outputs[i]);
      bytes += graph.values[graph.outputs[i]].bytes.at(prepared.tokens);
    }
    if (largest_.empty()) return bytes;
    std::memcpy(largest_.data(), arguments_.data() + places.largest, std::span(largest_).size_bytes());
    for (const LargestElement& each : largest_) {
      MOTE_REQUIRE(each.index >= 0 && each.index < output.width, Code::kInternal,
                   "the GPU found element %d the largest of %lld", each.index, static_cast<long long>(output.width));
    }
    return static_cast<int64_t>(std::span(largest_).size_bytes());
  }

  Status reserve_output(const OutputRows& output) {
    const auto bytes = static_cast<uint64_t>(output.rows * output.width) * sizeof(float);
    if (output_.bytes() >= bytes && output_.handle() != VK_NULL_HANDLE) return {};
    recordings_.clear();
    output_ = {};
    MOTE_ASSIGN(output_, gpu::GpuBuffer::make(context_, bytes, gpu::Place::device));
    return {};
  }

  // Says what the call does with the part's recurrent states. All of them are at one position.
  Status begin_states(const LoadedPart& part, int64_t tokens, std::byte* to) {
    SlotPlan plan;
    std::optional<int64_t> start;
    const auto is_at = [&](int64_t next) -> Status {
      MOTE_REQUIRE(next == start.value_or(next), Code::kInternal, "states that are at positions %lld and %lld",
                   static_cast<long long>(*start), static_cast<long long>(next));
      start = next;
      return {};
    };
    for (const size_t history : part.histories) MOTE_RETURN_IF_ERROR(is_at(caches_.histories().next(history)));
    for (const size_t each : part.recurrences) MOTE_RETURN_IF_ERROR(is_at(caches_.recurrences().state(each).next()));
    for (const size_t history : part.histories) caches_.histories().begin(history, tokens);
    for (const size_t each : part.recurrences) {
      MOTE_ASSIGN(plan, caches_.recurrences().state(each).begin(tokens, num_kept_ < 0 ? tokens : num_kept_));
    }
    plan.start = static_cast<uint32_t>(start.value_or(0));
    std::memcpy(to, &plan, sizeof(plan));
    return {};
  }

  // Returns the position behind the call, or 0 where the part has no such states.
  int64_t end_states(const LoadedPart& part, int64_t tokens) {
    int64_t end = 0;
    for (const size_t history : part.histories) {
      caches_.histories().end(history, tokens);
      end = std::max(end, caches_.histories().next(history));
    }
    for (const size_t each : part.recurrences) {
      caches_.recurrences().state(each).end();
      end = std::max(end, caches_.recurrences().state(each).next());
    }
    return end;
  }

  Status run(size_t index, const Call& call, const Prepared& prepared, std::vector<DelegateStep>* steps) {
    const Graph& graph = program_->part(index).graph;
    const int64_t tokens = prepared.tokens;
    const Places places = places_of(graph, prepared);
    if (arguments_.bytes() < places.bytes || arguments_.handle() == VK_NULL_HANDLE) {
      recordings_.clear();
      arguments_ = {};
      MOTE_ASSIGN(arguments_, gpu::GpuBuffer::make(context_, places.bytes, gpu::Place::host));
    }
    int64_t end = 0;
    MOTE_RETURN_IF_ERROR(make_room(graph, prepared, call, &end));
    MOTE_ASSIGN(const Recording* recorded, recording(index, prepared, places, steps != nullptr));
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const uint32_t value = graph.inputs[i];
      write_argument(*call.inputs[i], arguments_.data() + places.at(value));
    }
    MOTE_RETURN_IF_ERROR(begin_states(program_->part(index), tokens, arguments_.data() + places.start));
    const auto start = std::chrono::steady_clock::now();
    const Status ran = recorded->run();
    if (!ran.ok()) {  // somewhere within
      recordings_.clear();
      counters_ = {};
      return ran;
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    program_->pace(tokens).note(recorded->work(end), took.count());
    if (steps != nullptr) MOTE_RETURN_IF_ERROR(recorded->add_steps(std::max<int64_t>(end - tokens, 0), end, steps));
    const Result<int64_t> read = read_results(graph, prepared, places, call);
    if (!read.ok()) return read.status();
    if (steps != nullptr && !steps->empty()) {
      const int64_t now = steps->back().end_ns;
      steps->push_back({"vulkan.read", steps->back().origin, now, now, {.bytes = *read, .macs = 0}});
    }
    end = std::max(end, end_states(program_->part(index), tokens));
    caches_.set_positions(end);
    return {};
  }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const gpu::GpuContext> context_;
  Caches caches_;
  gpu::GpuBuffer arena_, parts_, arguments_, counters_;
  gpu::GpuBuffer output_;  // of the calls of which only the largest elements are read
  size_t wanted_largest_ = 0;
  int64_t num_kept_ = -1;                // of the call's tokens; -1: all
  std::vector<LargestElement> largest_;  // of the latest call
  std::vector<Prepared> prepared_;       // of each part
  std::optional<Planned> planned_;
  std::vector<Recorded> recordings_;
};

}  // namespace

Result<std::unique_ptr<Delegate>> Program::open(const DelegateOptions& options) const try {
  return std::unique_ptr<Delegate>(std::make_unique<SessionDelegate>(shared_from_this(), options));
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "no memory for a session on the GPU"); }

}  // namespace mote::vulkan
