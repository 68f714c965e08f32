// Functions of rows and of elements.
#include <bit>
#include <cmath>

#include "backends/vulkan/planner.h"
#include "kernels/formats.h"

namespace mote::vulkan {
namespace {

constexpr int64_t kFunctions = 28, kFirstBinary = 22, kLastBinary = 27;

}  // namespace

Status Planner::add_rope_table() {
  MOTE_RETURN_IF_ERROR(integer_below(0, 2));
  MOTE_ASSIGN(const View positions, integers("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const View frequencies, whole("inputs[1]", node_->inputs[1], 0));
  const int64_t count = positions.count(), pairs = frequencies.count();
  MOTE_ASSIGN(const View cosines, whole("outputs[0]", node_->outputs[0], 2 * count * pairs));
  MOTE_ASSIGN(const View sines, whole("outputs[1]", node_->outputs[1], 2 * count * pairs));
  return push({.shader = Shader::rope_table,
               .constants = {word(node_->integers[0])},
               .groups = spread(ceil_div(count * pairs, kLanes)),
               .bindings = {bound(positions), bound(frequencies), bound(cosines), bound(sines)},
               .writes = 0b1100,
               .push = {word(count), word(pairs), word(node_->numbers[0])}});
}

std::vector<uint32_t> Planner::row_words(const RowsView& x) const {
  return {word(x.columns),         word(x.count()),         word(x.inner),           word(x.view.offset),
          word(x.view.strides[0]), word(x.view.strides[1]), word(node_->numbers[0]), word(node_->numbers[1])};
}

Status Planner::add_norm() {
  MOTE_RETURN_IF_ERROR(integer_below(0, 3));
  MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const Bound weight, parameter("inputs[1]", node_->inputs[1], x.columns));
  MOTE_ASSIGN(const Bound bias, parameter("inputs[2]", node_->inputs[2], x.columns));
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count() * x.columns));
  return push({.shader = Shader::norm,
               .constants = {word(node_->integers[0]), weight.kind != Bind::none, bias.kind != Bind::none},
               .groups = spread(x.count()),
               .bindings = {bound(x.view), weight, bias, bound(y)},
               .writes = 0b1000,
               .push = row_words(x)});
}

Planner::Turn Planner::turn_of(int64_t columns) {
  const auto turned = std::bit_floor(static_cast<uint64_t>(columns));
  const int log2 = std::countr_zero(turned);
  // 1 / sqrt(turned)
  return {static_cast<int64_t>(turned), std::ldexp(log2 % 2 == 0 ? 1.0f : 0x1.6a09e6p-1f, -(log2 / 2))};
}

Status Planner::add_rotate() {
  MOTE_RETURN_IF_ERROR(integer_below(0, 2));
  MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
  if (x.columns % kTileRows != 0) {
    return invalid("%lld columns: must be a multiple of 16", static_cast<long long>(x.columns));
  }
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count() * x.columns));
  const Turn turn = turn_of(x.columns);
  return push({.shader = Shader::rotate,
               .constants = {word(node_->integers[0])},
               .groups = spread(x.count()),
               .bindings = {bound(x.view), bound(y)},
               .writes = 0b10,
               .push = {word(x.columns), word(x.count()), word(x.inner), word(x.view.offset), word(x.view.strides[0]),
                        word(x.view.strides[1]), word(turn.columns), word(turn.scale)}});
}

Status Planner::add_map() {
  MOTE_RETURN_IF_ERROR(integer_below(0, kFunctions));
  const bool is_binary = node_->integers[0] >= kFirstBinary && node_->integers[0] <= kLastBinary;
  if (node_->inputs.size() != (is_binary ? 2 : 1)) return invalid("has %zu inputs", node_->inputs.size());
  MOTE_ASSIGN(const View y, floats("outputs[0]", node_->outputs[0]));
  if (y.sizes.size() != 4) return invalid("outputs[0]: must have 4 sizes");
  std::vector<uint32_t> words;
  for (const int64_t size : y.sizes) words.push_back(word(size));
  std::vector<Bound> bindings;
  const auto add_words = [&](const View& view) {
    words.push_back(word(view.offset));
    for (const int64_t stride : view.strides) words.push_back(word(stride));
  };
  add_words(y);
  for (size_t i = 0; i < node_->inputs.size(); ++i) {
    if (node_->inputs[i].value < 0) return invalid("inputs[%zu]: is absent", i);
    MOTE_ASSIGN(const View x, floats("inputs", node_->inputs[i]));
    if (x.sizes != y.sizes) return invalid("inputs[%zu]: must have the sizes of the output", i);
    add_words(x);
    bindings.push_back(bound(x));
  }
  if (!is_binary) bindings.push_back({});
  words.resize(19);
  bindings.push_back(bound(y));
  return push({.shader = Shader::map,
               .constants = {word(node_->integers[0])},
               .groups = spread(ceil_div(y.count(), kLanes)),
               .bindings = std::move(bindings),
               .writes = 0b100,
               .push = std::move(words)});
}

}  // namespace mote::vulkan
