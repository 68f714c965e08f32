#include "tests/kernels/simd/operations.h"

#include "kernels/kernel.h"
#include "kernels/simd/math.h"

namespace mote::test {
inline namespace MOTE_ISA {
namespace {

F32x16 floats(const std::byte* from) { return load_f32(reinterpret_cast<const float*>(from)); }

template <auto Function>
void float_1(const std::byte* a, const std::byte*, const std::byte*, const std::byte*, std::byte* y) {
  store_f32(reinterpret_cast<float*>(y), Function(floats(a)));
}
template <auto Function>
void float_2(const std::byte* a, const std::byte* b, const std::byte*, const std::byte*, std::byte* y) {
  store_f32(reinterpret_cast<float*>(y), Function(floats(a), floats(b)));
}
template <auto Function>
void float_3(const std::byte* a, const std::byte* b, const std::byte* c, const std::byte*, std::byte* y) {
  store_f32(reinterpret_cast<float*>(y), Function(floats(a), floats(b), floats(c)));
}
template <auto Function>
void float_4(const std::byte* a, const std::byte* b, const std::byte* c, const std::byte* d, std::byte* y) {
  store_f32(reinterpret_cast<float*>(y), Function(floats(a), floats(b), floats(c), floats(d)));
}
template <auto Function>
void integer_2(const std::byte* a, const std::byte* b, const std::byte*, const std::byte*, std::byte* y) {
  store_i32(y, Function(load_i32(a), load_i32(b)));
}
// Memory to floats, to integers; a vector to memory.
template <auto Function>
void to_floats(const std::byte* a, const std::byte*, const std::byte*, const std::byte*, std::byte* y) {
  store_f32(reinterpret_cast<float*>(y), Function(a));
}
template <auto Function>
void to_integers(const std::byte* a, const std::byte*, const std::byte*, const std::byte*, std::byte* y) {
  store_i32(y, Function(a));
}
template <auto Function>
void to_memory(const std::byte* a, const std::byte*, const std::byte*, const std::byte*, std::byte* y) {
  Function(a, y);
}

constexpr Domain kFloats = Domain::kFloats, kIntegers = Domain::kIntegers;

constexpr SimdOperation kOperations[] = {
    {"add", kFloats, true, float_2<[](F32x16 a, F32x16 b) { return a + b; }>},
    {"sub", kFloats, true, float_2<[](F32x16 a, F32x16 b) { return a - b; }>},
    {"mul", kFloats, true, float_2<[](F32x16 a, F32x16 b) { return a * b; }>},
    {"div", kFloats, true, float_2<[](F32x16 a, F32x16 b) { return a / b; }>},
    {"fma", kFloats, true, float_3<[](F32x16 a, F32x16 b, F32x16 c) { return fma(a, b, c); }>},
    {"fnma", kFloats, true, float_3<[](F32x16 a, F32x16 b, F32x16 c) { return fnma(a, b, c); }>},
    {"min", kFloats, true, float_2<[](F32x16 a, F32x16 b) { return min(a, b); }>},
    {"max", kFloats, true, float_2<[](F32x16 a, F32x16 b) { return max(a, b); }>},
    {"select_less", kFloats, true,
     float_4<[](F32x16 a, F32x16 b, F32x16 c, F32x16 d) { return select_less(a, b, c, d); }>},
    {"exp", kFloats, true, float_1<[](F32x16 x) { return exp(x); }>},
    {"sigmoid", kFloats, true, float_1<[](F32x16 x) { return sigmoid(x); }>},
    {"silu", kFloats, true, float_1<[](F32x16 x) { return silu(x); }>},
    {"tanh", kFloats, true, float_1<[](F32x16 x) { return tanh(x); }>},
    {"gelu_tanh", kFloats, true, float_1<[](F32x16 x) { return gelu_tanh(x); }>},
    {"sum_lanes_of_4", kFloats, true, float_1<[](F32x16 x) {
       const F32x16 values[] = {x, x + x, x, x - x};
       float sums[16] = {};
       sum_lanes_of_4(values, sums);
       return load_f32(sums);
     }>},
    {"sum_lanes", kFloats, true, float_1<[](F32x16 x) { return splat(sum_lanes(x)); }>},
    {"max_lanes", kFloats, true, float_1<[](F32x16 x) { return splat(max_lanes(x)); }>},
    {"transform_lanes", kFloats, true, float_1<[](F32x16 x) { return transform_lanes(x); }>},
    {"load_part", kFloats, true,
     to_floats<[](const std::byte* a) { return load_part(reinterpret_cast<const float*>(a), 5); }>},
    {"store_part", kFloats, true,
     to_memory<[](const std::byte* a, std::byte* y) { store_part(reinterpret_cast<float*>(y), floats(a), 11); }>},
    {"load_f16", kIntegers, true, to_floats<[](const std::byte* a) { return load_f16(a); }>},
    {"load_bf16", kIntegers, true, to_floats<[](const std::byte* a) { return load_bf16(a); }>},
    {"bits_to_f32", kIntegers, true, to_floats<[](const std::byte* a) { return bits_to_f32(load_i32(a)); }>},
    {"to_f32", kIntegers, true, to_floats<[](const std::byte* a) { return to_f32(load_i32(a)); }>},
    {"load_i8", kIntegers, false, to_integers<[](const std::byte* a) { return load_i8(a); }>},
    {"bits_to_i32", kIntegers, false, to_integers<[](const std::byte* a) { return bits_to_i32(floats(a)); }>},
    {"round_to_i32", Domain::kRoundable, false,
     to_integers<[](const std::byte* a) { return round_to_i32(floats(a)); }>},
    {"shift_left", kIntegers, false, to_integers<[](const std::byte* a) { return shift_left<5>(load_i32(a)); }>},
    {"shift_right", kIntegers, false, to_integers<[](const std::byte* a) { return shift_right<5>(load_i32(a)); }>},
    {"add_i32", kIntegers, false, integer_2<[](I32x16 a, I32x16 b) { return a + b; }>},
    {"sub_i32", kIntegers, false, integer_2<[](I32x16 a, I32x16 b) { return a - b; }>},
    {"and_i32", kIntegers, false, integer_2<[](I32x16 a, I32x16 b) { return a & b; }>},
    {"store_i8", Domain::kBytes, false, to_memory<[](const std::byte* a, std::byte* y) { store_i8(y, load_i32(a)); }>},
    {"store_f16", kFloats, false, to_memory<[](const std::byte* a, std::byte* y) { store_f16(y, floats(a)); }>},
};

constexpr SimdOperations kFunctions = {kOperations, sizeof(kOperations) / sizeof(kOperations[0])};

#if defined(MOTE_SIMD_GENERIC)
constexpr int kOwnRank = -1;
#else
constexpr int kOwnRank = kRank;
#endif

MOTE_REGISTER_KERNEL(.name = "operations_" MOTE_ISA_NAME, .role = SimdOperations::kRole, .needs = kNeeds,
                     .rank = kOwnRank, .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote::test
