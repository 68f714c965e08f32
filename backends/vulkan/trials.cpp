#include "backends/vulkan/trials.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"

namespace mote::vulkan {
namespace {

using Clock = std::chrono::steady_clock;
using gpu::GpuFeature;
using gpu::GpuFeatures;

constexpr size_t kMostTrials = 3;
constexpr int64_t kTokens = 32, kMostMacs = int64_t{1} << 27;  // of a trial with several tokens
constexpr int kRepetitions = 3;
constexpr float kFused = 1e-4f;  // of the largest: floats that scale sums of groups may be fused or not

LinearSize per_token(int64_t bytes) { return {bytes, 0}; }

GraphView whole_of(int32_t value, int64_t columns) {
  GraphView view{.value = value};
  view.sizes = {{0, 1}, {1, 0}, {0, columns}};
  view.strides = {{columns, 0}, {0, columns}, {0, 1}};
  return view;
}

// Rows that are rounded and multiplied.
Graph graph_of(const GraphNode& product, int64_t columns, int64_t rows) {
  const bool in_groups = product.op == fb::Op::group_product;
  const int64_t sums = columns / 32 * 4;
  Graph graph;
  graph.place = "a trial";
  graph.num_weights = 1;
  graph.slots = {per_token(2 * columns), per_token(in_groups ? sums : 8), per_token(in_groups ? 2 * sums : sums)};
  using Kind = fb::ValueKind;
  using Content = fb::Content;
  graph.values = {
      {Kind::input, Content::float32, per_token(4 * columns)}, {Kind::weight, Content::tiles, {}},
      {Kind::scratch, Content::bytes, graph.slots[0], 0},      {Kind::scratch, Content::bytes, graph.slots[1], 1},
      {Kind::scratch, Content::bytes, graph.slots[2], 2},      {Kind::output, Content::float32, per_token(4 * rows)}};
  GraphNode rounds{.op = in_groups ? fb::Op::quantize_groups : fb::Op::quantize};
  rounds.inputs = {whole_of(0, columns), {}};
  rounds.outputs = {GraphView{.value = 2}, GraphView{.value = 3}, GraphView{.value = 4}};
  rounds.integers.resize(in_groups ? 1 : 3);
  rounds.numbers.resize(2);
  GraphNode multiplies{.op = product.op};
  multiplies.inputs = {
      GraphView{.value = 2}, GraphView{.value = 3}, GraphView{.value = 4}, GraphView{.value = 1}, {}, {}};
  multiplies.outputs = {whole_of(5, rows)};
  multiplies.integers = {0, 0};
  graph.nodes = {std::move(rounds), std::move(multiplies)};
  graph.inputs = {0};
  graph.outputs = {5};
  return graph;
}

Tensor floats_of(float* data, int64_t rows, int64_t columns) {
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = DType::kFloat32;
  tensor.rank = 2;
  tensor.sizes = {rows, columns};
  tensor.set_contiguous_strides();
  return tensor;
}

bool are_equal(const std::vector<float>& a, const std::vector<float>& b, bool is_exact) {
  float largest = 0.0f;
  for (const float each : b) largest = std::max(largest, std::abs(each));
  const float allowed = is_exact ? 0.0f : kFused * largest;
  return std::ranges::equal(a, b, [&](float x, float y) { return std::abs(x - y) <= allowed; });
}

// The numbers of a form that differ from it in one of them by a factor of two.
std::vector<ProductForm> neighbours(const ProductForm& form, bool is_of_many) {
  std::vector<ProductForm> forms;
  const auto add = [&](uint32_t ProductForm::* number) {
    for (const bool is_double : {true, false}) {
      ProductForm other = form;
      other.*number = is_double ? 2 * other.*number : other.*number / 2;
      if (other.*number > 0 && parse_product_form(form_text(other)) == other) forms.push_back(other);
    }
  };
  add(&ProductForm::splits);
  add(&ProductForm::blocks);
  if (is_of_many) add(&ProductForm::tokens);
  if (form.uses.has(GpuFeature::kStaging)) add(&ProductForm::stage);
  return forms;
}

}  // namespace

Result<std::shared_ptr<ProductTrials>> ProductTrials::make(const std::shared_ptr<Program>& program) {
  auto made = std::make_shared<ProductTrials>();
  made->program_ = program->without_parts();
  for (size_t index = 0; index < program->num_parts(); ++index) {
    const LoadedPart& part = program->part(index);
    for (const GraphNode& node : part.graph.nodes) {
      if (node.op == fb::Op::product || node.op == fb::Op::group_product) MOTE_RETURN_IF_ERROR(made->add(part, node));
    }
  }
  std::ranges::sort(made->trials_, std::greater(),
                    [](const Trial& each) { return each.times * each.columns * each.rows; });
  if (made->trials_.size() > kMostTrials) made->trials_.resize(kMostTrials);
  int64_t most = 0;
  for (const Trial& trial : made->trials_) most = std::max(most, trial.columns * std::max<int64_t>(trial.tokens, 1));
  uint32_t state = 1;
  for (int64_t i = 0; i < most; ++i) {
    state = state * 1664525u + 1013904223u;
    made->input_.push_back(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f);
  }
  return made;
}

// Products of equal shapes are one trial.
Status ProductTrials::add(const LoadedPart& part, const GraphNode& node) {
  const GraphValue& value = part.graph.values[static_cast<size_t>(node.inputs[3].value)];
  if (value.kind != fb::ValueKind::weight || value.content != fb::Content::tiles) return {};
  const DeviceWeight& weight = *part.weights[value.weight];
  if (weight.tensor.rank != 2 || node.integers[1] != 0) return {};
  const auto is_same = [&](const Trial& trial) {
    const LoadedPart& known = program_->part(trial.part);
    const Tensor& tensor = known.weights[0]->tensor;
    return known.graph.nodes[1].op == node.op && tensor.bits == weight.tensor.bits &&
           tensor.group_size == weight.tensor.group_size && tensor.sizes == weight.tensor.sizes &&
           (tensor.scales.columns == weight.tensor.scales.columns);
  };
  if (const auto known = std::ranges::find_if(trials_, is_same); known != trials_.end()) {
    ++known->times;
    return {};
  }
  const int64_t rows = weight.tensor.size(0), columns = weight.tensor.size(1);
  Trial trial{.part = program_->num_parts(),
              .is_exact = node.op == fb::Op::product,
              .columns = columns,
              .rows = rows,
              .times = 1};
  trial.tokens = std::min(kTokens, kMostMacs / std::max<int64_t>(rows * columns, 1));
  program_->add_part({graph_of(node, columns, rows), {&weight}, {}, {}, {}});
  trials_.push_back(std::move(trial));
  return {};
}

Status ProductTrials::run(Trial& trial, const ProductForms& forms, bool is_of_many, std::vector<float>* y, double* ns) {
  program_->set_products(forms);
  const int64_t tokens = is_of_many ? trial.tokens : 1;
  MOTE_ASSIGN(const std::unique_ptr<Delegate> delegate, program_->open({.max_tokens = tokens}));
  y->resize(static_cast<size_t>(tokens * trial.rows));
  const Tensor in = floats_of(input_.data(), tokens, trial.columns);
  Tensor out = floats_of(y->data(), tokens, trial.rows);
  const std::array<const Tensor*, 1> ins = {&in};
  const std::array<Tensor*, 1> outs = {&out};
  Call call{};
  call.inputs = ins;
  call.outputs = outs;
  KernelContext context;
  MOTE_RETURN_IF_ERROR(delegate->prepare(trial.part, call, tokens).status());
  // Once for the driver to make what it puts off; the bits are the last ones'.
  const int repetitions = ns == nullptr ? 1 : kRepetitions;
  for (int i = 0; i < repetitions; ++i) {
    std::vector<DelegateStep> steps;
    const Clock::time_point start = Clock::now();
    MOTE_RETURN_IF_ERROR(delegate->execute_measured(trial.part, call, context, ns == nullptr ? nullptr : &steps));
    if (ns == nullptr || i == 0) continue;
    const double wall = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    const double taken = steps.empty() ? wall : static_cast<double>(steps.back().end_ns - steps.back().start_ns);
    *ns = i == 1 ? taken : std::min(*ns, taken);
  }
  return {};
}

Status ProductTrials::compare(GpuFeatures features) {
  const ProductForms plain = forms_that_use({}, program_->context()->is_cpu());
  const ProductForms forms = forms_that_use(features, program_->context()->is_cpu());
  for (Trial& trial : trials_) {
    for (const bool is_of_many : {false, true}) {
      if (is_of_many && trial.tokens < 2) continue;
      std::vector<float>& expected = trial.expected[is_of_many ? 1 : 0];
      if (expected.empty()) MOTE_RETURN_IF_ERROR(run(trial, plain, is_of_many, &expected, nullptr));
      if (features.bits() == 0) continue;
      std::vector<float> y;
      MOTE_RETURN_IF_ERROR(run(trial, forms, is_of_many, &y, nullptr));
      MOTE_REQUIRE(are_equal(y, expected, trial.is_exact), Code::kUnsupportedBackend,
                   "products of %lld columns with %s are not those without it", static_cast<long long>(trial.columns),
                   to_string(features).c_str());
    }
  }
  return {};
}

Result<double> ProductTrials::time(const ProductForm& form, bool is_of_many) {
  double all = 0;
  for (Trial& trial : trials_) {
    if (is_of_many && trial.tokens < 2) continue;
    const std::vector<float>& expected = trial.expected[is_of_many ? 1 : 0];
    std::vector<float> y;
    double ns = 0;
    MOTE_RETURN_IF_ERROR(run(trial, {form, form}, is_of_many, &y, &ns));
    MOTE_REQUIRE(are_equal(y, expected, trial.is_exact), Code::kUnsupportedBackend, "%s is wrong",
                 form_text(form).c_str());
    all += ns * static_cast<double>(trial.times);
  }
  return all;
}

// First which features, with their usual numbers, then these, one after the other, for as long as one of them helps.
ProductForm ProductTrials::fastest(GpuFeatures features, bool is_of_many, std::chrono::nanoseconds budget) {
  const Clock::time_point start = Clock::now();
  const bool is_cpu = program_->context()->is_cpu();
  const auto usual = [&](GpuFeatures uses) {
    const ProductForms forms = forms_that_use(uses, is_cpu);
    return is_of_many ? forms.many : forms.one;
  };
  const ProductForms first = usual_forms(features, is_cpu);
  Measured best{is_of_many ? first.many : first.one};
  std::vector<ProductForm> tried;
  const auto try_form = [&](const ProductForm& form) {
    if (std::ranges::find(tried, form) != tried.end() || (!tried.empty() && Clock::now() - start > budget))
      return false;
    tried.push_back(form);
    const Result<double> ns = time(form, is_of_many);
    MOTE_LOG_LINE(kInfo, "vulkan: products %s of %s: %s", form_text(form).c_str(), is_of_many ? "prompts" : "a token",
                  ns.ok() ? format("%.3f ms", *ns * 1e-6).c_str() : ns.status().message().c_str());
    const bool is_better = ns.ok() && (best.ns == 0 || *ns < best.ns);
    if (is_better) best = {form, *ns};
    return is_better;
  };
  try_form(best.form);
  const uint32_t all = (features & product_features()).bits();
  for (uint32_t bits = 0; bits <= all; ++bits) {
    if ((bits & ~all) == 0) try_form(usual(GpuFeatures::of_bits(bits)));
  }
  for (bool has_improved = true; has_improved;) {
    has_improved = false;
    for (const ProductForm& form : neighbours(best.form, is_of_many)) has_improved = try_form(form) || has_improved;
  }
  return best.form;
}

Result<ProductForms> ProductTrials::tune(GpuFeatures features, std::chrono::nanoseconds budget) {
  MOTE_RETURN_IF_ERROR(compare({}));
  const ProductForm one = fastest(features, false, budget / 2);
  return ProductForms{one, fastest(features, true, budget / 2)};
}

}  // namespace mote::vulkan
