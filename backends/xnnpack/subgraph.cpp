#include "backends/xnnpack/subgraph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include "backends/xnnpack/unpack.h"

namespace mote::xnnpack {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kInt4ZeroPoint = 8;

struct SubgraphDeleter {
  const Api* api = nullptr;
  void operator()(Subgraph* subgraph) const { api->delete_subgraph(subgraph); }
};

struct Dims {
  std::array<size_t, kMaxTensorDims> sizes{};
  size_t rank = 0;

  Dims(const Shape& shape, int64_t tokens) : rank(shape.size()) {
    for (size_t i = 0; i < rank; ++i) sizes[i] = static_cast<size_t>(shape[i].at(tokens));
  }
};

Unary unary_of(fb::Function function) {
  switch (function) {
    case fb::Function::approximate_gelu: return Unary::kApproximateGelu;
    case fb::Function::round: return Unary::kBankersRounding;
    case fb::Function::ceil: return Unary::kCeiling;
    case fb::Function::clamp: return Unary::kClamp;
    case fb::Function::cos: return Unary::kCosine;
    case fb::Function::elu: return Unary::kElu;
    case fb::Function::exp: return Unary::kExp;
    case fb::Function::floor: return Unary::kFloor;
    case fb::Function::gelu: return Unary::kGelu;
    case fb::Function::leaky_relu: return Unary::kLeakyRelu;
    case fb::Function::log: return Unary::kLog;
    case fb::Function::neg: return Unary::kNegate;
    case fb::Function::rsqrt: return Unary::kReciprocalSquareRoot;
    case fb::Function::sigmoid: return Unary::kSigmoid;
    case fb::Function::sin: return Unary::kSine;
    case fb::Function::sqrt: return Unary::kSquareRoot;
    case fb::Function::square: return Unary::kSquare;
    case fb::Function::tanh: return Unary::kTanh;
    default: return Unary::kAbs;
  }
}

Binary binary_of(fb::Function function) {
  switch (function) {
    case fb::Function::subtract: return Binary::kSubtract;
    case fb::Function::multiply: return Binary::kMultiply;
    case fb::Function::divide: return Binary::kDivide;
    case fb::Function::maximum: return Binary::kMaximum;
    case fb::Function::minimum: return Binary::kMinimum;
    default: return Binary::kAdd;
  }
}

class Builder {
 public:
  Builder(const Api& api, const Graph& graph, const std::vector<StaticTensor>& tensors, int64_t tokens)
      : api_(api),
        graph_(graph),
        tensors_(tensors),
        tokens_(tokens),
        ids_(graph.values.size()),
        ones_(most_dropped_scales(), kBFloat16One) {}

  Status build() {
    Subgraph* subgraph = nullptr;
    MOTE_RETURN_IF_ERROR(
        status_of(api_.create_subgraph(static_cast<uint32_t>(graph_.values.size()), 0, &subgraph), "make a subgraph"));
    subgraph_ = {subgraph, SubgraphDeleter{&api_}};
    for (uint32_t i = 0; i < graph_.values.size(); ++i) {
      const GraphValue& value = graph_.values[i];
      if (value.is_static() && tensors_[i].data == nullptr) continue;  // no node reads it
      MOTE_RETURN_IF_ERROR(status_of(value.is_static() ? define_static(i) : define_activation(i), "define a value"));
    }
    for (const GraphNode& node : graph_.nodes)
      MOTE_RETURN_IF_ERROR(status_of(define_node(node), fb::EnumNameOp(node.op)));
    return {};
  }

  Subgraph* get() const { return subgraph_.get(); }

 private:
  XnnStatus define_activation(uint32_t index) {
    const GraphValue& value = graph_.values[index];
    const Dims dims(value.shape, tokens_);
    if (value.dtype == fb::DType::int8_rows) {
      return api_.define_dynamically_quantized_tensor_value(get(), Datatype::kDynamicInt8, dims.rank, 1,
                                                            dims.sizes.data(), kInvalidValueId, 0, &ids_[index]);
    }
    const bool is_input = value.kind == fb::ValueKind::input, is_output = value.kind == fb::ValueKind::output;
    const Datatype dtype = value.dtype == fb::DType::float16 ? Datatype::kFloat16 : Datatype::kFloat32;
    return api_.define_tensor_value(get(), dtype, dims.rank, dims.sizes.data(), nullptr,
                                    is_input || is_output ? index : kInvalidValueId,
                                    is_input    ? kExternalInput
                                    : is_output ? kExternalOutput
                                                : 0,
                                    &ids_[index]);
  }

  XnnStatus define_static(uint32_t index) {
    const GraphValue& value = graph_.values[index];
    const StaticTensor& tensor = tensors_[index];
    const Dims dims(value.shape, 1);
    if (tensor.block_size > 0) return define_blocks(tensor, dims, &ids_[index]);
    if (tensor.row_scales != nullptr) {
      const bool is_int4 = value.form == fb::WeightForm::int4_rows;
      return api_.define_channelwise_quantized_tensor_value_v2(
          get(), is_int4 ? Datatype::kChannelwiseInt4 : Datatype::kChannelwiseInt8, is_int4 ? kInt4ZeroPoint : 0,
          tensor.row_scales, dims.rank, 0, dims.sizes.data(), tensor.data, kInvalidValueId, 0, &ids_[index]);
    }
    const Datatype dtype = value.form == fb::WeightForm::float16 ? Datatype::kFloat16 : Datatype::kFloat32;
    return api_.define_tensor_value(get(), dtype, dims.rank, dims.sizes.data(), tensor.data, kInvalidValueId, 0,
                                    &ids_[index]);
  }

  XnnStatus define_blocks(const StaticTensor& tensor, const Dims& dims, uint32_t* id) {
    const uint16_t* scales = tensor.block_scales == nullptr ? ones_.data() : tensor.block_scales;
    return api_.define_blockwise_quantized_tensor_value(get(), Datatype::kBlockwiseInt4, kInt4ZeroPoint, scales,
                                                        dims.rank, 0, static_cast<size_t>(tensor.block_size),
                                                        dims.sizes.data(), tensor.data, kInvalidValueId, 0, id);
  }

  size_t most_dropped_scales() const {
    int64_t most = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].block_size == 0 || tensors_[i].block_scales != nullptr) continue;
      const Shape& shape = graph_.values[i].shape;
      most = std::max(most, shape[0].constant * shape[1].constant / tensors_[i].block_size);
    }
    return static_cast<size_t>(most);
  }

  XnnStatus define_node(const GraphNode& node) {
    const uint32_t first = ids_[node.inputs[0]], output = ids_[node.output];
    const uint32_t second = node.inputs.size() > 1 ? ids_[node.inputs[1]] : kInvalidValueId;
    const BinaryParams unbounded{-static_cast<double>(kInfinity), static_cast<double>(kInfinity)};
    const size_t last = graph_.values[node.inputs[0]].shape.size() - 1;
    switch (node.op) {
      case fb::Op::unary: return define_unary(node);
      case fb::Op::binary:
        return api_.define_binary(get(), binary_of(node.function), &unbounded, first, second, output, 0);
      case fb::Op::convert: return api_.define_unary(get(), Unary::kConvert, nullptr, first, output, 0);
      case fb::Op::fully_connected:
        return api_.define_fully_connected(get(), -kInfinity, kInfinity, first, second,
                                           node.inputs.size() > 2 ? ids_[node.inputs[2]] : kInvalidValueId, output, 0);
      case fb::Op::batch_matrix_multiply: return api_.define_batch_matrix_multiply(get(), first, second, output, 0);
      case fb::Op::softmax: return api_.define_softmax(get(), first, output, 0);
      case fb::Op::mean: return api_.define_static_mean(get(), 1, &last, first, output, kKeepDims);
      case fb::Op::reshape: return define_reshape(node);
      case fb::Op::transpose:
        return api_.define_static_transpose(get(), node.axes.size(), node.axes.data(), first, output, 0);
      case fb::Op::slice: return define_slice(node);
      case fb::Op::concatenate: break;
    }
    std::vector<uint32_t> inputs;
    for (const uint32_t input : node.inputs) inputs.push_back(ids_[input]);
    return api_.define_concatenate(get(), static_cast<int32_t>(node.axes[0]), inputs.size(), inputs.data(), output, 0);
  }

  XnnStatus define_unary(const GraphNode& node) {
    UnaryParams params{};
    if (node.function == fb::Function::clamp) params.clamp = {node.numbers[0], node.numbers[1]};
    if (node.function == fb::Function::elu) params.elu.alpha = node.numbers[0];
    if (node.function == fb::Function::leaky_relu) params.leaky_relu.negative_slope = node.numbers[0];
    return api_.define_unary(get(), unary_of(node.function), &params, ids_[node.inputs[0]], ids_[node.output], 0);
  }

  // The size that grows with T is 0: XNNPACK finds it from the number of elements.
  XnnStatus define_reshape(const GraphNode& node) {
    const Shape& shape = graph_.values[node.output].shape;
    Dims dims(shape, 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].tokens != 0) dims.sizes[i] = 0;
    }
    return api_.define_static_reshape(get(), dims.rank, dims.sizes.data(), ids_[node.inputs[0]], ids_[node.output], 0);
  }

  XnnStatus define_slice(const GraphNode& node) {
    const Shape& shape = graph_.values[node.inputs[0]].shape;
    std::array<int64_t, kMaxTensorDims> begins{}, ends{};  // 0 to 0: all
    slice_bound(node.begin, shape[node.axes[0]], &begins[node.axes[0]]);
    slice_bound(node.end, shape[node.axes[0]], &ends[node.axes[0]]);
    return api_.define_static_slice_v3(get(), shape.size(), begins.data(), ends.data(), nullptr, ids_[node.inputs[0]],
                                       ids_[node.output], 0);
  }

  const Api& api_;
  const Graph& graph_;
  const std::vector<StaticTensor>& tensors_;
  int64_t tokens_;
  std::vector<uint32_t> ids_;
  // In place of scales of packed kernels, which were dropped: any will do, but they are looked at until the runtime is
  // made.
  const std::vector<uint16_t> ones_;
  std::unique_ptr<Subgraph, SubgraphDeleter> subgraph_;
};

}  // namespace

Status status_of(XnnStatus status, const char* action) {
  if (status == XnnStatus::kSuccess) return {};
  return Status(status == XnnStatus::kOutOfMemory ? Code::kOutOfMemory : Code::kInvalidProgram,
                format("XNNPACK refuses: %s: %s", action, status_name(status)));
}

Result<WorkspaceHandle> make_workspace(const Api& api) {
  Workspace* workspace = nullptr;
  MOTE_RETURN_IF_ERROR(status_of(api.create_workspace(&workspace), "make a workspace"));
  return WorkspaceHandle(workspace, WorkspaceDeleter{&api});
}

Result<RuntimeHandle> make_runtime(const Api& api, const Graph& graph, const std::vector<StaticTensor>& tensors,
                                   int64_t tokens, WeightsCacheProvider* provider, Workspace* workspace,
                                   Threadpool* threadpool) {
  // XNNPACK keeps tables of its own about what was packed, without a lock.
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  Builder builder(api, graph, tensors, tokens);
  MOTE_RETURN_IF_ERROR(builder.build());
  Runtime* runtime = nullptr;
  MOTE_RETURN_IF_ERROR(
      status_of(api.create_runtime_v4(builder.get(), provider, workspace, threadpool, kDontSpinWorkers, &runtime),
                "make a runtime"));
  return RuntimeHandle(runtime, RuntimeDeleter{&api});
}

}  // namespace mote::xnnpack
