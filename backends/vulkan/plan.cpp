#include "backends/vulkan/plan.h"

#include <algorithm>

#include "backends/vulkan/planner.h"

namespace mote::vulkan {
std::array<uint32_t, 3> spread(int64_t groups) {
  const int64_t x = std::min<int64_t>(groups, 65535);
  return {word(x), word(ceil_div(groups, x)), 1};
}

Result<Plan> Planner::plan() {
  for (const LinearSize& slot : graph_.slots) {
    plan_.slot_offsets.push_back(plan_.arena_bytes);
    const Size bytes = Size(slot.at(tokens_)).align_up(kAlignment) + Size(plan_.arena_bytes);
    MOTE_REQUIRE(bytes.at_most(int64_t{1} << 40), Code::kOutOfMemory, "%s: its values take more than 2^40 bytes",
                 graph_.place.c_str());
    plan_.arena_bytes = bytes.unsigned_value();
  }
  for (size_t index = 0; index < graph_.nodes.size(); ++index) {
    if (index < done_) continue;
    begin(index);
    MOTE_RETURN_IF_ERROR(add());
  }
  draw_chains(graph_, tokens_, device_.limits, &plan_);
  return std::move(plan_);
}

Status Planner::add() {
  switch (node_->op) {
    case fb::Op::embedding: return add_embedding();
    case fb::Op::rope_table: return add_rope_table();
    case fb::Op::norm: return add_norm();
    case fb::Op::quantize:
    case fb::Op::quantize_groups: return add_quantize();
    case fb::Op::product: return add_product(false);
    case fb::Op::group_product: return add_product(true);
    case fb::Op::float_product: return add_float_product();
    case fb::Op::rope: return add_rope();
    case fb::Op::attention: return add_attention();
    case fb::Op::heads: return add_heads();
    case fb::Op::map: return add_map();
    case fb::Op::rotate: return add_rotate();
    case fb::Op::reduce: return add_reduce();
    case fb::Op::softmax: return add_softmax();
    case fb::Op::top: return add_top();
    case fb::Op::pick: return add_pick();
    case fb::Op::scatter: return add_scatter();
    case fb::Op::matmul: return add_matmul();
    case fb::Op::short_conv: return add_short_conv();
    case fb::Op::linear_attention: return add_linear_attention();
    case fb::Op::indexer: return add_indexer();
    case fb::Op::latent_heads: return add_latent_heads();
  }
  return invalid("is not known");
}

Status Planner::push(Dispatch dispatch) {
  for (size_t i = 0; i < 3; ++i) {
    MOTE_REQUIRE(dispatch.groups[i] <= device_.limits.maxComputeWorkGroupCount[i], Code::kUnsupportedBackend,
                 "%s.nodes[%zu] (%s): takes %u workgroups: the GPU takes at most %u", graph_.place.c_str(), node_index_,
                 fb::EnumNameOp(node_->op), dispatch.groups[i], device_.limits.maxComputeWorkGroupCount[i]);
  }
  if (dispatch.cost.bytes == 0) dispatch.cost.bytes = bytes_of(dispatch);
  dispatch.origin = node_->origin.c_str();
  plan_.dispatches.push_back(std::move(dispatch));
  return {};
}

Bound counters(int64_t count, Plan* plan) {
  const Bound made{Bind::counters, word(plan->counters_bytes / kAlignment), word(count)};
  plan->counters_bytes += (sizeof(uint32_t) * static_cast<uint64_t>(count) + kAlignment - 1) / kAlignment * kAlignment;
  return made;
}

// Of what it reads and writes whole.
int64_t Planner::bytes_of(const Dispatch& dispatch) const {
  int64_t bytes = 0;
  for (const Bound& each : dispatch.bindings) {
    if (each.kind == Bind::value) bytes += graph_.values[each.index].bytes.at(tokens_);
    if (each.kind == Bind::weight) bytes += static_cast<int64_t>(weights_[each.index]->pieces[each.piece].bytes);
  }
  return bytes;
}

void add_largest(const OutputRows& output, int64_t count, Plan* plan) {
  constexpr int64_t kColumns = 4096;  // of a workgroup of firsts.comp, 64 for each of its lanes
  const int64_t groups = ceil_div(output.width, kColumns), bytes = 4 * output.rows * output.width;
  const int64_t bytes_of_firsts = 8 * output.rows * groups * kLanes;
  plan->parts_bytes = std::max(plan->parts_bytes, static_cast<uint64_t>(bytes_of_firsts));
  plan->dispatches.push_back({.shader = Shader::firsts,
                              .groups = {word(groups), word(output.rows), 1},
                              .bindings = {{Bind::value, output.value}, {Bind::parts}},
                              .writes = 0b10,
                              .push = {word(output.width), word(groups)},
                              .cost = {.bytes = bytes + bytes_of_firsts}});
  plan->dispatches.push_back({.shader = Shader::largest,
                              .groups = {word(output.rows), 1, 1},
                              .bindings = {{Bind::value, output.value}, {Bind::parts}, {Bind::largest}},
                              .writes = 0b100,
                              .push = {word(output.width), word(groups), word(count)},
                              .cost = {.bytes = bytes_of_firsts * count}});
}

Result<Plan> make_plan(const Graph& graph, const std::vector<const DeviceWeight*>& weights, int64_t tokens,
                       int64_t splits, const DeviceTraits& device) {
  return Planner(graph, weights, tokens, splits, device).plan();
}

}  // namespace mote::vulkan
