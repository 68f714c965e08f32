// Functions of elements, and elements picked by others.
#include <algorithm>
#include <utility>

#include "backends/vulkan/planner.h"

namespace mote::vulkan {
namespace {

constexpr int64_t kFunctions = 81, kFirstBinary = 37, kFirstGated = 69, kWhere = 77, kFirstFill = 78, kSoftcap = 80;
constexpr size_t kNumberWord = 24;  // of what is pushed: map.comp

size_t num_operands(int64_t function) {
  if (function == kSoftcap) return 1;
  return function >= kFirstFill ? 0 : function == kWhere ? 3 : function >= kFirstBinary ? 2 : 1;
}

void add_words(const View& view, std::vector<uint32_t>* words) {
  words->push_back(word(view.offset));
  for (const int64_t stride : view.strides) words->push_back(word(stride));
}

std::vector<uint32_t> sizes_of(const View& view) {
  std::vector<uint32_t> words;
  for (const int64_t size : view.sizes) words.push_back(word(size));
  return words;
}

}  // namespace

Result<View> Planner::four(const char* name, const GraphView& from) const {
  MOTE_ASSIGN(View made, words(name, from));
  if (made.sizes.size() != 4) return invalid("%s: must have 4 sizes", name);
  return made;
}

bool Planner::is_gate_of_next(const View& y, const View& gate, const View& up) const {
  if (node_index_ + 1 >= graph_.nodes.size() || value_of(node_->outputs[0]).kind != fb::ValueKind::scratch)
    return false;
  const GraphNode& next = graph_.nodes[node_index_ + 1];
  if (next.op != fb::Op::quantize && next.op != fb::Op::quantize_groups) return false;
  const auto is_made_here = [&](const GraphView& view) { return view.value == node_->outputs[0].value; };
  size_t readers = 0;
  for (const GraphNode& node : graph_.nodes)
    readers += static_cast<size_t>(std::ranges::count_if(node.inputs, is_made_here));
  const Result<RowsView> x = rows("inputs[0]", next.inputs[0]);
  const auto is_float = [&](const View& view) { return graph_.values[view.value].content == fb::Content::float32; };
  return readers == 1 && is_made_here(next.inputs[0]) && !is_overwritten_by(next) && x.ok() && is_float(gate) &&
         is_float(up) && x->view.is_contiguous() && x->view.offset == 0 && y.is_contiguous() && y.offset == 0 &&
         y.sizes[0] == 1 && y.sizes[1] == 1 && y.count() == x->count() * x->columns &&
         (y.sizes[2] == 1 || y.sizes[3] == x->columns);
}

Result<std::vector<View>> Planner::map_operands(const View& y) const {
  std::vector<View> operands;
  for (size_t i = 0; i < node_->inputs.size(); ++i) {
    if ((node_->inputs[i].value >= 0) != (i < num_operands(node_->integers[0]))) {
      return invalid("inputs[%zu]: is %s", i, node_->inputs[i].value < 0 ? "absent" : "one too many");
    }
    if (node_->inputs[i].value < 0) continue;
    MOTE_ASSIGN(View x, four("inputs", node_->inputs[i]));
    if (x.sizes != y.sizes) return invalid("inputs[%zu]: must have the sizes of the output", i);
    operands.push_back(std::move(x));
  }
  return operands;
}

std::optional<Planner::Gate> Planner::own_gate() const {
  const int64_t function = node_->integers[0];
  if (function < kFirstGated || function >= kWhere) return std::nullopt;
  const Result<View> y = four("outputs[0]", node_->outputs[0]);
  if (!y.ok()) return std::nullopt;
  Result<std::vector<View>> operands = map_operands(*y);
  if (!operands.ok() || !is_gate_of_next(*y, (*operands)[0], (*operands)[1])) return std::nullopt;
  const uint32_t of_gates = function + 1 == kWhere ? 0 : word(function - kFirstGated + 1);
  return Gate{of_gates, std::move((*operands)[0]), std::move((*operands)[1]), node_->numbers[0], node_->numbers[1]};
}

Status Planner::add_map() {
  MOTE_RETURN_IF_ERROR(integer_below(0, kFunctions));
  MOTE_ASSIGN(const View y, four("outputs[0]", node_->outputs[0]));
  MOTE_ASSIGN(const std::vector<View> operands, map_operands(y));
  gate_ = own_gate();
  if (gate_) return {};
  std::vector<uint32_t> words = sizes_of(y);
  add_words(y, &words);
  std::vector<Bound> bindings;
  for (const View& x : operands) {
    add_words(x, &words);
    bindings.push_back(bound(x));
  }
  bindings.resize(node_->inputs.size());
  words.resize(kNumberWord);
  for (const float number : node_->numbers) words.push_back(word(number));
  bindings.push_back(bound(y));
  return push({.shader = Shader::map,
               .constants = {word(node_->integers[0])},
               .groups = spread(ceil_div(y.count(), kLanes)),
               .bindings = std::move(bindings),
               .writes = 0b1000,
               .push = std::move(words)});
}

Status Planner::add_pick() {
  MOTE_RETURN_IF_ERROR(integer_below(0, 4));
  const auto axis = static_cast<size_t>(node_->integers[0]);
  MOTE_ASSIGN(View x, four("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const View index, four("inputs[1]", node_->inputs[1]));
  if (value_of(node_->inputs[1]).content != fb::Content::int64) return invalid("inputs[1]: must hold int64");
  for (size_t i = 0; i < 4; ++i) {
    if (i != axis && x.sizes[i] < index.sizes[i]) return invalid("inputs[1]: is larger than inputs[0]");
  }
  MOTE_ASSIGN(const View y, whole_words("outputs[0]", node_->outputs[0], index.count()));
  std::vector<uint32_t> words = sizes_of(index);
  const int64_t stride = std::exchange(x.strides[axis], 0);
  add_words(x, &words);
  add_words(index, &words);
  words.push_back(word(x.sizes[axis]));
  words.push_back(word(stride));
  return push({.shader = Shader::pick,
               .constants = {},
               .groups = spread(ceil_div(index.count(), kLanes)),
               .bindings = {bound(x), bound(index), bound(y)},
               .writes = 0b100,
               .push = std::move(words)});
}

Status Planner::add_scatter() {
  MOTE_RETURN_IF_ERROR(integer_below(0, 4));
  const auto axis = static_cast<size_t>(node_->integers[0]);
  MOTE_ASSIGN(const View x, four("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const View index, four("inputs[1]", node_->inputs[1]));
  MOTE_ASSIGN(const View from, four("inputs[2]", node_->inputs[2]));
  if (value_of(node_->inputs[1]).content != fb::Content::int64) return invalid("inputs[1]: must hold int64");
  for (size_t i = 0; i < 4; ++i) {
    if (from.sizes[i] < index.sizes[i] || (i != axis && x.sizes[i] < index.sizes[i])) {
      return invalid("inputs[1]: is larger than the others");
    }
  }
  MOTE_ASSIGN(const View y, whole_words("outputs[0]", node_->outputs[0], x.count()));
  std::vector<uint32_t> words = sizes_of(x);
  add_words(x, &words);
  for (const int64_t size : index.sizes) words.push_back(word(size));
  add_words(index, &words);
  add_words(from, &words);
  return push({.shader = Shader::scatter,
               .constants = {word(axis)},
               .groups = spread(ceil_div(x.count(), kLanes)),
               .bindings = {bound(x), bound(index), bound(from), bound(y)},
               .writes = 0b1000,
               .push = std::move(words)});
}

Status Planner::add_matmul() {
  MOTE_ASSIGN(const View a, floats("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const View b, floats("inputs[1]", node_->inputs[1]));
  const bool fits = a.sizes.size() == 4 && b.sizes.size() == 4 && a.sizes[0] == b.sizes[0] &&
                    a.sizes[1] == b.sizes[1] && a.sizes[3] == b.sizes[2];
  if (!fits) return invalid("inputs: must be [.., M, K] and [.., K, N]");
  const Size count = Size(a.sizes[0] * a.sizes[1]) * Size(a.sizes[2]) * Size(b.sizes[3]);
  if (!count.at_most(kMaxIndex)) return invalid("outputs[0]: is too large");
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], count.value()));
  std::vector<uint32_t> words{word(a.sizes[1]), word(a.sizes[2]), word(b.sizes[3]), word(a.sizes[3]), word(y.count())};
  add_words(a, &words);
  add_words(b, &words);
  return push({.shader = Shader::matmul,
               .constants = {},
               .groups = spread(ceil_div(y.count(), kLanes)),
               .bindings = {bound(a), bound(b), bound(y)},
               .writes = 0b100,
               .push = std::move(words)});
}

}  // namespace mote::vulkan
