// Elementwise kernels by dtype. A table row is an op, of which the dtype of the inputs picks a variant.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/ops/pointwise/vectorised.h"
#include "kernels/support/contract.h"
#include "kernels/support/token_axes.h"

namespace mote::pointwise {

struct Parameters {
  double low = 0;  // clamp: bounds; leaky_relu, elu: low is the factor; gelu: low is 1 for tanh
  double high = 0;
};

struct Variant {
  DType input;
  DType output;
  BlockFunction kernel = nullptr;
};

struct Row {
  std::string_view name;
  Variant variants[3];
  Status (*read_attributes)(const Call& call, Parameters& parameters) = nullptr;
  // Returns the function that replaces the float32 variant; nullptr, or a returned nullptr: none does.
  BlockFunction (*vectorised)(const Vectorised& functions, const Parameters& parameters) = nullptr;
};

inline constexpr int kMaxInputs = 3;

// Checks `inputs` operands that broadcast to the output and picks the variant.
Status check(Call& call, const Row& row, size_t inputs);
Status run(const Call& call, KernelContext& context);

// The storage type of a dtype; bool is a byte that is 0 or 1.
template <DType> struct Storage;
template <> struct Storage<DType::kFloat32> {
  using Type = float;
};
template <> struct Storage<DType::kInt64> {
  using Type = int64_t;
};
template <> struct Storage<DType::kBool> {
  using Type = uint8_t;
};

template <DType In, DType Out, auto Function>
constexpr Variant unary() {
  return {In, Out, [](const void* const* inputs, void* output, int64_t count, const Parameters& parameters) {
            const auto* x = static_cast<const typename Storage<In>::Type*>(inputs[0]);
            auto* y = static_cast<typename Storage<Out>::Type*>(output);
            for (int64_t i = 0; i < count; ++i) {
              if constexpr (requires { Function(x[i], parameters); }) {
                y[i] = Function(x[i], parameters);
              } else {
                y[i] = Function(x[i]);
              }
            }
          }};
}

template <DType In, DType Out, auto Function>
constexpr Variant binary() {
  return {In, Out, [](const void* const* inputs, void* output, int64_t count, const Parameters&) {
            const auto* a = static_cast<const typename Storage<In>::Type*>(inputs[0]);
            const auto* b = static_cast<const typename Storage<In>::Type*>(inputs[1]);
            auto* y = static_cast<typename Storage<Out>::Type*>(output);
            for (int64_t i = 0; i < count; ++i) y[i] = Function(a[i], b[i]);
          }};
}

template <BlockFunction Vectorised::* Member>
constexpr BlockFunction member(const Vectorised& functions, const Parameters&) {
  return functions.*Member;
}

// Registers every row of a table, which has static storage: `check` finds its row by template argument.
template <const auto& Rows, size_t Inputs, size_t... Index>
void register_rows(std::index_sequence<Index...>) {
  (register_op(Op{.name = Rows[Index].name,
                  .check = [](Call& call) { return check(call, Rows[Index], Inputs); },
                  .run = run,
                  .token_axis = broadcast_axis}),
   ...);
}

}  // namespace mote::pointwise
