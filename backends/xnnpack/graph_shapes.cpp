#include <algorithm>
#include <array>

#include "backends/xnnpack/graph.h"
#include "base/size.h"

namespace mote::xnnpack {
namespace {

Status wrong(const char* what, const Shape& shape) {
  return Status(Code::kInvalidProgram, format("%s: %s", what, shape_text(shape).c_str()));
}

const Shape& shape_of(const Graph& graph, const GraphNode& node, size_t input) {
  return graph.values[node.inputs[input]].shape;
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), LinearSize{0, 1});
  for (size_t i = 0; i < result.size(); ++i) {  // from the last dimension
    const LinearSize one{0, 1};
    const LinearSize x = i < a.size() ? a[a.size() - 1 - i] : one, y = i < b.size() ? b[b.size() - 1 - i] : one;
    if (x != y && x != one && y != one) return wrong("cannot be broadcast", b);
    result[result.size() - 1 - i] = x == one ? y : x;
  }
  return result;
}

Result<Shape> fully_connected(const Graph& graph, const GraphNode& node) {
  Shape result = shape_of(graph, node, 0);
  const Shape& weight = shape_of(graph, node, 1);
  if (result.back() != weight[1]) return wrong("the last size must be the weight's last", result);
  if (node.inputs.size() == 3 && shape_of(graph, node, 2) != Shape{weight[0]}) {
    return wrong("a bias must have the weight's rows", shape_of(graph, node, 2));
  }
  result.back() = weight[0];
  return result;
}

Result<Shape> batch_matrix_multiply(const Shape& a, const Shape& b) {
  const size_t rank = a.size();
  if (rank < 3 || b.size() != rank) return wrong("factors must have one rank of at least 3", b);
  if (!std::equal(a.begin(), a.end() - 2, b.begin())) return wrong("leading sizes of factors must be equal", b);
  if (a[rank - 1] != b[rank - 2]) return wrong("sizes of a product do not match", b);
  Shape result = a;
  result.back() = b.back();
  return result;
}

// Elements as (tokens * T + constant) * factor; false if more than one size grows with T, or on overflow.
bool count_elements(const Shape& shape, LinearSize* elements) {
  LinearSize growing{0, 1};
  Size factor = 1;
  int num_growing = 0;
  for (const LinearSize& size : shape) {
    if (size.tokens != 0) {
      growing = size;
      ++num_growing;
    } else {
      factor = factor * size.constant;
    }
  }
  return num_growing <= 1 && factor.valid() &&
         checked_multiply_add(growing.tokens, factor.value(), 0, &elements->tokens) &&
         checked_multiply_add(growing.constant, factor.value(), 0, &elements->constant);
}

Result<Shape> reshape(const Shape& from, const Shape& to) {
  LinearSize before, after;
  if (!count_elements(from, &before)) return wrong("at most one size may grow with T", from);
  if (!count_elements(to, &after) || before != after)
    return wrong("must have the elements of its input and one growing size", to);
  return to;
}

Result<Shape> transpose(const Shape& shape, const std::vector<size_t>& axes) {
  std::array<bool, kMaxTensorDims> seen{};
  Shape result;
  for (const size_t axis : axes) {
    if (axis >= shape.size() || seen[axis]) return wrong("axes must be a permutation of the dimensions", shape);
    seen[axis] = true;
    result.push_back(shape[axis]);
  }
  if (axes.size() != shape.size()) return wrong("axes must be a permutation of the dimensions", shape);
  return result;
}

bool is_sorted_always(const LinearSize& low, const LinearSize& high) {
  return low.tokens <= high.tokens && low.at(1) <= high.at(1);
}

Result<Shape> slice(const Shape& shape, const GraphNode& node) {
  if (node.axes.size() != 1 || node.axes[0] >= shape.size()) return wrong("axes must name one dimension", shape);
  const LinearSize& size = shape[node.axes[0]];
  const LinearSize length{node.end.tokens - node.begin.tokens, node.end.constant - node.begin.constant};
  int64_t bound = 0;
  if (!is_sorted_always({0, 0}, node.begin) || !is_sorted_always(node.end, size) || !is_sorted_always({0, 1}, length) ||
      !slice_bound(node.begin, size, &bound) || !slice_bound(node.end, size, &bound)) {
    return wrong("begin and end must be within, ordered, and constant or at a constant distance from the end", shape);
  }
  Shape result = shape;
  result[node.axes[0]] = length;
  return result;
}

Result<Shape> concatenate(const Graph& graph, const GraphNode& node) {
  Shape result = shape_of(graph, node, 0);
  if (node.axes.size() != 1 || node.axes[0] >= result.size()) return wrong("axes must name one dimension", result);
  const size_t axis = node.axes[0];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    Shape other = shape_of(graph, node, i);
    if (other.size() != result.size()) return wrong("inputs must have one rank", other);
    const LinearSize added = other[axis];
    other[axis] = result[axis];
    if (other != result) return wrong("inputs must agree in all other sizes", other);
    result[axis] = {result[axis].tokens + added.tokens, result[axis].constant + added.constant};
  }
  return result;
}

}  // namespace

bool slice_bound(const LinearSize& bound, const LinearSize& size, int64_t* result) {
  if (bound.tokens == 0 && (bound.constant > 0 || size.tokens == 0)) {
    *result = bound.constant;
    return true;
  }
  if (bound == LinearSize{0, 0}) {
    *result = 0;
    return true;
  }
  *result = bound.constant - size.constant;
  return bound.tokens == size.tokens;
}

Result<Shape> output_shape(const Graph& graph, const GraphNode& node) {
  const Shape& first = shape_of(graph, node, 0);
  switch (node.op) {
    case fb::Op::unary:
    case fb::Op::convert:
    case fb::Op::softmax: return first;
    case fb::Op::binary: return broadcast(first, shape_of(graph, node, 1));
    case fb::Op::fully_connected: return fully_connected(graph, node);
    case fb::Op::batch_matrix_multiply: return batch_matrix_multiply(first, shape_of(graph, node, 1));
    case fb::Op::reshape: return reshape(first, graph.values[node.output].shape);
    case fb::Op::transpose: return transpose(first, node.axes);
    case fb::Op::slice: return slice(first, node);
    case fb::Op::concatenate: return concatenate(graph, node);
    case fb::Op::mean: break;
  }
  Shape result = first;
  result.back() = {0, 1};
  return result;
}

}  // namespace mote::xnnpack
