#include "tests/backends/qnn/interpreter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "kernels/support/float_bits.h"

namespace mote::qnn::test {
namespace {

size_t product(const Sizes& sizes) {
  size_t count = 1;
  for (const uint32_t size : sizes) count *= size;
  return count;
}

// Calls visit(element, index) for each element.
void each(const Sizes& sizes, const std::function<void(size_t, const Sizes&)>& visit) {
  Sizes index(sizes.size());
  for (size_t i = 0, count = product(sizes); i < count; ++i) {
    visit(i, index);
    for (size_t axis = sizes.size(); axis-- > 0;) {
      if (++index[axis] < sizes[axis]) break;
      index[axis] = 0;
    }
  }
}

// The element of a tensor at the last axes of an index; axes of one element are repeated.
size_t at(const Sizes& sizes, const Sizes& index) {
  size_t place = 0;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const uint32_t i = index[index.size() - sizes.size() + axis];
    place = place * sizes[axis] + (sizes[axis] == 1 ? 0 : i);
  }
  return place;
}

float binary(std::string_view type, float a, float b) {
  if (type == "ElementWiseAdd") return a + b;
  if (type == "ElementWiseSubtract") return a - b;
  return a * b;
}

void multiply(const Numbers& a, const Numbers& b, bool transposed, Numbers* y) {
  const size_t k = a.sizes.back(), n = y->sizes.back(), m = a.sizes[a.sizes.size() - 2];
  const size_t matrix = b.sizes.size() == 2 ? 0 : k * n;
  for (size_t row = 0; row < a.data.size() / k; ++row) {
    for (size_t column = 0; column < n; ++column) {
      double sum = 0;
      for (size_t i = 0; i < k; ++i)
        sum += double{a.data[row * k + i]} *
               double{b.data[row / m * matrix + (transposed ? column * k + i : i * n + column)]};
      y->data[row * n + column] = static_cast<float>(sum);
    }
  }
}

void softmax(float* row, size_t width) {
  const float most = *std::max_element(row, row + width);
  float sum = 0;
  for (size_t i = 0; i < width; ++i) sum += row[i] = std::exp(row[i] - most);
  for (size_t i = 0; i < width; ++i) row[i] /= sum;
}

void normalise(float* row, size_t width, const std::vector<float>& gains, float epsilon) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += double{row[i]} * double{row[i]};
  const double scale = 1 / std::sqrt(sum / static_cast<double>(width) + double{epsilon});
  for (size_t i = 0; i < width; ++i) row[i] = static_cast<float>(row[i] * scale * double{gains[i]});
}

}  // namespace

size_t Numbers::count() const { return product(sizes); }

void InterpretedGraph::add_tensor(QnnTensor* tensor) {
  tensor->v1.id = next_++;
  const Sizes sizes(tensor->v1.dimensions, tensor->v1.dimensions + tensor->v1.rank);
  if (tensor->v1.data_type != DataType::kFloat16) {
    const auto* numbers = static_cast<const uint32_t*>(tensor->v1.buffer.data);
    lists_[tensor->v1.id].assign(numbers, numbers + product(sizes));
    return;
  }
  Numbers& made = values_[tensor->v1.id] = {sizes, std::vector<float>(product(sizes))};
  const auto* halves = static_cast<const uint16_t*>(tensor->v1.buffer.data);
  if (tensor->v1.type == TensorType::kStatic)
    std::transform(halves, halves + made.count(), made.data.begin(), float16_to_float32);
}

void InterpretedGraph::add_node(const OpConfig& op) {
  Node& node = nodes_.emplace_back();
  node.type = op.type;
  for (uint32_t i = 0; i < op.num_inputs; ++i) node.inputs.push_back(op.inputs[i].v1.id);
  node.output = op.outputs[0].v1.id;
  for (uint32_t i = 0; i < op.num_params; ++i) {
    const Param& param = op.params[i];
    if (param.type == ParamType::kTensor) {
      node.lists[param.name] = lists_[param.tensor.v1.id];
    } else {
      const Scalar& scalar = param.scalar;
      node.scalars[param.name] = scalar.data_type == DataType::kFloat32 ? scalar.as_float
                                 : scalar.data_type == DataType::kBool8 ? static_cast<float>(scalar.as_bool)
                                                                        : static_cast<float>(scalar.as_uint);
    }
  }
}

bool InterpretedGraph::execute(const QnnTensor* inputs, uint32_t num_inputs, QnnTensor* outputs, uint32_t num_outputs) {
  for (uint32_t i = 0; i < num_inputs; ++i) {
    Numbers& value = values_[inputs[i].v1.id];
    const auto* halves = static_cast<const uint16_t*>(inputs[i].v1.buffer.data);
    std::transform(halves, halves + value.count(), value.data.begin(), float16_to_float32);
  }
  for (const Node& node : nodes_) {
    if (!compute(node)) return false;
  }
  for (uint32_t i = 0; i < num_outputs; ++i) {
    const Numbers& value = values_[outputs[i].v1.id];
    std::transform(value.data.begin(), value.data.end(), static_cast<uint16_t*>(outputs[i].v1.buffer.data),
                   float32_to_float16);
  }
  return true;
}

bool InterpretedGraph::compute(const Node& node) {
  const Numbers& x = values_[node.inputs[0]];
  const Numbers& second = values_[node.inputs.back()];
  Numbers& y = values_[node.output];
  const size_t width = y.sizes.back();
  const auto each_row = [&](const auto& change) {
    y.data = x.data;
    for (size_t row = 0; row < y.count(); row += width) change(y.data.data() + row);
  };
  if (node.type == "ElementWiseAdd" || node.type == "ElementWiseSubtract" || node.type == "ElementWiseMultiply") {
    each(y.sizes, [&](size_t i, const Sizes& index) {
      y.data[i] = binary(node.type, x.data[at(x.sizes, index)], second.data[at(second.sizes, index)]);
    });
  } else if (node.type == "Sigmoid") {
    std::transform(x.data.begin(), x.data.end(), y.data.begin(), [](float v) { return 1 / (1 + std::exp(-v)); });
  } else if (node.type == "ElementWiseNeg") {
    std::transform(x.data.begin(), x.data.end(), y.data.begin(), std::negate<>());
  } else if (node.type == "MatMul") {
    multiply(x, second, node.scalars.at("transpose_in1") != 0, &y);
  } else if (node.type == "Softmax") {
    each_row([&](float* row) { softmax(row, width); });
  } else if (node.type == "RmsNorm") {
    each_row([&](float* row) { normalise(row, width, second.data, node.scalars.at("epsilon")); });
  } else if (node.type == "Reshape") {
    y.data = x.data;
  } else if (node.type == "Transpose") {
    each(y.sizes, [&](size_t i, const Sizes& index) {
      Sizes from(index.size());
      for (size_t axis = 0; axis < index.size(); ++axis) from[node.lists.at("perm")[axis]] = index[axis];
      y.data[i] = x.data[at(x.sizes, from)];
    });
  } else if (node.type == "StridedSlice") {
    each(y.sizes, [&](size_t i, const Sizes& index) {
      Sizes from = index;
      for (size_t axis = 0; axis < index.size(); ++axis) from[axis] += node.lists.at("ranges")[3 * axis];
      y.data[i] = x.data[at(x.sizes, from)];
    });
  } else if (node.type == "Concat") {
    const auto axis = static_cast<size_t>(node.scalars.at("axis"));
    const uint32_t border = x.sizes[axis];
    each(y.sizes, [&](size_t i, const Sizes& index) {
      Sizes from = index;
      const bool is_first = index[axis] < border;
      if (!is_first) from[axis] -= border;
      y.data[i] = is_first ? x.data[at(x.sizes, from)] : second.data[at(second.sizes, from)];
    });
  } else {
    return false;
  }
  return true;
}

}  // namespace mote::qnn::test
