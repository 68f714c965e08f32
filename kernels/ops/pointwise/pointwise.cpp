#include "kernels/ops/pointwise/pointwise.h"

#include "kernels/kernel.h"
#include "kernels/support/strided_loop.h"

namespace mote::pointwise {

namespace {

// Elements that are worth handing to a thread: about 10 us of work.
constexpr int64_t kGrain = 8192, kVectorisedGrain = 32768;

struct Params {
  BlockFunction kernel;
  Parameters parameters;
  int64_t grain;
};

// Sizes of all inputs broadcast together, as in PyTorch.
Result<Sizes> broadcast_sizes(const Call& call) {
  int rank = 0;
  for (const Tensor* input : call.inputs) rank = std::max(rank, input->rank);
  Sizes sizes;
  for (int dim = 0; dim < rank; ++dim) sizes.push(1);
  for (const Tensor* input : call.inputs) {
    const int shift = rank - input->rank;
    for (int dim = 0; dim < input->rank; ++dim) {
      const int64_t size = input->size(dim);
      int64_t& common = sizes[dim + shift];
      MOTE_REQUIRE(size == common || size == 1 || common == 1, Code::kInvalidProgram,
                   "inputs have sizes %lld and %lld in dimension %d: must be equal or 1",
                   static_cast<long long>(common), static_cast<long long>(size), dim + shift);
      if (size != 1) common = size;
    }
  }
  return sizes;
}

template <typename T>
void run_typed(const Call& call, const Params& params, ThreadPool& threads) {
  const Tensor& y = *call.outputs[0];
  const Sizes sizes = Sizes::of(y);
  const size_t num_inputs = call.inputs.size();
  const Walk walks[kMaxInputs] = {Walk(*call.inputs[0], sizes.span()),
                                  Walk(*call.inputs[num_inputs > 1 ? 1 : 0], sizes.span()),
                                  Walk(*call.inputs[num_inputs > 2 ? 2 : 0], sizes.span())};
  const int64_t bytes = dtype_bytes(y.dtype);
  for_each_block(threads, y.num_elements(), params.grain, [&](int64_t begin, int64_t count) {
    T buffers[kMaxInputs][kBlock];
    const void* inputs[kMaxInputs] = {};
    for (size_t i = 0; i < num_inputs; ++i) {
      inputs[i] = walks[i].read(call.inputs[i]->template as<T>(), begin, count, buffers[i]);
    }
    params.kernel(inputs, y.as<std::byte>() + begin * bytes, count, params.parameters);
  });
}

}  // namespace

Status check(Call& call, const Row& row, size_t inputs) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, inputs, inputs, 1));
  for (size_t i = 0; i < inputs; ++i) {
    const std::string name = "input " + std::to_string(i);
    MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[i], name.c_str(), {call.inputs[0]->dtype}));
  }
  const Variant* chosen = nullptr;
  std::string accepted;
  for (const Variant& variant : row.variants) {
    if (variant.kernel == nullptr) continue;
    if (variant.input == call.inputs[0]->dtype) chosen = &variant;
    accepted += (accepted.empty() ? "" : ", ") + std::string(dtype_name(variant.input));
  }
  MOTE_REQUIRE(chosen != nullptr, Code::kInvalidProgram, "input 0 has dtype %s: must be %s",
               dtype_name(call.inputs[0]->dtype), accepted.c_str());
  MOTE_ASSIGN(const Sizes sizes, broadcast_sizes(call));
  MOTE_RETURN_IF_ERROR(expect_output(call, 0, chosen->output, sizes.span()));
  Params& params = call.make_params<Params>();
  params.kernel = chosen->kernel;
  params.grain = kGrain;
  if (row.read_attributes != nullptr) MOTE_RETURN_IF_ERROR(row.read_attributes(call, params.parameters));
  if (row.vectorised == nullptr || chosen->input != DType::kFloat32) return Status();
  MOTE_ASSIGN(const Vectorised* functions, select_functions<Vectorised>({}, 1));
  if (const BlockFunction vectorised = row.vectorised(*functions, params.parameters); vectorised != nullptr) {
    params.kernel = vectorised;
    params.grain = kVectorisedGrain;
  }
  return Status();
}

Status run(const Call& call, KernelContext& context) {
  const Params& params = call.get_params<Params>();
  switch (call.inputs[0]->dtype) {
    case DType::kFloat32: run_typed<float>(call, params, *context.threads); break;
    case DType::kInt64: run_typed<int64_t>(call, params, *context.threads); break;
    default: run_typed<uint8_t>(call, params, *context.threads); break;
  }
  return Status();
}

}  // namespace mote::pointwise
