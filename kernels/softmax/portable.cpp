// softmax and log_softmax along any dimension, in float32; NaN and rows of -infinity give NaN, as in PyTorch.
#include <limits>

#include "kernels/contract.h"
#include "kernels/lines.h"
#include "kernels/math.h"
#include "kernels/simd.h"

namespace mote {

namespace {

struct Params {
  int dim;
};

float maximum(const float* x, int64_t n) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = x[k + lane] > lanes[lane] ? x[k + lane] : lanes[lane];
  }
  for (int lane = 0; k < n; ++k, ++lane) lanes[lane] = x[k] > lanes[lane] ? x[k] : lanes[lane];
  float result = lanes[0];
  for (const float lane : lanes) result = lane > result ? lane : result;
  return result;  // a NaN is skipped here and comes back in the sum
}

// x becomes e^(x - top); returns the sum, element k in lane k % 16.
float exponentials(const float* x, int64_t n, float top, float* y) {
  for (int64_t k = 0; k < n; ++k) y[k] = math::exp(x[k] - top);
  float lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += y[k + lane];
  }
  for (int lane = 0; k < n; ++k, ++lane) lanes[lane] += y[k];
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

void softmax(const float* x, int64_t n, float* y) {
  const float sum = exponentials(x, n, maximum(x, n), y);
  for (int64_t k = 0; k < n; ++k) y[k] /= sum;
}

void log_softmax(const float* x, int64_t n, float* y) {
  const float top = maximum(x, n);
  const float log_sum = static_cast<float>(math::log(static_cast<double>(exponentials(x, n, top, y))));
  for (int64_t k = 0; k < n; ++k) y[k] = x[k] - top - log_sum;
}

Status check(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "input 0", {DType::kFloat32}));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", x.rank));
  call.make_params<Params>().dim = dim;
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
  const int dim = call.get_params<Params>().dim;
  const Lines from(x, dim), to(y, dim);
  const int64_t n = from.length();
  float* scratch = reinterpret_cast<float*>(context.scratch.data());
  context.threads->parallel_for(from.count(), from.grain(), [&](int64_t begin, int64_t end, int thread) {
    float* in_buffer = scratch + thread * 2 * n;
    for (int64_t line = begin; line < end; ++line) {
      const float* in = x.as<float>() + from.offset(line);
      float* out = y.as<float>() + to.offset(line);
      if (from.stride() != 1) {
        for (int64_t k = 0; k < n; ++k) in_buffer[k] = in[k * from.stride()];
        in = in_buffer;
      }
      float* result = to.stride() == 1 ? out : in_buffer + n;
      Function(in, n, result);
      if (to.stride() == 1) continue;
      for (int64_t k = 0; k < n; ++k) out[k * to.stride()] = result[k];
    }
  });
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.softmax", .check = check, .scratch_bytes = scratch_bytes, .run = run<softmax>);
MOTE_REGISTER_OP(.name = "aten.log_softmax", .check = check, .scratch_bytes = scratch_bytes, .run = run<log_softmax>);

}  // namespace mote
