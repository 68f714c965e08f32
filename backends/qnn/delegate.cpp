#include "backends/qnn/delegate.h"

#include <algorithm>
#include <new>

#include "kernels/support/float_bits.h"

namespace mote::qnn {
namespace {

constexpr float kHidden = -30000.0f;  // of a score, as float16: its weight is 0

bool is_finite(uint16_t half) { return (half & 0x7c00) != 0x7c00; }

DType dtype_of(const fb::ValueT& value) { return value.whole ? DType::kInt64 : DType::kFloat32; }

bool fits(const Tensor& tensor, const fb::ValueT& value) {
  const Shape& shape = value.shape;
  bool same = tensor.dtype == dtype_of(value) && tensor.bits == 0 && tensor.is_contiguous() &&
              tensor.rank == static_cast<int>(shape.size());
  for (size_t i = 0; same && i < shape.size(); ++i) same = tensor.sizes[i] == shape[i];
  return same;
}

// The argument of a call that a value is, if it fits.
template <typename List> Status check_argument(const char* name, const List& list, const fb::ValueT& value) {
  const auto index = static_cast<size_t>(value.index);
  MOTE_REQUIRE(index < list.size() && fits(*list[index], value), Code::kInvalidProgram,
               "%s[%zu]: must be a contiguous %s tensor of shape %s", name, index, dtype_name(dtype_of(value)),
               shape_text(value.shape).c_str());
  return {};
}

// For each token, the slots before `first` and then the call's own tokens: what it adds to their scores, if it sees
// them (mask), or how far they lie behind it (distances).
void fill_keys(const fb::PartT& part, const fb::ValueT& value, int64_t first, uint16_t* to) {
  const bool is_mask = value.kind == fb::ValueKind::mask;
  const uint16_t hidden = is_mask ? float32_to_float16(kHidden) : uint16_t{0};
  const auto tokens = int64_t{part.tokens}, capacity = int64_t{part.capacity};
  for (int64_t position = first; position < first + tokens; ++position) {
    const auto number = [&](int64_t other) {
      const bool sees = other <= position && (value.window == 0 || other > position - value.window);
      if (!sees) return hidden;
      return is_mask ? uint16_t{0} : float32_to_float16(static_cast<float>(other - position));
    };
    for (int64_t slot = 0; slot < capacity; ++slot) *to++ = slot < first ? number(slot) : hidden;
    for (int64_t other = first; other < first + tokens; ++other) *to++ = number(other);
  }
}

class SessionDelegate final : public Delegate {
 public:
  explicit SessionDelegate(std::shared_ptr<const Program> program)
      : program_(std::move(program)), caches_(std::make_shared<Caches>(program_->parts().states)) {}

  Result<size_t> prepare(size_t part, const Call& call, int64_t tokens) override {
    const Graph& graph = program_->parts().graphs[part];
    MOTE_RETURN_IF_ERROR(at_place(program_->place(part), check_call(graph, call, tokens)));
    return size_t{0};
  }

  Status execute(size_t part, const Call& call, KernelContext& context) override try {
    const int64_t kept = context.sequences.empty() ? -1 : context.sequences.front().num_kept;
    return at_place(program_->place(part), run(part, call, kept));
  } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "no memory for a call of QNN"}; }

  uint64_t held_bytes() const override { return caches_->held_bytes(); }
  bool seek(int64_t position) override { return caches_->seek(position); }
  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const override { return caches_->snapshot(); }
  Status restore(const DelegateSnapshot& snapshot) override { return caches_->restore(snapshot); }
  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const override {
    return caches_->import(bytes);
  }
  std::optional<DType> cache_dtype(int32_t state) const override {
    return caches_->has_state(state) ? std::optional(DType::kFloat16) : std::nullopt;
  }
  Status read_cache(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const override {
    caches_->read(state, caches_->positions(), keys, values);
    return {};
  }
  Status write_cache(int32_t state, int64_t positions, std::span<const std::byte> keys,
                     std::span<const std::byte> values) override try {
    return caches_->write(state, positions, keys, values);
  } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "no memory for keys and values"}; }

 private:
  struct CallMemory {
    std::shared_ptr<Caches> caches;
    std::vector<std::vector<uint16_t>> made;
  };

  static Status check_call(const Graph& graph, const Call& call, int64_t tokens) {
    MOTE_REQUIRE(tokens == int64_t{graph.part.tokens}, Code::kInvalidProgram, "tokens = %u: the call has %lld",
                 graph.part.tokens, static_cast<long long>(tokens));
    size_t num_outputs = 0;
    for (const auto& value : graph.part.values) {
      if (value->kind == fb::ValueKind::input) MOTE_RETURN_IF_ERROR(check_argument("inputs", call.inputs, *value));
      if (value->kind != fb::ValueKind::output) continue;
      MOTE_RETURN_IF_ERROR(check_argument("outputs", call.outputs, *value));
      ++num_outputs;
    }
    MOTE_REQUIRE(num_outputs == call.outputs.size(), Code::kInvalidProgram, "has %zu outputs: the call wants %zu",
                 num_outputs, call.outputs.size());
    if (graph.part.positions < 0) return {};
    const auto index = static_cast<size_t>(graph.part.positions);
    const bool fits = index < call.inputs.size() && call.inputs[index]->dtype == DType::kInt64 &&
                      call.inputs[index]->num_elements() == tokens && call.inputs[index]->is_contiguous();
    MOTE_REQUIRE(fits, Code::kInvalidProgram, "positions = %zu: must be an int64 input of T elements", index);
    return {};
  }

  // The position of the call's first token. kept: tokens of the call that stay; -1: all
  Result<int64_t> first_position(const Graph& graph, const Call& call, int64_t kept) const {
    if (graph.part.positions < 0) return 0;
    const int64_t first = call.inputs[static_cast<size_t>(graph.part.positions)]->as<int64_t>()[0];
    for (const auto& [state, sizes] : graph.states) {
      MOTE_REQUIRE(first == caches_->positions_of(state), Code::kInvalidArgument, "position %lld: QNN is at %lld",
                   static_cast<long long>(first), static_cast<long long>(caches_->positions_of(state)));
    }
    const int64_t end = first + (kept < 0 ? int64_t{graph.part.tokens} : kept);
    MOTE_REQUIRE(graph.states.empty() || end <= int64_t{graph.part.capacity}, Code::kUnsupportedBackend,
                 "%lld positions: the file was exported for %u on QNN", static_cast<long long>(end),
                 graph.part.capacity);
    return first;
  }

  Status run(size_t part, const Call& call, int64_t kept) {
    const Graph& graph = program_->parts().graphs[part];
    MOTE_ASSIGN(const int64_t first, first_position(graph, call, kept));
    if (!graph.states.empty()) caches_->reserve();
    const auto memory = std::make_shared<CallMemory>(CallMemory{caches_, {}});
    std::vector<Buffer> buffers;
    for (const uint32_t index : graph.reads) buffers.push_back(given(graph, index, call, first, &memory->made));
    for (const uint32_t index : graph.writes) {
      std::vector<uint16_t>& made = memory->made.emplace_back(elements(graph.value(index).shape));
      buffers.push_back({made.data(), made.size() * sizeof(uint16_t)});
    }
    MOTE_RETURN_IF_ERROR(program_->contexts().execute(part, buffers, memory));
    return take(graph, call, first, std::span(buffers).subspan(graph.reads.size()));
  }

  Buffer given(const Graph& graph, uint32_t index, const Call& call, int64_t first,
               std::vector<std::vector<uint16_t>>* made) {
    const fb::ValueT& value = graph.value(index);
    const size_t count = elements(value.shape);
    if (value.kind == fb::ValueKind::past_keys) return {caches_->keys(value.index), count * sizeof(uint16_t)};
    if (value.kind == fb::ValueKind::past_values) return {caches_->values(value.index), count * sizeof(uint16_t)};
    std::vector<uint16_t>& halves = made->emplace_back(count);
    if (value.kind != fb::ValueKind::input) {
      fill_keys(graph.part, value, first, halves.data());
    } else {
      const Tensor& from = *call.inputs[static_cast<size_t>(value.index)];
      for (size_t i = 0; i < count; ++i)
        halves[i] = float32_to_float16(value.whole ? static_cast<float>(from.as<int64_t>()[i]) : from.as<float>()[i]);
    }
    return {halves.data(), count * sizeof(uint16_t)};
  }

  // What the call computed: outputs, and rows for the caches. Errors: kInternal where it is no number.
  Status take(const Graph& graph, const Call& call, int64_t first, std::span<const Buffer> written) {
    std::map<int32_t, std::pair<const uint16_t*, const uint16_t*>> rows;
    for (size_t i = 0; i < graph.writes.size(); ++i) {
      const fb::ValueT& value = graph.value(graph.writes[i]);
      const auto* halves = static_cast<const uint16_t*>(written[i].data);
      if (value.kind == fb::ValueKind::new_keys) rows[value.index].first = halves;
      if (value.kind == fb::ValueKind::new_values) rows[value.index].second = halves;
      if (value.kind != fb::ValueKind::output) continue;
      const size_t count = elements(value.shape);
      MOTE_REQUIRE(std::all_of(halves, halves + count, is_finite), Code::kInternal,
                   "outputs[%d]: QNN gave what is no number", value.index);
      const Tensor& to = *call.outputs[static_cast<size_t>(value.index)];
      if (value.whole)
        std::transform(halves, halves + count, to.as<int64_t>(),
                       [](uint16_t half) { return static_cast<int64_t>(float16_to_float32(half)); });
      else
        to_float32(halves, DType::kFloat16, static_cast<int64_t>(count), to.as<float>());
    }
    for (const auto& [state, both] : rows)
      caches_->append(state, first, int64_t{graph.part.tokens}, both.first, both.second);
    return {};
  }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<Caches> caches_;  // which a call that hangs goes on reading
};

}  // namespace

Result<Parts> Parts::verify(const DelegateSource& source) {
  Parts parts;
  for (const DelegatePart& part : source.parts) {
    MOTE_ASSIGN(Graph graph, verify_graph(part));
    for (const auto& [state, sizes] : graph.states) {
      const auto [entry, is_new] = parts.states.try_emplace(state, sizes);
      MOTE_REQUIRE(is_new || entry->second == sizes, Code::kInvalidProgram,
                   "%s: state %d has other sizes in another part", part.place.c_str(), state);
    }
    parts.graphs.push_back(std::move(graph));
  }
  return parts;
}

Result<std::shared_ptr<const Program>> Program::load(const Library& library, const DelegateSource& source, Parts parts,
                                                     const Lost& lost) {
  std::shared_ptr<Program> program(new Program);
  program->parts_ = std::move(parts);
  for (const DelegatePart& part : source.parts) program->places_.push_back(part.place);
  MOTE_ASSIGN(program->contexts_, Contexts::load(library, program->parts_.graphs, source, lost));
  return std::shared_ptr<const Program>(std::move(program));
}

Result<std::unique_ptr<Delegate>> Program::open(const DelegateOptions&) const {
  return std::unique_ptr<Delegate>(std::make_unique<SessionDelegate>(shared_from_this()));
}

}  // namespace mote::qnn
