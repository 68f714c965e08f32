// What *_simd.cpp register: the same bits in every instruction set that this CPU has, for lengths of every remainder;
// and the scans of a vocabulary against loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "kernels/kernel.h"
#include "kernels/ops/matmul/panel.h"
#include "kernels/ops/norm/norm.h"
#include "kernels/ops/pointwise/pointwise.h"
#include "kernels/ops/softmax/softmax.h"
#include "kernels/support/scan.h"

namespace mote::test {
namespace {

using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kLengths[] = {1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 255, 256, 257, 1000, 2048, 4097};

template <typename Functions>
std::vector<const Functions*> runnable() {
  std::vector<const Functions*> found;
  for (const Kernel* kernel : all_kernels()) {
    if (kernel->role != Functions::kRole || !cpu_features()->has_all(kernel->needs)) continue;
    found.push_back(static_cast<const Functions*>(kernel->functions));
  }
  return found;
}

Floats random_floats(int64_t count, uint32_t seed, float scale = 3.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// What `compute` writes for each kernel is what it writes for the last one, which every CPU can run; nothing behind the
// end is written.
template <typename Functions>
void expect_same_bits(int64_t count, const std::function<void(const Functions&, float*)>& compute) {
  constexpr float kGuard = 12345.0f;
  const std::vector<const Functions*> kernels = runnable<Functions>();
  ASSERT_FALSE(kernels.empty());
  Floats expected;
  for (auto kernel = kernels.rbegin(); kernel != kernels.rend(); ++kernel) {
    Floats y(static_cast<size_t>(count) + 16, kGuard);
    compute(**kernel, y.data());
    for (size_t i = static_cast<size_t>(count); i < y.size(); ++i) ASSERT_EQ(kGuard, y[i]) << Functions::kRole;
    if (expected.empty()) expected = y;
    ASSERT_EQ(0, std::memcmp(expected.data(), y.data(), y.size() * sizeof(float)))
        << Functions::kRole << " of " << count;
  }
}

TEST(SimdKernels, norms_have_the_same_bits) {
  for (const int64_t n : kLengths) {
    const Floats x = random_floats(n, 1), weight = random_floats(n, 2), bias = random_floats(n, 3);
    for (const float* w : {weight.data(), static_cast<const float*>(nullptr)}) {
      expect_same_bits<NormFunctions>(
          n, [&](const NormFunctions& f, float* y) { f.rms_norm(x.data(), w, 1.0f, 1e-6f, n, y); });
      expect_same_bits<NormFunctions>(n, [&](const NormFunctions& f, float* y) {
        std::copy(x.begin(), x.end(), y);
        f.layer_norm(y, w, bias.data(), 1e-5f, n, y);
      });
    }
  }
}

TEST(SimdKernels, softmax_has_the_same_bits) {
  for (const int64_t n : kLengths) {
    const Floats x = random_floats(n, 4, 20.0f);
    expect_same_bits<SoftmaxFunctions>(n, [&](const SoftmaxFunctions& f, float* y) {
      const float top = f.maximum(x.data(), n);
      ASSERT_EQ(*std::max_element(x.begin(), x.end()), top);
      f.divide(y, n, f.exponentials(x.data(), n, top, y));
    });
  }
}

TEST(SimdKernels, elementwise_ops_have_the_same_bits) {
  using pointwise::Vectorised;
  pointwise::BlockFunction Vectorised::* const members[] = {
      &Vectorised::add,       &Vectorised::sub,  &Vectorised::mul,     &Vectorised::div,
      &Vectorised::exp,       &Vectorised::tanh, &Vectorised::sigmoid, &Vectorised::silu,
      &Vectorised::gelu_tanh, &Vectorised::relu, &Vectorised::square};
  for (const int64_t n : {int64_t{1}, int64_t{16}, int64_t{37}, int64_t{256}}) {
    const Floats a = random_floats(n, 5), b = random_floats(n, 6);
    const void* inputs[] = {a.data(), b.data()};
    for (const auto member : members) {
      expect_same_bits<Vectorised>(n, [&](const Vectorised& f, float* y) { (f.*member)(inputs, y, n, {}); });
    }
  }
}

TEST(SimdKernels, products_have_the_same_bits) {
  const Floats a = random_floats(7 * 130, 7), panel = random_floats(128 * 16, 8);
  for (const int64_t rows : {1, 3, 4, 7}) {
    for (const int64_t depth : {1, 5, 128}) {
      expect_same_bits<PanelFunctions>(rows * 16, [&](const PanelFunctions& f, float* y) {
        f.multiply(a.data(), 130, 1, rows, panel.data(), depth, y);
      });
    }
  }
}

TEST(Scan, finds_the_lowest_index_of_the_largest_past_nan) {
  for (const ScanFunctions* scan : runnable<ScanFunctions>()) {
    for (const int64_t n : kLengths) {
      Floats x = random_floats(n, static_cast<uint32_t>(n));
      for (float& value : x) value = std::round(value);  // many are equal
      for (size_t i = 0; i < x.size(); i += 5) x[i] = std::numeric_limits<float>::quiet_NaN();
      int64_t best = 0;
      for (int64_t i = 0; i < n; ++i) {
        const float value = x[static_cast<size_t>(i)], largest = x[static_cast<size_t>(best)];
        if (value > largest || (std::isnan(largest) && !std::isnan(value))) best = i;
      }
      ASSERT_EQ(best, scan->argmax(x.data(), n));
      ASSERT_EQ(n == 1 ? -kInfinity : x[static_cast<size_t>(best)], scan->maximum(x.data(), n));
      x[static_cast<size_t>(n) - 1] = kInfinity;
      ASSERT_EQ(n - 1, scan->argmax(x.data(), n));
    }
    const Floats nothing(70, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(0, scan->argmax(nothing.data(), 70));
    EXPECT_EQ(-kInfinity, scan->maximum(nothing.data(), 70));
  }
}

TEST(Scan, lists_what_is_at_least_a_threshold) {
  for (const ScanFunctions* scan : runnable<ScanFunctions>()) {
    for (const int64_t n : kLengths) {
      Floats x = random_floats(n, 9);
      x[0] = std::numeric_limits<float>::quiet_NaN();
      for (const float threshold : {-kInfinity, 0.0f, 8.0f, x[static_cast<size_t>(n / 2)], kInfinity}) {
        std::vector<int32_t> expected, indices(static_cast<size_t>(n));
        for (int32_t i = 0; i < n; ++i) {
          if (x[static_cast<size_t>(i)] >= threshold) expected.push_back(i);
        }
        indices.resize(static_cast<size_t>(scan->at_least(x.data(), n, threshold, indices.data())));
        ASSERT_EQ(expected, indices) << threshold;
      }
    }
  }
}

TEST(Scan, exponentials_and_their_sum) {
  for (const int64_t n : kLengths) {
    Floats x = random_floats(n, 10);
    const float top = *std::max_element(x.begin(), x.end());
    if (n > 2) x[1] = std::numeric_limits<float>::quiet_NaN();
    double expected = 0;
    for (const float value : x) expected += std::isnan(value) ? 0.0 : std::exp(static_cast<double>(value - top) * 0.5);
    expect_same_bits<ScanFunctions>(n, [&](const ScanFunctions& f, float* y) {
      const float sum = f.exponentials(x.data(), n, top, 0.5f, y);
      ASSERT_NEAR(expected, static_cast<double>(sum), expected * 1e-5);
      ASSERT_EQ(sum, f.exponentials(x.data(), n, top, 0.5f, nullptr));
      if (n > 2) { ASSERT_EQ(0.0f, y[1]); }
    });
  }
}

}  // namespace
}  // namespace mote::test
