#include "backends/qnn/nodes.h"

#include <array>

namespace mote::qnn {
namespace {

constexpr const char* kPackage = "qti.aisw";

constexpr std::array kTypes = {"ElementWiseAdd",
                               "ElementWiseSubtract",
                               "ElementWiseMultiply",
                               "ElementWiseDivide",
                               "ElementWiseMaximum",
                               "ElementWiseMinimum",
                               "Sigmoid",
                               "Tanh",
                               "Relu",
                               "Gelu",
                               "ElementWiseNeg",
                               "ElementWiseExp",
                               "ElementWiseSquareRoot",
                               "ElementWiseRsqrt",
                               "ElementWiseAbs",
                               "MatMul",
                               "RmsNorm",
                               "Softmax",
                               "Reshape",
                               "Transpose",
                               "StridedSlice",
                               "Concat",
                               "ReduceMean",
                               "ReduceMax",
                               "Quantize",
                               "Dequantize",
                               "TopK",
                               "TopK",
                               "Gather"};
static_assert(kTypes.size() == static_cast<size_t>(fb::Op::MAX) + 1);

Param scalar(const char* name, DataType data_type, uint64_t room) {
  Param param{};
  param.type = ParamType::kScalar;
  param.name = name;
  param.scalar.data_type = data_type;
  param.scalar.room = room;
  return param;
}

Param scalar_float(const char* name, float value) {
  Param param = scalar(name, DataType::kFloat32, 0);
  param.scalar.as_float = value;
  return param;
}

Param list(const char* name, const QnnTensor& tensor) {
  Param param{};
  param.type = ParamType::kTensor;
  param.name = name;
  param.tensor = tensor;
  return param;
}

TensorType type_of(fb::ValueKind kind) {
  if (kind == fb::ValueKind::activation) return TensorType::kNative;
  if (kind == fb::ValueKind::weight || kind == fb::ValueKind::constant) return TensorType::kStatic;
  return is_made_by_node(kind) ? TensorType::kAppRead : TensorType::kAppWrite;
}

QnnTensor named_tensor(const char* name, TensorType type, DataType data_type, const Shape& shape) {
  QnnTensor made{};
  made.version = 1;
  made.v1.name = name;
  made.v1.type = type;
  made.v1.data_type = data_type;
  made.v1.quantize.definition = Definition::kUndefined;
  made.v1.quantize.encoding = Encoding::kUndefined;
  made.v1.rank = static_cast<uint32_t>(shape.size());
  made.v1.dimensions = const_cast<uint32_t*>(shape.data());
  made.v1.memory = TensorMemory::kRaw;
  return made;
}

void set_scale(QnnTensor* tensor, ScaleOffset scale) {
  tensor->v1.quantize.definition = Definition::kDefined;
  tensor->v1.quantize.encoding = Encoding::kScaleOffset;
  tensor->v1.quantize.scale_offset = scale;
}

}  // namespace

QnnTensor tensor_of(const fb::ValueT& value, const char* name) {
  const bool has_words = value.words > 0;
  QnnTensor made =
      named_tensor(name, type_of(value.kind), has_words ? DataType::kUnsignedFixed16 : DataType::kFloat16, value.shape);
  if (has_words) { set_scale(&made, {value.words / 32767, -32768}); }
  return made;
}

Status NodeWriter::write() {
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    const Status status = add_value(i);
    if (!status.ok()) return {status.code(), format("values[%u]: ", i) + status.message()};
  }
  for (uint32_t i = 0; i < from_.part.nodes.size(); ++i) {
    const Status status = add_node(i);
    if (!status.ok()) return {status.code(), format("nodes[%u]: ", i) + status.message()};
  }
  return {};
}

Status NodeWriter::add_value(uint32_t index) {
  const fb::ValueT& value = from_.value(index);
  names_.push_back(format("v%u", index));
  QnnTensor tensor = tensor_of(value, names_.back().c_str());
  StaticTensor made;  // which the library copies
  if (tensor.v1.type == TensorType::kStatic) {
    MOTE_ASSIGN(made, static_tensor(value, part_));
    tensor.v1.data_type = made.data_type;
    tensor.v1.buffer = {made.bytes.data(), static_cast<uint32_t>(made.bytes.size())};
    if (value.form == fb::WeightForm::codes) {
      set_scale(&tensor, made.scales.front());
    } else if (!made.scales.empty()) {
      tensor.v1.quantize.definition = Definition::kDefined;
      const auto num_scales = static_cast<uint32_t>(made.scales.size());
      if (made.block_scales.empty()) {
        tensor.v1.quantize.encoding = Encoding::kAxisScaleOffset;
        tensor.v1.quantize.axis = {1, num_scales, made.scales.data()};
      } else {
        const auto num_blocks = static_cast<uint32_t>(made.block_scales.size() / made.scales.size());
        Blocks& kept = blocks_.emplace_back(Blocks{std::move(made.scales), std::move(made.block_scales), {}});
        kept.expansion = {1, kept.scales.data(), num_blocks, kBlockScaleBits, 0, kept.block_scales.data()};
        tensor.v1.quantize.encoding = Encoding::kBlockwiseExpansion;
        tensor.v1.quantize.blocks = &kept.expansion;
      }
    }
  }
  MOTE_RETURN_IF_ERROR(qnn_status(library_.functions.tensor_create_graph_tensor(graph_, &tensor), "make a tensor"));
  tensor.v1.buffer = {};
  // A node reads the scales of its blocks again.
  if (tensor.v1.quantize.encoding == Encoding::kAxisScaleOffset)
    tensor.v1.quantize = tensor_of(value, nullptr).v1.quantize;
  tensors_[index] = tensor;
  return {};
}

Result<QnnTensor> NodeWriter::indices(const std::string& name, DataType data_type, std::vector<uint32_t> numbers,
                                      Shape shape) {
  names_.push_back(name);
  numbers_.push_back(std::move(numbers));
  std::vector<uint32_t>& kept = numbers_.back();
  numbers_.push_back(std::move(shape));
  QnnTensor made = named_tensor(names_.back().c_str(), TensorType::kStatic, data_type, numbers_.back());
  made.v1.buffer = {kept.data(), static_cast<uint32_t>(kept.size() * sizeof(uint32_t))};
  MOTE_RETURN_IF_ERROR(
      qnn_status(library_.functions.tensor_create_graph_tensor(graph_, &made), "make a tensor of indices"));
  return made;
}

Status NodeWriter::add_params(const fb::NodeT& node, const std::string& name, std::vector<Param>* params) {
  const Shape& x = from_.value(node.inputs[0]).shape;
  const auto rank = static_cast<uint32_t>(x.size());
  switch (node.op) {
    case fb::Op::matmul:
      params->push_back(scalar("transpose_in0", DataType::kBool8, 0));
      params->push_back(scalar("transpose_in1", DataType::kBool8, node.transposed ? 1 : 0));
      return {};
    case fb::Op::rms_norm:
    case fb::Op::mean:
    case fb::Op::maximum_of: {
      MOTE_ASSIGN(const QnnTensor axes, indices(name + "_axes", DataType::kUint32, {rank - 1}, {1}));
      params->push_back(list("axes", axes));
      params->push_back(node.op == fb::Op::rms_norm ? scalar_float("epsilon", node.epsilon)
                                                    : scalar("keep_dims", DataType::kBool8, 1));
      return {};
    }
    case fb::Op::softmax:
      params->push_back(scalar("axis", DataType::kUint32, rank - 1));
      params->push_back(scalar_float("beta", 1.0f));
      return {};
    case fb::Op::transpose: {
      MOTE_ASSIGN(const QnnTensor axes, indices(name + "_perm", DataType::kUint32, node.axes, {rank}));
      params->push_back(list("perm", axes));
      return {};
    }
    case fb::Op::slice: {
      std::vector<uint32_t> ranges;
      for (uint32_t i = 0; i < rank; ++i) {
        const bool is_cut = i == node.axes[0];
        ranges.insert(ranges.end(), {is_cut ? node.begin : 0, is_cut ? node.end : x[i], 1});
      }
      MOTE_ASSIGN(const QnnTensor tensor, indices(name + "_ranges", DataType::kInt32, std::move(ranges), {rank, 3}));
      params->push_back(list("ranges", tensor));
      return {};
    }
    case fb::Op::concatenate: params->push_back(scalar("axis", DataType::kUint32, node.axes[0])); return {};
    default: return {};
  }
}

Status NodeWriter::add_node(uint32_t index) {
  const fb::NodeT& node = *from_.part.nodes[index];
  const std::string name = format("n%u", index);
  if (node.op == fb::Op::top_values || node.op == fb::Op::top_places) return add_top(node, name);
  if (node.op == fb::Op::gather) return add_gather(node, name);
  std::vector<QnnTensor> inputs;
  for (const uint32_t input : node.inputs) inputs.push_back(tensors_[input]);
  std::vector<Param> params;
  MOTE_RETURN_IF_ERROR(add_params(node, name, &params));
  return add_op(name, kTypes[static_cast<size_t>(node.op)], std::move(inputs), {tensors_[node.output]},
                std::move(params));
}

Status NodeWriter::add_op(const std::string& name, const char* type, std::vector<QnnTensor> inputs,
                          std::vector<QnnTensor> outputs, std::vector<Param> params) {
  names_.push_back(name);
  OpConfig op{};
  op.version = 1;
  op.name = names_.back().c_str();
  op.package = kPackage;
  op.type = type;
  op.num_params = static_cast<uint32_t>(params.size());
  op.params = params.data();
  op.num_inputs = static_cast<uint32_t>(inputs.size());
  op.inputs = inputs.data();
  op.num_outputs = static_cast<uint32_t>(outputs.size());
  op.outputs = outputs.data();
  return qnn_status(library_.functions.graph_add_node(graph_, op), op.type);
}

Result<QnnTensor> NodeWriter::between(const std::string& name, DataType data_type, Shape shape, float scale) {
  names_.push_back(name);
  numbers_.push_back(std::move(shape));
  QnnTensor made = named_tensor(names_.back().c_str(), TensorType::kNative, data_type, numbers_.back());
  if (scale > 0) set_scale(&made, {scale, 0});
  MOTE_RETURN_IF_ERROR(
      qnn_status(library_.functions.tensor_create_graph_tensor(graph_, &made), "make a tensor between ops"));
  return made;
}

Status NodeWriter::add_top(const fb::NodeT& node, const std::string& name) {
  const fb::ValueT& output = from_.value(node.output);
  const bool gives_values = node.op == fb::Op::top_values;
  MOTE_ASSIGN(const QnnTensor places, between(name + "_places", DataType::kInt32, output.shape));
  QnnTensor values = tensors_[node.output];
  if (!gives_values) { MOTE_ASSIGN(values, between(name + "_values", DataType::kFloat16, output.shape)); }
  MOTE_RETURN_IF_ERROR(add_op(name, "TopK", {tensors_[node.inputs[0]]}, {values, places},
                              {scalar("k", DataType::kUint32, node.end), scalar("largest", DataType::kBool8, 1)}));
  return gives_values ? Status() : add_op(name + "_cast", "Cast", {places}, {tensors_[node.output]});
}

// Places beyond the first axis, which a file may give, become its first or last.
Status NodeWriter::add_gather(const fb::NodeT& node, const std::string& name) {
  const fb::ValueT& weight = from_.value(node.inputs[0]);
  const bool is_codes = weight.form == fb::WeightForm::codes;
  MOTE_ASSIGN(const QnnTensor place, between(name + "_place", DataType::kInt32, {1}));
  MOTE_ASSIGN(const QnnTensor low, between(name + "_low", DataType::kInt32, {1}));
  MOTE_ASSIGN(const QnnTensor inside, between(name + "_inside", DataType::kInt32, {1}));
  MOTE_ASSIGN(const QnnTensor last, indices(name + "_last", DataType::kInt32, {weight.shape[0] - 1}, {1}));
  MOTE_ASSIGN(const QnnTensor first, indices(name + "_first", DataType::kInt32, {0}, {1}));
  MOTE_RETURN_IF_ERROR(add_op(name + "_cast", "Cast", {tensors_[node.inputs[1]]}, {place}));
  MOTE_RETURN_IF_ERROR(add_op(name + "_min", "ElementWiseMinimum", {place, last}, {low}));
  MOTE_RETURN_IF_ERROR(add_op(name + "_max", "ElementWiseMaximum", {low, first}, {inside}));
  const QnnTensor& from = tensors_[node.inputs[0]];
  QnnTensor found = tensors_[node.output];
  if (is_codes) {
    MOTE_ASSIGN(found, between(name + "_codes", DataType::kSignedFixed8, from_.value(node.output).shape,
                               from.v1.quantize.scale_offset.scale));
  }
  MOTE_RETURN_IF_ERROR(add_op(name, "Gather", {from, inside}, {found}, {scalar("axis", DataType::kInt32, 0)}));
  return is_codes ? add_op(name + "_halves", "Dequantize", {found}, {tensors_[node.output]}) : Status();
}

}  // namespace mote::qnn
