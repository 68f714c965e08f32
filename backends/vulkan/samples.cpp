#include <algorithm>
#include <utility>

#include "backends/proof/products.h"
#include "backends/proof/sample.h"
#include "backends/vulkan/proof.h"

namespace mote::vulkan {
namespace {

// A part that takes ids and positions and gives logits, as the methods of a whole decoder do.
std::optional<WholePart> whole(const Program& program, size_t index) {
  const Graph& graph = program.part(index).graph;
  const Result<Plan> plan = program.plan(index, 1, {});
  const bool has_both = plan.ok() && graph.inputs.size() == 2 && graph.outputs.size() == 1 && plan->ids.size() == 1 &&
                        !plan->positions.empty();
  if (!has_both) return std::nullopt;
  const GraphValue& output = graph.values[graph.outputs[0]];
  if (output.content != fb::Content::float32 || output.kind != fb::ValueKind::output) return std::nullopt;
  WholePart part{index};
  if (graph.inputs[0] != plan->ids[0].first) std::swap(part.ids, part.positions);
  const bool are_told_apart =
      graph.inputs[part.ids] == plan->ids[0].first &&
      std::ranges::all_of(plan->positions, [&](uint32_t value) { return value == graph.inputs[part.positions]; });
  if (!are_told_apart) return std::nullopt;
  const auto& ids = graph.values[graph.inputs[part.ids]].bytes;
  part.tokens = ids.tokens == 0 ? ids.constant / 4 : 0;
  part.width = output.bytes.at(1) / 4;
  part.every_row = output.bytes.tokens != 0;
  return part;
}

std::vector<WholePart> whole_parts(const Program& program) {
  std::vector<WholePart> parts;
  for (size_t i = 0; i < program.num_parts(); ++i) {
    if (const auto part = whole(program, i)) parts.push_back(*part);
  }
  return parts;
}

// Of the last whole part, which is that of single tokens.
std::vector<DelegateProduct> products_of(const Program& program) {
  std::vector<DelegateProduct> products;
  const std::vector<WholePart> parts = whole_parts(program);
  if (parts.empty()) return products;
  const LoadedPart& part = program.part(parts.back().index);
  for (const GraphNode& node : part.graph.nodes) {
    const bool is_float = node.op == fb::Op::float_product, in_groups = node.op == fb::Op::group_product;
    if (!is_float && !in_groups && node.op != fb::Op::product) continue;
    if (node.integers[1] < 0) continue;  // matrices of heads, which are small
    const GraphView& view = node.inputs[is_float ? 1 : 3];
    if (view.value < 0 || part.graph.values[static_cast<size_t>(view.value)].kind != fb::ValueKind::weight) continue;
    const DeviceWeight& weight = *part.weights[part.graph.values[static_cast<size_t>(view.value)].weight];
    products.push_back({weight.tensor, is_float ? "float" : in_groups ? "grouped_int8" : "int8"});
  }
  return products;
}

}  // namespace

Attempt attempt_of(std::shared_ptr<Program> program, const DelegateSource& source) {
  return [program = std::move(program), file = source.file,
          sample = proof::first_short(source.samples)](gpu::GpuFeatures features) -> Result<uint64_t> {
    program->set_features(features);
    MOTE_RETURN_IF_ERROR(program->make_pipelines());
    return sample ? proof::replay(*program, whole_parts(*program), *sample) : Result<uint64_t>(uint64_t{0});
  };
}

uint64_t cpu_ns_of(const Program& program, const DelegateSource& source) {
  return proof::cpu_ns_of(products_of(program), source);
}

}  // namespace mote::vulkan
