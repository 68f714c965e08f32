// cumsum: each line is summed in order, by one thread.
#include "kernels/support/contract.h"
#include "kernels/support/lines.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct Params {
  int dim;
};

template <typename In, typename Out, typename Sum>
void cumsum(const Tensor& x, const Tensor& y, int dim, ThreadPool& threads) {
  const Lines from(x, dim), to(y, dim);
  threads.parallel_for(from.count(), from.grain(), [&](int64_t begin, int64_t end, int) {
    for (int64_t line = begin; line < end; ++line) {
      const In* in = x.as<In>() + from.offset(line);
      Out* out = y.as<Out>() + to.offset(line);
      Sum sum = 0;
      for (int64_t i = 0; i < from.length(); ++i) {
        sum += static_cast<Sum>(in[i * from.stride()]);
        out[i * to.stride()] = static_cast<Out>(sum);
      }
    }
  });
}

Status check(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "input 0", {DType::kFloat32, DType::kInt64, DType::kInt32, DType::kBool}));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", x.rank));
  call.make_params<Params>().dim = dim;
  const DType dtype = x.dtype == DType::kFloat32 ? DType::kFloat32 : DType::kInt64;
  return expect_output(call, 0, dtype, Sizes::of(x).span());
}

Status run(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& y = *call.outputs[0];
  if (y.num_elements() == 0) return Status();
  const int dim = call.get_params<Params>().dim;
  ThreadPool& threads = *context.threads;
  switch (x.dtype) {  // floats are summed in double, as PyTorch does; integers wrap
    case DType::kFloat32: cumsum<float, float, double>(x, y, dim, threads); break;
    case DType::kInt64: cumsum<int64_t, int64_t, uint64_t>(x, y, dim, threads); break;
    case DType::kInt32: cumsum<int32_t, int64_t, uint64_t>(x, y, dim, threads); break;
    default: cumsum<uint8_t, int64_t, uint64_t>(x, y, dim, threads); break;
  }
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.cumsum", .check = check, .run = run, .token_axis = along_axis);

}  // namespace mote
