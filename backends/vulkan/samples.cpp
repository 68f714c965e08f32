#include <algorithm>
#include <array>
#include <cmath>

#include "backends/vulkan/proof.h"
#include "base/memory.h"
#include "kernels/op.h"

namespace mote::vulkan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostPrompt = 64, kMostSteps = 3;  // tokens that are tried
// Wrong variants give other numbers, not others in the last places: caches of 16 bits may not fail here.
constexpr float kLeastTolerance = 1e-2f;
constexpr int64_t kMostCpuBytes = int64_t{64} << 20;

uint64_t ns_since(Clock::time_point start) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// A sample whose data nobody else owns.
struct OwnSample {
  std::vector<int32_t> prompt, expected, probes;
  std::vector<float> logits;
  float tolerance = 0.0f, largest = 0.0f;
};

std::optional<OwnSample> first_short(const std::vector<DelegateSample>& samples) {
  for (const DelegateSample& from : samples) {
    const bool fits = !from.prompt.empty() && from.prompt.size() <= kMostPrompt && !from.expected.empty() &&
                      from.logits.size() == from.expected.size() * from.probes.size();
    if (!fits) continue;
    OwnSample sample{{from.prompt.begin(), from.prompt.end()},
                     {from.expected.begin(), from.expected.end()},
                     {from.probes.begin(), from.probes.end()},
                     {from.logits.begin(), from.logits.end()},
                     std::max(from.tolerance, kLeastTolerance)};
    for (const float logit : sample.logits) sample.largest = std::max(sample.largest, std::abs(logit));
    if (sample.largest > 0.0f) return sample;  // a file that is being exported has zeros there
  }
  return std::nullopt;
}

// A part that takes ids and positions and gives logits, as the methods of a whole decoder do.
struct WholePart {
  size_t index = 0, ids = 0, positions = 1;  // the last two of its inputs
};

std::optional<WholePart> whole(const Program& program, size_t index) {
  const Graph& graph = program.part(index).graph;
  const Result<Plan> plan = program.plan(index, 1, {});
  const bool has_both = plan.ok() && graph.inputs.size() == 2 && graph.outputs.size() == 1 && plan->ids.size() == 1 &&
                        !plan->positions.empty();
  if (!has_both || graph.values[graph.outputs[0]].content != fb::Content::float32) return std::nullopt;
  WholePart part{index};
  if (graph.inputs[0] != plan->ids[0].first) std::swap(part.ids, part.positions);
  const bool are_told_apart =
      graph.inputs[part.ids] == plan->ids[0].first &&
      std::ranges::all_of(plan->positions, [&](uint32_t value) { return value == graph.inputs[part.positions]; });
  return are_told_apart ? std::optional(part) : std::nullopt;
}

Tensor row_of(DType dtype, void* data, int64_t count) {
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = 2;
  tensor.sizes = {1, count};
  tensor.set_contiguous_strides();
  return tensor;
}

// One sequence on the device, with the delegate that a session would have.
class Sequence {
 public:
  Sequence(const Program& program, Delegate& delegate) : program_(program), delegate_(delegate) {}

  // The logits of the last token.
  Status feed(const WholePart& part, std::span<const int32_t> tokens) {
    const Graph& graph = program_.part(part.index).graph;
    const auto count = static_cast<int64_t>(tokens.size());
    if (graph.values[graph.inputs[part.ids]].bytes.at(count) != 4 * count) {  // for a fixed number of tokens
      MOTE_REQUIRE(count > 1, Code::kInvalidProgram, "%s: takes no single token", graph.place.c_str());
      for (size_t i = 0; i < tokens.size(); ++i) MOTE_RETURN_IF_ERROR(feed(part, tokens.subspan(i, 1)));
      return {};
    }
    std::vector<int64_t> ids(tokens.begin(), tokens.end()), positions(tokens.size());
    for (int64_t& position : positions) position = position_++;
    const fb::ValueKind output = graph.values[graph.outputs[0]].kind;
    MOTE_REQUIRE(output == fb::ValueKind::output, Code::kInternal, "%s: gives no output", graph.place.c_str());
    const int64_t all = graph.values[graph.outputs[0]].bytes.at(count) / 4;
    given_.resize(static_cast<size_t>(all));
    width_ = static_cast<size_t>(graph.values[graph.outputs[0]].bytes.at(1) / 4);
    std::array<Tensor, 2> inputs;
    inputs[part.ids] = row_of(DType::kInt64, ids.data(), count);
    inputs[part.positions] = row_of(DType::kInt64, positions.data(), count);
    Tensor logits = row_of(DType::kFloat32, given_.data(), all);
    const std::array<const Tensor*, 2> ins = {&inputs[0], &inputs[1]};
    const std::array<Tensor*, 1> outs = {&logits};
    Call call{};
    call.inputs = ins;
    call.outputs = outs;
    KernelContext context;
    MOTE_RETURN_IF_ERROR(delegate_.prepare(part.index, call, count).status());
    const Clock::time_point start = Clock::now();
    MOTE_RETURN_IF_ERROR(delegate_.execute(part.index, call, context));
    ns_ = ns_since(start);
    return {};
  }

  uint64_t ns() const { return ns_; }  // of the latest call
  std::span<const float> logits() const { return std::span(given_).last(std::min(width_, given_.size())); }

 private:
  const Program& program_;
  Delegate& delegate_;
  std::vector<float> given_;
  size_t width_ = 0;
  int64_t position_ = 0;
  uint64_t ns_ = 0;
};

Status compare(const OwnSample& sample, size_t step, std::span<const float> logits) {
  const auto logit = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < logits.size() ? logits[static_cast<size_t>(id)] : NAN;
  };
  double worst = 0.0;
  for (size_t i = 0; i < sample.probes.size(); ++i) {
    const float error = std::abs(logit(sample.probes[i]) - sample.logits[step * sample.probes.size() + i]);
    worst = std::isfinite(error) ? std::max(worst, static_cast<double>(error)) : HUGE_VAL;
  }
  const double allowed = static_cast<double>(sample.tolerance * sample.largest);
  const double behind =
      static_cast<double>(*std::ranges::max_element(logits) - logit(sample.expected[step])) - 2.0 * allowed;
  MOTE_REQUIRE(worst <= allowed && behind <= 0.0, Code::kUnsupportedBackend,
               "its logits are not those of PyTorch: token %zu of a sample differs by %.2g of the largest, and %.2g "
               "is allowed",
               step, worst / static_cast<double>(sample.largest), static_cast<double>(sample.tolerance));
  return {};
}

// The shortest time of a single token, in nanoseconds.
Result<uint64_t> replay(const Program& program, const OwnSample& sample) {
  std::optional<WholePart> first, last;
  for (size_t i = 0; i < program.num_parts(); ++i) {
    const std::optional<WholePart> part = whole(program, i);
    if (part && !first) first = part;
    if (part) last = part;
  }
  if (!first) return uint64_t{0};
  const size_t num_steps = std::min(kMostSteps, sample.expected.size());
  MOTE_ASSIGN(const std::unique_ptr<Delegate> delegate,
              program.open({.max_tokens = static_cast<int64_t>(kMostPrompt),
                            .context_length = static_cast<int64_t>(sample.prompt.size() + num_steps)}));
  Sequence sequence(program, *delegate);
  MOTE_RETURN_IF_ERROR(sequence.feed(*first, sample.prompt));
  uint64_t shortest = 0;
  for (size_t step = 0; step < num_steps; ++step) {
    MOTE_RETURN_IF_ERROR(compare(sample, step, sequence.logits()));
    if (step + 1 == num_steps) break;
    MOTE_RETURN_IF_ERROR(sequence.feed(*last, std::span(sample.expected).subspan(step, 1)));
    shortest = shortest == 0 ? sequence.ns() : std::min(shortest, sequence.ns());
  }
  return shortest;
}

struct CpuProduct {
  const Tensor* weight = nullptr;
  std::string_view activations;
  int64_t bytes = 0;
};

// Of the last whole part, which is that of single tokens.
std::vector<CpuProduct> products_of(const Program& program) {
  std::optional<size_t> last;
  for (size_t i = 0; i < program.num_parts(); ++i) {
    if (whole(program, i)) last = i;
  }
  std::vector<CpuProduct> products;
  if (!last) return products;
  const LoadedPart& part = program.part(*last);
  for (const GraphNode& node : part.graph.nodes) {
    const bool is_float = node.op == fb::Op::float_product, in_groups = node.op == fb::Op::group_product;
    if (!is_float && !in_groups && node.op != fb::Op::product) continue;
    if (node.integers[1] < 0) continue;  // matrices of heads, which are small
    const GraphView& view = node.inputs[is_float ? 1 : 3];
    if (view.value < 0 || part.graph.values[static_cast<size_t>(view.value)].kind != fb::ValueKind::weight) continue;
    const DeviceWeight& weight = *part.weights[part.graph.values[static_cast<size_t>(view.value)].weight];
    int64_t bytes = 0;
    for (const WeightPiece& piece : weight.pieces) bytes += static_cast<int64_t>(piece.bytes);
    products.push_back({&weight.tensor, is_float ? "float" : in_groups ? "grouped_int8" : "int8", bytes});
  }
  return products;
}

Status multiply(const Op& op, const CpuProduct& product, ThreadPool* threads) {
  std::vector<float> x(static_cast<size_t>(product.weight->size(1)), 0.5f);
  std::vector<float> y(static_cast<size_t>(product.weight->size(0)));
  Tensor in = row_of(DType::kFloat32, x.data(), static_cast<int64_t>(x.size()));
  Tensor out = row_of(DType::kFloat32, y.data(), static_cast<int64_t>(y.size()));
  const std::array<const Tensor*, 2> ins = {&in, product.weight};
  const std::array<Tensor*, 1> outs = {&out};
  const std::array<Attribute, 1> attributes = {Attribute{"activations", {}, {}, product.activations}};
  Call call{};
  call.inputs = ins;
  call.outputs = outs;
  call.attributes = attributes;
  MOTE_RETURN_IF_ERROR(op.check(call));
  const AlignedMemory scratch = allocate_aligned(op.scratch_bytes(call, threads->num_threads()));
  MOTE_REQUIRE(scratch != nullptr, Code::kOutOfMemory, "no memory for a product");
  KernelContext context;
  context.threads = threads;
  context.scratch = {scratch.get(), op.scratch_bytes(call, threads->num_threads())};
  return op.run(call, context);
}

}  // namespace

Attempt attempt_of(std::shared_ptr<Program> program, const DelegateSource& source) {
  return [program = std::move(program), file = source.file,
          sample = first_short(source.samples)](gpu::GpuFeatures features) -> Result<uint64_t> {
    program->set_features(features);
    MOTE_RETURN_IF_ERROR(program->make_pipelines());
    return sample ? replay(*program, *sample) : Result<uint64_t>(uint64_t{0});
  };
}

uint64_t cpu_ns_of(const Program& program, const DelegateSource& source) {
  const Op* op = find_op("mote.linear");
  const std::vector<CpuProduct> products = products_of(program);
  if (op == nullptr || products.empty() || !source.make_threads) return 0;
  const Result<std::unique_ptr<ThreadPool>> threads = source.make_threads();
  if (!threads.ok()) return 0;
  int64_t all = 0, done = 0;
  uint64_t ns = 0;
  for (const CpuProduct& product : products) {
    all += product.bytes;
    if (done >= kMostCpuBytes) continue;
    if (done == 0 && !multiply(*op, product, threads->get()).ok()) return 0;  // its pages are read once before
    const Clock::time_point start = Clock::now();
    if (!multiply(*op, product, threads->get()).ok()) return 0;
    ns += ns_since(start);
    done += product.bytes;
  }
  if (done == 0) return 0;
  return static_cast<uint64_t>(static_cast<double>(ns) * static_cast<double>(all) / static_cast<double>(done));
}

}  // namespace mote::vulkan
