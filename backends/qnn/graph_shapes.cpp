#include <algorithm>

#include "backends/qnn/graph.h"

namespace mote::qnn {
namespace {

Status mismatch(const char* what) { return {Code::kInvalidProgram, what}; }

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  if (a.size() < b.size()) return broadcast(b, a);
  Shape result = a;
  const size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    uint32_t& size = result[lead + i];
    if (size != b[i] && size != 1 && b[i] != 1) return mismatch("sizes that do not broadcast");
    size = std::max(size, b[i]);
  }
  return result;
}

Result<Shape> multiplied(const Shape& a, const Shape& b, bool transposed) {
  if (a.size() < 2 || b.size() < 2 || (b.size() != 2 && b.size() != a.size())) return mismatch("ranks of a product");
  Shape result = a;
  for (size_t i = 0; b.size() > 2 && i + 2 < a.size(); ++i) {
    if (a[i] != b[i]) return mismatch("products of different counts");
  }
  const size_t last = b.size() - 1;
  const uint32_t inner = transposed ? b[last] : b[last - 1];
  if (a.back() != inner) return mismatch("widths of a product that differ");
  result.back() = transposed ? b[last - 1] : b[last];
  return result;
}

Result<Shape> permuted(const Shape& x, const std::vector<uint32_t>& axes) {
  std::vector<uint32_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  Shape result;
  for (uint32_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != i) return mismatch("axes: must be each axis once");
  }
  if (axes.size() != x.size()) return mismatch("axes: must be each axis once");
  for (const uint32_t axis : axes) result.push_back(x[axis]);
  return result;
}

Result<Shape> cut(const Shape& x, const fb::NodeT& node) {
  if (node.axes.size() != 1 || node.axes[0] >= x.size()) return mismatch("axes: must be one of the input's");
  if (node.begin >= node.end || node.end > x[node.axes[0]]) return mismatch("begin and end: must lie in the input");
  Shape result = x;
  result[node.axes[0]] = node.end - node.begin;
  return result;
}

Result<Shape> joined(const std::vector<const Shape*>& inputs, const fb::NodeT& node) {
  Shape result = *inputs[0];
  if (node.axes.size() != 1 || node.axes[0] >= result.size()) return mismatch("axes: must be one of the inputs'");
  uint64_t total = result[node.axes[0]];
  for (size_t i = 1; i < inputs.size(); ++i) {
    Shape other = *inputs[i];
    if (other.size() != result.size()) return mismatch("ranks that differ");
    total += other[node.axes[0]];
    other[node.axes[0]] = result[node.axes[0]];
    if (other != result) return mismatch("sizes that differ along other axes");
  }
  if (total > UINT32_MAX) return mismatch("sizes too large together");
  result[node.axes[0]] = static_cast<uint32_t>(total);
  return result;
}

}  // namespace

Result<Shape> output_shape(const fb::NodeT& node, const std::vector<const Shape*>& inputs) {
  const Shape& x = *inputs[0];
  switch (node.op) {
    case fb::Op::add:
    case fb::Op::subtract:
    case fb::Op::multiply:
    case fb::Op::divide:
    case fb::Op::maximum:
    case fb::Op::minimum: return broadcast(x, *inputs[1]);
    case fb::Op::matmul: return multiplied(x, *inputs[1], node.transposed);
    case fb::Op::rms_norm:
      if (*inputs[1] != Shape{x.back()}) return mismatch("the norm's weight: must be as wide as the rows");
      return x;
    case fb::Op::transpose: return permuted(x, node.axes);
    case fb::Op::slice: return cut(x, node);
    case fb::Op::concatenate: return joined(inputs, node);
    case fb::Op::mean:
    case fb::Op::maximum_of: {
      Shape result = x;
      result.back() = 1;
      return result;
    }
    case fb::Op::top_values:
    case fb::Op::top_places: {
      if (node.end < 1 || node.end > x.back()) return mismatch("end: must be 1 to the width of the rows");
      Shape result = x;
      result.back() = node.end;
      return result;
    }
    case fb::Op::gather: {
      if (*inputs[1] != Shape{1} || x.size() < 2) return mismatch("a gather: must be at one place of the first axis");
      Shape result = x;
      result[0] = 1;
      return result;
    }
    default: return x;  // a reshape's is the output's own
  }
}

}  // namespace mote::qnn
