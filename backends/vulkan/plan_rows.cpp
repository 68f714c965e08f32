// Functions of rows and of elements.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/vulkan/planner.h"
#include "kernels/formats.h"

namespace mote::vulkan {
namespace {

constexpr int64_t kReductions = 5, kOrders = 3;

// Invocations that share a row: a power of two.
uint32_t lanes_of(const RowsView& x) { return word(std::bit_ceil(static_cast<uint64_t>(std::min(x.columns, kLanes)))); }

// As rows.glsl has them.
std::vector<uint32_t> strided_words(const RowsView& x) {
  return {word(x.columns),         word(x.count()),         word(x.inner),          word(x.view.offset),
          word(x.view.strides[0]), word(x.view.strides[1]), word(x.view.strides[2])};
}

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

Result<RowsView> Planner::strided_rows(const char* name, const GraphView& from) const {
  MOTE_ASSIGN(const View made, floats(name, from));
  if (made.sizes.size() != 3) return invalid("%s: must be rows in two dimensions", name);
  return RowsView{made, made.sizes[0], made.sizes[1], made.sizes[2]};
}

Status Planner::push_of_rows(Shader shader, const RowsView& x, const View& y) {
  const uint32_t lanes = lanes_of(x);
  return push({.shader = shader,
               .constants = {lanes, word(node_->integers[0])},
               .groups = spread(ceil_div(x.count(), kLanes / lanes)),
               .bindings = {bound(x.view), bound(y)},
               .writes = 0b10,
               .push = strided_words(x)});
}

Status Planner::add_reduce() {
  MOTE_RETURN_IF_ERROR(integer_below(0, kReductions));
  MOTE_ASSIGN(const RowsView x, strided_rows("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count()));
  return push_of_rows(Shader::reduce, x, y);
}

Status Planner::add_softmax() {
  MOTE_RETURN_IF_ERROR(integer_below(0, 2));
  MOTE_ASSIGN(const RowsView x, strided_rows("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count() * x.columns));
  return push_of_rows(Shader::softmax, x, y);
}

Status Planner::add_top() {
  MOTE_RETURN_IF_ERROR(integer_below(1, kOrders));
  MOTE_ASSIGN(const RowsView x, strided_rows("inputs[0]", node_->inputs[0]));
  const int64_t count = node_->integers[0];
  if (count < 1 || count > x.columns) {
    return invalid("integers[0] = %lld: must be 1..%lld", static_cast<long long>(count),
                   static_cast<long long>(x.columns));
  }
  MOTE_ASSIGN(const View values, whole("outputs[0]", node_->outputs[0], x.count() * count));
  MOTE_ASSIGN(const View indices, whole_words("outputs[1]", node_->outputs[1], x.count() * count));
  const uint32_t lanes = lanes_of(x);
  std::vector<uint32_t> words = strided_words(x);
  words.push_back(word(count));
  return push({.shader = Shader::top,
               .constants = {lanes, word(node_->integers[1])},
               .groups = spread(ceil_div(x.count(), kLanes / lanes)),
               .bindings = {bound(x.view), bound(values), bound(indices)},
               .writes = 0b110,
               .push = std::move(words)});
}

}  // namespace mote::vulkan
