// softmax and log_softmax along any dimension, in float32; NaN and rows of -infinity give NaN, as in PyTorch.
#include "kernels/kernel.h"
#include "kernels/ops/softmax/softmax.h"
#include "kernels/support/contract.h"
#include "kernels/support/lines.h"
#include "kernels/support/math.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct Params {
  const SoftmaxFunctions* functions;
  int dim;
};

// Lines that are worth handing to a thread: about 10 us of work.
int64_t grain(int64_t length) { return std::max<int64_t>(1, 32768 / std::max<int64_t>(length, 1)); }

void softmax(const SoftmaxFunctions& functions, const float* x, int64_t n, float* y) {
  const float sum = functions.exponentials(x, n, functions.maximum(x, n), y);
  functions.divide(y, n, sum);
}

void log_softmax(const SoftmaxFunctions& functions, const float* x, int64_t n, float* y) {
  const float top = functions.maximum(x, n);
  const float log_sum = static_cast<float>(math::log(static_cast<double>(functions.exponentials(x, n, top, y))));
  for (int64_t k = 0; k < n; ++k) y[k] = x[k] - top - log_sum;
}

Status check(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "input 0", {DType::kFloat32}));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", x.rank));
  Params& params = call.make_params<Params>();
  params.dim = dim;
  MOTE_ASSIGN(params.functions, select_functions<SoftmaxFunctions>({}, 1));
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

// Two lines for each thread: the input and the output where they are strided.
size_t scratch_bytes(const Call& call, int num_threads) {
  const Lines lines(*call.inputs[0], call.get_params<Params>().dim);
  return static_cast<size_t>(lines.length()) * 2 * sizeof(float) * static_cast<size_t>(num_threads);
}

template <auto Function>
Status run(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& y = *call.outputs[0];
  if (y.num_elements() == 0) return Status();
  const Params params = call.get_params<Params>();
  const Lines from(x, params.dim), to(y, params.dim);
  const int64_t n = from.length();
  float* scratch = reinterpret_cast<float*>(context.scratch.data());
  context.threads->parallel_for(from.count(), grain(n), [&](int64_t begin, int64_t end, int thread) {
    float* in_buffer = scratch + thread * 2 * n;
    for (int64_t line = begin; line < end; ++line) {
      const float* in = x.as<float>() + from.offset(line);
      float* out = y.as<float>() + to.offset(line);
      if (from.stride() != 1) {
        for (int64_t k = 0; k < n; ++k) in_buffer[k] = in[k * from.stride()];
        in = in_buffer;
      }
      float* result = to.stride() == 1 ? out : in_buffer + n;
      Function(*params.functions, in, n, result);
      if (to.stride() == 1) continue;
      for (int64_t k = 0; k < n; ++k) out[k * to.stride()] = result[k];
    }
  });
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.softmax", .check = check, .scratch_bytes = scratch_bytes, .run = run<softmax>,
                 .token_axis = along_axis);
MOTE_REGISTER_OP(.name = "aten.log_softmax", .check = check, .scratch_bytes = scratch_bytes, .run = run<log_softmax>,
                 .token_axis = along_axis);

}  // namespace mote
