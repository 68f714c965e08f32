#include "kernels/ops/pointwise/vectorised.h"

#include "kernels/kernel.h"
#include "kernels/simd/math.h"

namespace mote::pointwise {
inline namespace MOTE_ISA {
namespace {

template <auto Function>
void unary(const void* const* inputs, void* output, int64_t count, const Parameters&) {
  const float* x = static_cast<const float*>(inputs[0]);
  float* y = static_cast<float*>(output);
  for (int64_t i = 0; i < count; i += 16) store_upto(y + i, Function(load_upto(x + i, count - i)), count - i);
}

template <auto Function>
void binary(const void* const* inputs, void* output, int64_t count, const Parameters&) {
  const float* a = static_cast<const float*>(inputs[0]);
  const float* b = static_cast<const float*>(inputs[1]);
  float* y = static_cast<float*>(output);
  for (int64_t i = 0; i < count; i += 16) {
    store_upto(y + i, Function(load_upto(a + i, count - i), load_upto(b + i, count - i)), count - i);
  }
}

constexpr Vectorised kFunctions = {
    .add = binary<[](F32x16 a, F32x16 b) { return a + b; }>,
    .sub = binary<[](F32x16 a, F32x16 b) { return a - b; }>,
    .mul = binary<[](F32x16 a, F32x16 b) { return a * b; }>,
    .div = binary<[](F32x16 a, F32x16 b) { return a / b; }>,
    .exp = unary<[](F32x16 x) { return exp(x); }>,
    .tanh = unary<[](F32x16 x) { return tanh(x); }>,
    .sigmoid = unary<[](F32x16 x) { return sigmoid(x); }>,
    .silu = unary<[](F32x16 x) { return silu(x); }>,
    .gelu_tanh = unary<[](F32x16 x) { return gelu_tanh(x); }>,
    .relu = unary<[](F32x16 x) { return select_less(x, splat(0.0f), splat(0.0f), x); }>,
    .square = unary<[](F32x16 x) { return x * x; }>,
};

MOTE_REGISTER_KERNEL(.name = "pointwise_" MOTE_ISA_NAME, .role = Vectorised::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote::pointwise
