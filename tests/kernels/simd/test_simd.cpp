// kernels/simd: the same bits in every instruction set that this CPU has, and right.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <span>

#include "kernels/kernel.h"
#include "kernels/simd/fused.h"
#include "kernels/support/float_bits.h"
#include "tests/kernels/simd/operations.h"

namespace mote::test {
namespace {

using Bytes = std::array<std::byte, kVectorBytes>;
using Floats = std::array<float, 16>;
using Random = std::independent_bits_engine<std::mt19937, 32, uint32_t>;
using Inputs = std::array<Bytes, 4>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSpecial[] = {0.0f,
                              -0.0f,
                              1e-45f,
                              -1e-45f,
                              1e-40f,
                              -1e-40f,
                              0x1p-126f,
                              -0x1p-126f,
                              1.0f,
                              -1.0f,
                              0.5f,
                              1.5f,
                              -2.5f,
                              0.625f,
                              -0.625f,
                              3.14159f,
                              1e-4f,
                              20.0f,
                              -20.0f,
                              87.33654f,
                              -87.33654f,
                              -87.4f,
                              88.72283f,
                              88.72284f,
                              -88.8f,
                              89.0f,
                              -104.0f,
                              65504.0f,
                              65519.9f,
                              65520.0f,
                              5.9604645e-8f,
                              2.9e-8f,
                              6.1e-5f,
                              3.4028235e38f,
                              -3.4028235e38f,
                              kInfinity,
                              -kInfinity,
                              std::numeric_limits<float>::quiet_NaN(),
                              -std::numeric_limits<float>::quiet_NaN()};

std::vector<const Kernel*> runnable() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : all_kernels()) {
    if (kernel->role == SimdOperations::kRole && cpu_features()->has_all(kernel->needs)) kernels.push_back(kernel);
  }
  return kernels;
}

std::span<const SimdOperation> operations_of(const Kernel* kernel) {
  const auto* functions = static_cast<const SimdOperations*>(kernel->functions);
  return {functions->list, functions->count};
}

// A number for each lane: special ones, ordinary ones, and any bits, restricted to what the operation takes.
uint32_t lane(Domain domain, Random& generator) {
  const uint32_t bits = generator(), kind = generator() % 4;
  const float ordinary = static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-24f;  // -128..128
  if (domain == Domain::kIntegers) return bits;
  if (domain == Domain::kBytes) return static_cast<uint32_t>(static_cast<int32_t>(bits % 256) - 128);
  if (domain == Domain::kRoundable) {
    const float halves = static_cast<float>(static_cast<int32_t>(bits) >> 9) * 0.5f;
    return std::bit_cast<uint32_t>(kind == 0 ? ordinary : halves);
  }
  if (kind == 0) return bits;
  if (kind == 1) return std::bit_cast<uint32_t>(kSpecial[bits % std::size(kSpecial)]);
  return std::bit_cast<uint32_t>(ordinary);
}

Inputs random_inputs(Domain domain, Random& generator) {
  Inputs inputs;
  for (Bytes& vector : inputs) {
    std::array<uint32_t, 16> lanes;
    for (uint32_t& value : lanes) value = lane(domain, generator);
    vector = std::bit_cast<Bytes>(lanes);
  }
  return inputs;
}

// Any NaN becomes the same one.
Bytes run(const SimdOperation& operation, const Inputs& inputs) {
  Bytes y{};
  operation.run(inputs[0].data(), inputs[1].data(), inputs[2].data(), inputs[3].data(), y.data());
  if (!operation.gives_floats) return y;
  Floats floats = std::bit_cast<Floats>(y);
  for (float& value : floats) value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
  return std::bit_cast<Bytes>(floats);
}

Bytes half_nans_alike(Bytes bytes) {
  auto halves = std::bit_cast<std::array<uint16_t, 32>>(bytes);
  for (uint16_t& half : halves) half = (half & 0x7fffu) > 0x7c00u ? uint16_t{0x7e00} : half;
  return std::bit_cast<Bytes>(halves);
}

const SimdOperation& operation_named(const Kernel* kernel, std::string_view name) {
  for (const SimdOperation& operation : operations_of(kernel)) {
    if (operation.name == name) return operation;
  }
  ADD_FAILURE() << "no operation " << name;
  return operations_of(kernel).front();
}

// One argument of float32 in every lane.
float call(const Kernel* kernel, std::string_view name, float x) {
  Inputs inputs{};
  Floats lanes;
  lanes.fill(x);
  inputs[0] = std::bit_cast<Bytes>(lanes);
  return std::bit_cast<Floats>(run(operation_named(kernel, name), inputs))[0];
}

TEST(Simd, every_instruction_set_gives_the_bits_of_the_lowest) {
  const std::vector<const Kernel*> kernels = runnable();
  const Kernel* lowest = kernels.back();
  ASSERT_LE(lowest->rank, 0);
  for (const SimdOperation& operation : operations_of(lowest)) {
    Random generator(7);
    for (int repeat = 0; repeat < 2000; ++repeat) {
      const Inputs inputs = random_inputs(operation.domain, generator);
      Bytes expected = run(operation, inputs);
      for (const Kernel* kernel : kernels) {
        Bytes actual = run(operation_named(kernel, operation.name), inputs);
        if (operation.name == "store_f16") {
          actual = half_nans_alike(actual);
          expected = half_nans_alike(expected);
        }
        ASSERT_TRUE(expected == actual) << operation.name << ": " << kernel->name << " differs from " << lowest->name;
      }
    }
  }
}

using Reference = std::function<float(float a, float b, float c, float d)>;

TEST(Simd, float_operations_are_those_of_the_language) {
  const std::map<std::string_view, Reference> references = {
      {"add", [](float a, float b, float, float) { return a + b; }},
      {"sub", [](float a, float b, float, float) { return a - b; }},
      {"mul", [](float a, float b, float, float) { return a * b; }},
      {"div", [](float a, float b, float, float) { return a / b; }},
      {"fma", [](float a, float b, float c, float) { return fused_multiply_add(a, b, c); }},
      {"fnma", [](float a, float b, float c, float) { return fused_multiply_add(-a, b, c); }},
      {"min", [](float a, float b, float, float) { return a < b ? a : b; }},
      {"max", [](float a, float b, float, float) { return a > b ? a : b; }},
      {"select_less", [](float a, float b, float c, float d) { return a < b ? c : d; }},
  };
  for (const Kernel* kernel : runnable()) {
    for (const auto& [name, reference] : references) {
      Random generator(8);
      for (int repeat = 0; repeat < 500; ++repeat) {
        const Inputs inputs = random_inputs(Domain::kFloats, generator);
        const auto y = std::bit_cast<std::array<uint32_t, 16>>(run(operation_named(kernel, name), inputs));
        for (size_t i = 0; i < 16; ++i) {
          const auto at = [&](size_t input) { return std::bit_cast<Floats>(inputs[input])[i]; };
          float expected = reference(at(0), at(1), at(2), at(3));
          if (std::isnan(expected)) expected = std::numeric_limits<float>::quiet_NaN();
          ASSERT_EQ(std::bit_cast<uint32_t>(expected), y[i])
              << name << " " << kernel->name << " " << at(0) << " " << at(1);
        }
      }
    }
  }
}

struct Function {
  const char* name;
  double (*reference)(double);
  double relative;  // stated in kernels/simd/math.h
  double of_x;      // error allowed as a part of |x|
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Simd, functions_are_within_their_stated_errors_of_double) {
  const Function functions[] = {
      {"exp", [](double x) { return std::exp(x); }, 1.3e-7, 0},
      {"sigmoid", sigmoid, 4e-7, 0},
      {"silu", [](double x) { return x * sigmoid(x); }, 4e-7, 0},
      {"tanh", [](double x) { return std::tanh(x); }, 4e-7, 0},
      {"gelu_tanh", [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); },
       0, 4e-7},
  };
  const Kernel* kernel = runnable().back();  // the others give the same bits
  for (const Function& function : functions) {
    Random generator(9);
    for (const double range : {1e-6, 0.1, 1.0, 10.0, 87.3}) {
      std::uniform_real_distribution<double> uniform(-range, range);
      for (int i = 0; i < 4000; ++i) {
        const auto x = static_cast<float>(uniform(generator));
        const double exact = function.reference(static_cast<double>(x));
        const double error = std::fabs(static_cast<double>(call(kernel, function.name, x)) - exact);
        ASSERT_LE(error, function.relative * std::fabs(exact) + function.of_x * std::fabs(static_cast<double>(x)))
            << function.name << "(" << x << ") = " << exact;
      }
    }
  }
}

TEST(Simd, functions_at_the_ends_of_their_ranges) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Kernel* kernel : runnable()) {
    for (const char* name : {"exp", "sigmoid", "silu", "tanh", "gelu_tanh"}) {
      EXPECT_TRUE(std::isnan(call(kernel, name, nan))) << name << kernel->name;
      EXPECT_TRUE(std::isnan(call(kernel, name, -nan))) << name << kernel->name;
    }
    for (const float x : {0.0f, -0.0f, 1e-45f, -1e-40f}) {
      EXPECT_EQ(1.0f, call(kernel, "exp", x));
      EXPECT_EQ(0.5f, call(kernel, "sigmoid", x));
      EXPECT_EQ(std::bit_cast<uint32_t>(x), std::bit_cast<uint32_t>(call(kernel, "tanh", x))) << x;
    }
    EXPECT_EQ(0.0f, call(kernel, "exp", -kInfinity));
    EXPECT_EQ(0.0f, call(kernel, "exp", -87.4f));
    EXPECT_GE(call(kernel, "exp", -87.33654f), 0x1p-126f);
    EXPECT_LT(call(kernel, "exp", 88.72283f), kInfinity);
    EXPECT_EQ(kInfinity, call(kernel, "exp", 88.8f));
    EXPECT_EQ(kInfinity, call(kernel, "exp", kInfinity));
    EXPECT_EQ(1.0f, call(kernel, "sigmoid", kInfinity));
    EXPECT_EQ(0.0f, call(kernel, "sigmoid", -kInfinity));
    EXPECT_EQ(kInfinity, call(kernel, "silu", kInfinity));
    EXPECT_EQ(0.0f, call(kernel, "silu", -1e30f));
    EXPECT_EQ(1.0f, call(kernel, "tanh", kInfinity));
    EXPECT_EQ(-1.0f, call(kernel, "tanh", -kInfinity));
    EXPECT_EQ(3e38f, call(kernel, "gelu_tanh", 3e38f));
    EXPECT_EQ(0.0f, call(kernel, "gelu_tanh", -3e38f));
  }
}

TEST(Simd, all_float16_and_bfloat16_values_convert) {
  for (const Kernel* kernel : runnable()) {
    const SimdOperation& widen = operation_named(kernel, "load_f16");
    const SimdOperation& narrow = operation_named(kernel, "store_f16");
    const SimdOperation& widen_bfloat = operation_named(kernel, "load_bf16");
    for (uint32_t first = 0; first < 65536; first += 16) {
      std::array<uint16_t, 32> halves{};
      for (uint32_t i = 0; i < 16; ++i) halves[i] = static_cast<uint16_t>(first + i);
      Inputs inputs{};
      inputs[0] = std::bit_cast<Bytes>(halves);
      const auto floats = std::bit_cast<Floats>(run(widen, inputs));
      const auto bfloats = std::bit_cast<Floats>(run(widen_bfloat, inputs));
      inputs[0] = std::bit_cast<Bytes>(floats);
      const auto back = std::bit_cast<std::array<uint16_t, 32>>(run(narrow, inputs));
      for (size_t i = 0; i < 16; ++i) {
        const bool is_nan = (halves[i] & 0x7fffu) > 0x7c00u;
        ASSERT_EQ(is_nan, std::isnan(floats[i])) << halves[i];
        ASSERT_EQ((halves[i] & 0x7fffu) > 0x7f80u, std::isnan(bfloats[i])) << halves[i];
        if (is_nan) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(float16_to_float32(halves[i])), std::bit_cast<uint32_t>(floats[i]));
        ASSERT_EQ(halves[i], back[i]) << kernel->name;
        if (std::isnan(bfloats[i])) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(bfloats[i]), uint32_t{halves[i]} << 16);
      }
    }
  }
}

TEST(Simd, floats_round_to_the_nearest_float16) {
  for (const Kernel* kernel : runnable()) {
    const SimdOperation& narrow = operation_named(kernel, "store_f16");
    Random generator(10);
    for (int repeat = 0; repeat < 4000; ++repeat) {
      Floats values;
      for (float& value : values) {
        const float half = float16_to_float32(static_cast<uint16_t>(generator() % 0x7c00u));
        const float next = float16_to_float32(static_cast<uint16_t>(float32_to_float16(half) + 1));
        const float middle = std::isinf(next) ? 65520.0f : half + (next - half) * 0.5f;
        const float near[] = {half, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInfinity)};
        value = near[generator() % 4] * (generator() % 2 == 0 ? 1.0f : -1.0f);
      }
      Inputs inputs{};
      inputs[0] = std::bit_cast<Bytes>(values);
      const auto halves = std::bit_cast<std::array<uint16_t, 32>>(run(narrow, inputs));
      for (size_t i = 0; i < 16; ++i) ASSERT_EQ(float32_to_float16(values[i]), halves[i]) << values[i] << kernel->name;
    }
  }
}

TEST(Simd, integer_operations) {
  for (const Kernel* kernel : runnable()) {
    Random generator(11);
    for (int repeat = 0; repeat < 500; ++repeat) {
      const Inputs inputs = random_inputs(Domain::kIntegers, generator);
      const auto a = std::bit_cast<std::array<uint32_t, 16>>(inputs[0]),
                 b = std::bit_cast<std::array<uint32_t, 16>>(inputs[1]);
      const auto of = [&](std::string_view name) {
        return std::bit_cast<std::array<int32_t, 16>>(run(operation_named(kernel, name), inputs));
      };
      const auto sum = of("add_i32"), difference = of("sub_i32"), both = of("and_i32"), left = of("shift_left"),
                 right = of("shift_right"), bytes = of("load_i8");
      const auto converted = std::bit_cast<Floats>(run(operation_named(kernel, "to_f32"), inputs));
      for (size_t i = 0; i < 16; ++i) {
        ASSERT_EQ(static_cast<int32_t>(a[i] + b[i]), sum[i]);
        ASSERT_EQ(static_cast<int32_t>(a[i] - b[i]), difference[i]);
        ASSERT_EQ(static_cast<int32_t>(a[i] & b[i]), both[i]);
        ASSERT_EQ(static_cast<int32_t>(a[i] << 5), left[i]);
        ASSERT_EQ(static_cast<int32_t>(a[i]) >> 5, right[i]);
        ASSERT_EQ(static_cast<int8_t>(inputs[0][i]), bytes[i]);
        ASSERT_EQ(static_cast<float>(static_cast<int32_t>(a[i])), converted[i]);
      }
      const Inputs roundable = random_inputs(Domain::kRoundable, generator),
                   bytes_in = random_inputs(Domain::kBytes, generator);
      const auto x = std::bit_cast<Floats>(roundable[0]);
      const auto rounded =
          std::bit_cast<std::array<int32_t, 16>>(run(operation_named(kernel, "round_to_i32"), roundable));
      const auto words = std::bit_cast<std::array<int32_t, 16>>(bytes_in[0]);
      const Bytes stored = run(operation_named(kernel, "store_i8"), bytes_in);
      for (size_t i = 0; i < 16; ++i) {
        ASSERT_EQ(static_cast<int32_t>(std::nearbyint(x[i])), rounded[i]) << x[i];
        ASSERT_EQ(words[i], static_cast<int8_t>(stored[i]));
      }
    }
  }
}

TEST(Simd, lanes_become_one_in_one_order) {
  Random generator(12);
  std::normal_distribution<float> normal;
  for (const Kernel* kernel : runnable()) {
    for (int repeat = 0; repeat < 500; ++repeat) {
      Floats l;
      for (float& value : l) value = normal(generator);
      Inputs inputs{};
      inputs[0] = std::bit_cast<Bytes>(l);
      const auto four = [&](size_t i) { return (l[i] + l[i + 8]) + (l[i + 4] + l[i + 12]); };
      ASSERT_EQ((four(0) + four(2)) + (four(1) + four(3)),
                std::bit_cast<Floats>(run(operation_named(kernel, "sum_lanes"), inputs))[3]);
      const float sum = std::bit_cast<Floats>(run(operation_named(kernel, "sum_lanes"), inputs))[3];
      const auto sums = std::bit_cast<Floats>(run(operation_named(kernel, "sum_lanes_of_4"), inputs));
      ASSERT_EQ((std::array{sum, 2 * sum, sum, 0.0f}), (std::array{sums[0], sums[1], sums[2], sums[3]}));
      ASSERT_EQ(*std::max_element(l.begin(), l.end()),
                std::bit_cast<Floats>(run(operation_named(kernel, "max_lanes"), inputs))[3]);
      const auto part = std::bit_cast<Floats>(run(operation_named(kernel, "load_part"), inputs));
      const auto stored = std::bit_cast<Floats>(run(operation_named(kernel, "store_part"), inputs));
      for (size_t i = 0; i < 16; ++i) {
        ASSERT_EQ(i < 5 ? l[i] : 0.0f, part[i]);
        ASSERT_EQ(i < 11 ? l[i] : 0.0f, stored[i]);
      }
    }
  }
}

}  // namespace
}  // namespace mote::test
