#include "backends/xnnpack/graph.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/size.h"
#include "kernels/formats.h"

namespace mote::xnnpack {
namespace {

constexpr uint32_t kMaxTables = 1 << 20;
constexpr size_t kMaxValues = 1 << 16;
constexpr size_t kMaxConcatenated = 5;

template <typename Enum>
bool is_within(Enum value, Enum last) {
  return static_cast<uint8_t>(value) <= static_cast<uint8_t>(last);
}

bool is_bounded(int64_t part) { return part >= -kMaxFactor && part <= kMaxFactor; }

template <typename Vector>
size_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

class Verifier {
 public:
  explicit Verifier(const DelegatePart& part) : part_(part), blob_(part.blob.begin(), part.blob.end()) {}

  Result<Graph> verify() {
    MOTE_RETURN_IF_ERROR(verify_flatbuffer());
    const fb::Graph& graph = *fb::GetGraph(blob_.data());
    if (graph.values()->size() > kMaxValues || graph.nodes()->size() > kMaxValues) {
      return invalid("", "has %u values and %u nodes: must be at most %zu", graph.values()->size(),
                     graph.nodes()->size(), kMaxValues);
    }
    for (const fb::Value* value : *graph.values()) MOTE_RETURN_IF_ERROR(add_value(*value));
    for (const fb::Node* node : *graph.nodes()) MOTE_RETURN_IF_ERROR(add_node(*node));
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (!is_written_[i]) return invalid(value_place(i), "is written by no node");
    }
    if (graph_.outputs.empty()) return invalid("values", "have no output");
    return std::move(graph_);
  }

 private:
  [[MOTE_PRINTF(3, 4)]] Status invalid(const std::string& field, const char* pattern, ...) const {
    va_list arguments;
    va_start(arguments, pattern);
    char text[512];
    std::vsnprintf(text, sizeof(text), pattern, arguments);
    va_end(arguments);
    return Status(Code::kInvalidProgram, part_.place + (field.empty() ? "" : "." + field) + ": " + text);
  }

  static std::string value_place(size_t index) { return format("values[%zu]", index); }
  static std::string node_place(size_t index) { return format("nodes[%zu]", index); }

  Status verify_flatbuffer() const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(blob_.data());
    if (reinterpret_cast<uintptr_t>(part_.blob.data()) % 8 != 0) return invalid("", "is not aligned to 8 bytes");
    flatbuffers::Verifier verifier(bytes, blob_.size(), 8, kMaxTables);
    if (blob_.size() < 12 || !fb::VerifyGraphBuffer(verifier)) return invalid("", "is not a graph for XNNPACK");
    return {};
  }

  Status copy_shape(const std::string& place, const flatbuffers::Vector<const fb::Dim*>& dims, Shape* shape) const {
    if (reinterpret_cast<uintptr_t>(dims.Data()) % 8 != 0) return invalid(place, "is not aligned to 8 bytes");
    if (dims.size() == 0 || dims.size() > kMaxTensorDims) {
      return invalid(place, "has %u sizes: must be 1 to %zu", dims.size(), kMaxTensorDims);
    }
    for (const fb::Dim* dim : dims) {
      const LinearSize size{dim->tokens(), dim->constant()};
      if (size.tokens < 0 || !is_bounded(size.tokens) || !is_bounded(size.constant) || size.at(1) < 1) {
        return invalid(place, "%lld * T + %lld: must be at least 1 for every T, its parts at most 2^31",
                       static_cast<long long>(size.tokens), static_cast<long long>(size.constant));
      }
      shape->push_back(size);
    }
    return {};
  }

  Status add_value(const fb::Value& from) {
    const size_t index = graph_.values.size();
    const std::string place = value_place(index);
    GraphValue value{.kind = from.kind(),
                     .dtype = from.dtype(),
                     .form = from.form(),
                     .first_row = from.first_row(),
                     .offset = from.offset()};
    if (!is_within(value.kind, fb::ValueKind::MAX) || !is_within(value.dtype, fb::DType::MAX) ||
        !is_within(value.form, fb::WeightForm::MAX)) {
      return invalid(place, "kind, dtype or form is not one of this version");
    }
    MOTE_RETURN_IF_ERROR(copy_shape(place + ".shape", *from.shape(), &value.shape));
    if (value.dtype != fb::DType::float32 && value.kind != fb::ValueKind::activation) {
      return invalid(place, "dtype: only an activation may be int8_rows or float16");
    }
    if (value.kind == fb::ValueKind::weight) MOTE_RETURN_IF_ERROR(check_weight(place, from.weight(), &value));
    if (value.kind == fb::ValueKind::constant) MOTE_RETURN_IF_ERROR(check_constant(place, from, &value));
    if (value.kind == fb::ValueKind::input) graph_.inputs.push_back(static_cast<uint32_t>(index));
    if (value.kind == fb::ValueKind::output) graph_.outputs.push_back(static_cast<uint32_t>(index));
    is_written_.push_back(value.is_static() || value.kind == fb::ValueKind::input);
    graph_.values.push_back(std::move(value));
    return {};
  }

  Status check_static_shape(const std::string& place, const Shape& shape, Size* elements) const {
    *elements = 1;
    for (const LinearSize& size : shape) {
      if (size.tokens != 0)
        return invalid(place, "shape %s: a weight or constant does not grow with T", shape_text(shape).c_str());
      *elements = *elements * size.constant;
    }
    if (!elements->at_most(int64_t{1} << 40))
      return invalid(place, "shape %s: has too many elements", shape_text(shape).c_str());
    return {};
  }

  Status check_constant(const std::string& place, const fb::Value& from, GraphValue* value) const {
    Size elements;
    MOTE_RETURN_IF_ERROR(check_static_shape(place, value->shape, &elements));
    if (!(elements == Size(length(from.numbers())))) {
      return invalid(place, "numbers has %zu elements: shape %s needs as many as it says", length(from.numbers()),
                     shape_text(value->shape).c_str());
    }
    value->numbers.assign(from.numbers()->begin(), from.numbers()->end());
    return {};
  }

  Status check_weight(const std::string& place, int32_t index, GraphValue* value) const {
    Size elements;
    MOTE_RETURN_IF_ERROR(check_static_shape(place, value->shape, &elements));
    if (index < 0 || static_cast<size_t>(index) >= part_.weights.size()) {
      return invalid(place, "weight = %d: the part has %zu", index, part_.weights.size());
    }
    value->weight = static_cast<uint32_t>(index);
    const Tensor& tensor = part_.weights[value->weight].tensor;
    MOTE_RETURN_IF_ERROR(check_form(place, *value, tensor));
    const Size end = Size(value->first_row) + value->shape[0].constant;
    if (!end.at_most(tensor.size(0))) {
      return invalid(place, "first_row = %lld: rows end beyond the %lld of the weight",
                     static_cast<long long>(value->first_row), static_cast<long long>(tensor.size(0)));
    }
    const size_t rank = value->form == fb::WeightForm::row_scales ? 1 : static_cast<size_t>(tensor.rank);
    bool same = value->shape.size() == rank;
    for (size_t i = 1; same && i < rank; ++i) same = value->shape[i].constant == tensor.sizes[i];
    if (!same) return invalid(place, "shape %s: does not match the weight's", shape_text(value->shape).c_str());
    return {};
  }

  Status check_form(const std::string& place, const GraphValue& value, const Tensor& tensor) const {
    const bool is_matrix = is_weight_bits(tensor.bits) && tensor.scales.columns == 0 && tensor.rank == 2 &&
                           is_group_size(tensor.group_size) && tensor.size(1) % tensor.group_size == 0;
    const bool is_dense =
        tensor.bits == 0 && tensor.rank >= 1 && tensor.is_contiguous() &&
        (tensor.dtype == DType::kFloat32 || tensor.dtype == DType::kFloat16 || tensor.dtype == DType::kBFloat16);
    const bool is_small = is_matrix && products_fit_bytes(tensor.bits);
    bool fits = false;
    switch (value.form) {
      case fb::WeightForm::float32: fits = is_dense && std::isfinite(value.offset); break;
      case fb::WeightForm::float16: fits = is_dense && tensor.rank == 2 && value.offset == 0; break;
      case fb::WeightForm::row_scales: fits = is_matrix; break;
      case fb::WeightForm::int4_blocks:
      case fb::WeightForm::int4_rows: fits = is_small; break;
      case fb::WeightForm::int8_rows:
        fits = is_matrix;
        break;  // their multipliers are looked at while they are unpacked
      case fb::WeightForm::int8_high:
      case fb::WeightForm::int8_low: fits = is_matrix && !is_small; break;
    }
    if (!fits) {
      return invalid(place, "form = %s: cannot be made from a weight of %d bits and rank %d",
                     fb::EnumNameWeightForm(value.form), tensor.bits, tensor.rank);
    }
    return {};
  }

  Status add_node(const fb::Node& from) {
    const std::string place = node_place(graph_.nodes.size());
    GraphNode node{.op = from.op(), .function = from.function()};
    if (!is_within(node.op, fb::Op::MAX) || !is_within(node.function, fb::Function::MAX)) {
      return invalid(place, "op or function is not one of this version");
    }
    MOTE_RETURN_IF_ERROR(copy_operands(place, from, &node));
    MOTE_RETURN_IF_ERROR(copy_parameters(place, from, &node));
    MOTE_RETURN_IF_ERROR(check_kinds(place, node));
    const Result<Shape> shape = output_shape(graph_, node);
    if (!shape.ok()) return invalid(place, "%s", shape.status().message().c_str());
    if (*shape != graph_.values[node.output].shape) {
      return invalid(place, "its output has shape %s: values[%u] says %s", shape_text(*shape).c_str(), node.output,
                     shape_text(graph_.values[node.output].shape).c_str());
    }
    is_written_[node.output] = true;
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Status copy_operands(const std::string& place, const fb::Node& from, GraphNode* node) const {
    size_t least = 1, most = 1;
    if (node->op == fb::Op::binary || node->op == fb::Op::batch_matrix_multiply) least = most = 2;
    if (node->op == fb::Op::fully_connected) least = 2, most = 3;
    if (node->op == fb::Op::concatenate) least = 2, most = kMaxConcatenated;
    const size_t count = from.inputs()->size();
    if (count < least || count > most) return invalid(place, "has %zu inputs: must be %zu to %zu", count, least, most);
    for (const int32_t input : *from.inputs()) {
      if (input < 0 || static_cast<size_t>(input) >= is_written_.size() || !is_written_[static_cast<size_t>(input)]) {
        return invalid(place, "inputs: %d: is not a value that was written before", input);
      }
      node->inputs.push_back(static_cast<uint32_t>(input));
    }
    const int32_t output = from.output();
    if (output < 0 || static_cast<size_t>(output) >= is_written_.size() || is_written_[static_cast<size_t>(output)]) {
      return invalid(place, "output: %d: is not a value that is still to be written", output);
    }
    node->output = static_cast<uint32_t>(output);
    return {};
  }

  Status copy_parameters(const std::string& place, const fb::Node& from, GraphNode* node) const {
    const bool is_unary = node->op == fb::Op::unary, is_unary_function = node->function <= fb::Function::tanh;
    if ((is_unary || node->op == fb::Op::binary) && is_unary != is_unary_function) {
      return invalid(place, "function = %s: not one of its op", fb::EnumNameFunction(node->function));
    }
    if (length(from.axes()) > kMaxTensorDims) return invalid(place, "axes: must be at most %zu", kMaxTensorDims);
    for (size_t i = 0; i < length(from.axes()); ++i) {
      const int32_t axis = from.axes()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (axis < 0 || axis >= static_cast<int32_t>(kMaxTensorDims))
        return invalid(place, "axes[%zu] = %d: is no dimension", i, axis);
      node->axes.push_back(static_cast<size_t>(axis));
    }
    MOTE_RETURN_IF_ERROR(copy_bound(place, from.begin(), &node->begin));
    MOTE_RETURN_IF_ERROR(copy_bound(place, from.end(), &node->end));
    return copy_numbers(place, from, node);
  }

  Status copy_bound(const std::string& place, const fb::Dim* from, LinearSize* bound) const {
    if (from == nullptr) return {};
    if (!is_bounded(from->tokens()) || !is_bounded(from->constant()))
      return invalid(place, "begin and end: parts must be at most 2^31");
    *bound = {from->tokens(), from->constant()};
    return {};
  }

  Status copy_numbers(const std::string& place, const fb::Node& from, GraphNode* node) const {
    size_t needed = 0;
    if (node->op == fb::Op::unary && node->function == fb::Function::clamp) needed = 2;
    if (node->op == fb::Op::unary &&
        (node->function == fb::Function::elu || node->function == fb::Function::leaky_relu))
      needed = 1;
    if (length(from.numbers()) != needed) return invalid(place, "numbers: must be %zu", needed);
    for (size_t i = 0; i < needed; ++i) {
      const float number = from.numbers()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (std::isnan(number) || (needed == 1 && !std::isfinite(number)))
        return invalid(place, "numbers[%zu] = %g", i, static_cast<double>(number));
      node->numbers.push_back(number);
    }
    if (needed == 2 && !(node->numbers[0] < node->numbers[1])) return invalid(place, "numbers: must ascend");
    return {};
  }

  bool is_plain(uint32_t index) const {
    const GraphValue& value = graph_.values[index];
    const bool is_vector = value.form == fb::WeightForm::float32 || value.form == fb::WeightForm::row_scales;
    return value.dtype == fb::DType::float32 && (value.kind != fb::ValueKind::weight || is_vector);
  }

  // What may be combined, apart from shapes.
  Status check_kinds(const std::string& place, const GraphNode& node) const {
    if (node.op == fb::Op::convert) return check_convert(place, node);
    if (node.op == fb::Op::fully_connected) return check_fully_connected(place, node);
    if (graph_.values[node.output].dtype != fb::DType::float32) return invalid(place, "writes float32 only");
    size_t num_static = 0;
    for (const uint32_t input : node.inputs) {
      if (!is_plain(input)) return invalid(place, "inputs: values[%u] must be float32", input);
      num_static += graph_.values[input].is_static();
    }
    const size_t allowed = node.op == fb::Op::binary ? 1 : 0;
    if (num_static > allowed) return invalid(place, "has %zu weights or constants: may have %zu", num_static, allowed);
    return {};
  }

  Status check_convert(const std::string& place, const GraphNode& node) const {
    const GraphValue& from = graph_.values[node.inputs[0]];
    const fb::DType to = graph_.values[node.output].dtype;
    const bool from_float32 = from.dtype == fb::DType::float32 && to != fb::DType::float32;
    const bool to_float32 = from.dtype == fb::DType::float16 && to == fb::DType::float32;
    if (from.is_static()) return invalid(place, "inputs[0] must be an activation");
    if (!from_float32 && !to_float32)
      return invalid(place, "cannot convert %s to %s", fb::EnumNameDType(from.dtype), fb::EnumNameDType(to));
    return {};
  }

  Status check_fully_connected(const std::string& place, const GraphNode& node) const {
    const GraphValue& x = graph_.values[node.inputs[0]];
    const GraphValue& weight = graph_.values[node.inputs[1]];
    if (x.is_static()) return invalid(place, "inputs[0] must be an activation");
    if (weight.kind != fb::ValueKind::weight || weight.shape.size() != 2)
      return invalid(place, "inputs[1] must be a matrix of weights");
    bool fits = false;
    switch (weight.form) {
      case fb::WeightForm::float32: fits = x.dtype == fb::DType::float32 && weight.offset == 0; break;
      case fb::WeightForm::row_scales: break;
      case fb::WeightForm::int4_blocks: fits = x.dtype == fb::DType::int8_rows; break;
      case fb::WeightForm::float16: fits = x.dtype == fb::DType::float16 && node.inputs.size() == 2; break;
      default: fits = x.dtype != fb::DType::float16;
    }
    const fb::DType made = weight.form == fb::WeightForm::float16 ? fb::DType::float16 : fb::DType::float32;
    if (graph_.values[node.output].dtype != made) return invalid(place, "writes %s only", fb::EnumNameDType(made));
    if (!fits)
      return invalid(place, "cannot multiply %s with %s", fb::EnumNameDType(x.dtype),
                     fb::EnumNameWeightForm(weight.form));
    if (node.inputs.size() == 3) {
      const GraphValue& bias = graph_.values[node.inputs[2]];
      if (!bias.is_static() || !is_plain(node.inputs[2]))
        return invalid(place, "inputs[2] must be a float32 weight or constant");
    }
    return {};
  }

  const DelegatePart& part_;
  const std::vector<std::byte> blob_;  // a copy: no other process can change it once it is verified
  Graph graph_;
  std::vector<bool> is_written_;
};

}  // namespace

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const LinearSize& size : shape) {
    if (text.size() > 1) text += ", ";
    if (size.tokens != 0)
      text += format("%lld*T%+lld", static_cast<long long>(size.tokens), static_cast<long long>(size.constant));
    else
      text += format("%lld", static_cast<long long>(size.constant));
  }
  return text + "]";
}

Result<Graph> verify_graph(const DelegatePart& part) { return Verifier(part).verify(); }

}  // namespace mote::xnnpack
