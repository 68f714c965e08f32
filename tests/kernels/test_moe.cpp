// mote.moe_experts against a sum over the chosen experts in double, mote.expert_linear against their products.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

struct Setting {
  const char* name;
  int bits = 0, group_size = 0;
  const char* layout = "concatenated";
  const char* function = "silu";
  bool bias = false;
  double limit = 0, alpha = 0;
  int64_t features = 32, width = 32;
  const char* activations = "float";
  double tolerance = 3e-6;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

constexpr int64_t kExperts = 5, kChosen = 2;

struct Model {
  Owned gate_up, down, gate_up_bias, down_bias;
  std::vector<double> gate_up_values, down_values;
};

Model random_model(const Setting& s) {
  const int64_t rows = std::string(s.layout) == "single" ? s.features : 2 * s.features;
  const Shape up{kExperts, rows, s.width}, down{kExperts, s.width, s.features};
  Model model;
  model.gate_up_bias = random_floats({kExperts, rows}, 3);
  model.down_bias = random_floats({kExperts, s.width}, 4);
  if (s.bits == 0) {
    model.gate_up = random_floats(up, 1, 0.2f);
    model.down = random_floats(down, 2, 0.2f);
    model.gate_up_values = to_doubles(model.gate_up);
    model.down_values = to_doubles(model.down);
    return model;
  }
  Tiles gate_up = random_tiles(up, s.bits, s.group_size, 1), second = random_tiles(down, s.bits, s.group_size, 2);
  model.gate_up = std::move(gate_up.owned);
  model.down = std::move(second.owned);
  model.gate_up_values = std::move(gate_up.values);
  model.down_values = std::move(second.values);
  return model;
}

double value(const Owned& owned, int64_t index) { return static_cast<double>(owned.as<float>()[index]); }

double activate(const std::string& function, double x) {
  if (function == "silu") return x / (1 + std::exp(-x));
  if (function == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (function == "relu_squared") return x > 0 ? x * x : 0;
  return x;
}

double gate_of(const Setting& s, const std::vector<double>& rows, int64_t f) {
  const std::string layout = s.layout;
  if (layout == "single") return activate(s.function, rows[static_cast<size_t>(f)]);
  double gate = rows[static_cast<size_t>(layout == "interleaved" ? 2 * f : f)];
  double up = rows[static_cast<size_t>(layout == "interleaved" ? 2 * f + 1 : s.features + f)];
  if (s.limit != 0) {
    gate = std::min(gate, s.limit);
    up = std::clamp(up, -s.limit, s.limit);
  }
  if (s.alpha != 0) return (up + 1) * gate / (1 + std::exp(-gate * s.alpha));
  return activate(s.function, gate) * up;
}

std::vector<double> expert(const Setting& s, const Model& model, int64_t index, const float* x) {
  const int64_t rows = model.gate_up.tensor.size(1);
  std::vector<double> up, y;
  for (int64_t r = 0; r < rows; ++r) {
    double sum = s.bias ? value(model.gate_up_bias, index * rows + r) : 0;
    for (int64_t d = 0; d < s.width; ++d) {
      sum += model.gate_up_values[static_cast<size_t>((index * rows + r) * s.width + d)] * static_cast<double>(x[d]);
    }
    up.push_back(sum);
  }
  for (int64_t d = 0; d < s.width; ++d) {
    double sum = s.bias ? value(model.down_bias, index * s.width + d) : 0;
    for (int64_t f = 0; f < s.features; ++f) {
      sum += model.down_values[static_cast<size_t>((index * s.width + d) * s.features + f)] * gate_of(s, up, f);
    }
    y.push_back(sum);
  }
  return y;
}

struct Routed {
  Owned x, indices, weights;
};

Routed random_routed(const Setting& s, int64_t tokens) {
  std::vector<int64_t> chosen;
  std::mt19937 generator(7);
  for (int64_t i = 0; i < tokens * kChosen; ++i) chosen.push_back(static_cast<int64_t>(generator() % (kExperts - 1)));
  return {random_floats({tokens, s.width}, 5), integers({tokens, kChosen}, chosen),
          random_floats({tokens, kChosen}, 6)};
}

Owned run(const Setting& s, const Model& model, const Routed& in, int threads) {
  OpCall call("mote.moe_experts");
  call.input(in.x).input(in.indices).input(in.weights).input(model.gate_up).input(model.down);
  if (s.bias) call.input(model.gate_up_bias).input(model.down_bias);
  call.output(DType::kFloat32, {in.x.tensor.size(0), s.width}).text("activations", s.activations);
  call.text("function", s.function).text("layout", s.layout).number("limit", s.limit).number("alpha", s.alpha);
  const Status status = call.run(threads);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(call.result());
}

class Moe : public testing::TestWithParam<Setting> {};

TEST_P(Moe, agrees_with_experts_in_double) {
  const Setting& s = GetParam();
  const Model model = random_model(s);
  for (const int64_t tokens : {1, 2, 90}) {
    const Routed in = random_routed(s, tokens);
    std::vector<double> expected(static_cast<size_t>(tokens * s.width), 0.0);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t slot = 0; slot < kChosen; ++slot) {
        const std::vector<double> y =
            expert(s, model, in.indices.as<int64_t>()[t * kChosen + slot], in.x.as<float>() + t * s.width);
        for (size_t d = 0; d < y.size(); ++d) {
          expected[static_cast<size_t>(t * s.width) + d] += value(in.weights, t * kChosen + slot) * y[d];
        }
      }
    }
    EXPECT_LT(relative_error(run(s, model, in, 3).as<float>(), expected), s.tolerance) << tokens;
  }
}

TEST_P(Moe, is_equal_to_the_bit_for_threads_and_chunks) {
  const Setting& s = GetParam();
  const Model model = random_model(s);
  const Routed in = random_routed(s, 41);
  const Owned whole = run(s, model, in, 1);
  for (const int threads : {2, 3, 4}) EXPECT_TRUE(same_bits(whole, run(s, model, in, threads)));
  for (int64_t t = 0; t < 41; ++t) {
    const float* x = in.x.as<float>() + t * s.width;
    const int64_t* chosen = in.indices.as<int64_t>() + t * kChosen;
    const float* weights = in.weights.as<float>() + t * kChosen;
    const Routed one{floats({1, s.width}, std::vector<float>(x, x + s.width)),
                     integers({1, kChosen}, std::vector<int64_t>(chosen, chosen + kChosen)),
                     floats({1, kChosen}, std::vector<float>(weights, weights + kChosen))};
    EXPECT_EQ(0, std::memcmp(run(s, model, one, 2).bytes.data(), whole.as<float>() + t * s.width,
                             static_cast<size_t>(s.width) * sizeof(float)));
  }
}

std::vector<Setting> settings() {
  return {
      {.name = "concatenated"},
      {.name = "odd_sizes", .bias = true, .features = 21, .width = 13},
      {.name = "interleaved", .layout = "interleaved"},
      {.name = "interleaved_odd", .layout = "interleaved", .bias = true, .features = 19, .width = 9},
      {.name = "interleaved_few", .layout = "interleaved", .features = 5, .width = 9},
      {.name = "single", .layout = "single", .function = "relu_squared", .bias = true},
      {.name = "gpt_oss", .layout = "interleaved", .bias = true, .limit = 1.0, .alpha = 1.702},
      {.name = "clamped", .bias = true, .limit = 0.5},
      {.name = "clamped_gelu", .layout = "interleaved", .function = "gelu", .limit = 0.5},
      {.name = "single_ignores_both", .layout = "single", .function = "gelu", .limit = 0.5, .alpha = 1.702},
      {.name = "gelu", .function = "gelu"},
      {.name = "tiles4", .bits = 4, .group_size = 32},
      {.name = "tiles4_padded",
       .bits = 4,
       .group_size = 32,
       .layout = "single",
       .function = "identity",
       .features = 32,
       .width = 96},
      {.name = "tiles8_padded", .bits = 8, .group_size = 64, .features = 64, .width = 64},
      {.name = "tiles8_interleaved", .bits = 8, .group_size = 32, .layout = "interleaved", .bias = true},
      {.name = "tiles3_padded", .bits = 3, .group_size = 32, .features = 32, .width = 96},
      {.name = "tiles1_int8", .bits = 1, .group_size = 32, .activations = "int8", .tolerance = 0.03},
      {.name = "tiles4_int8", .bits = 4, .group_size = 32, .activations = "int8", .tolerance = 0.03},
  };
}

INSTANTIATE_TEST_SUITE_P(Settings, Moe, testing::ValuesIn(settings()),
                         [](const auto& one) { return std::string(one.param.name); });

Owned run_linear(const Setting& s, const Owned& weight, const Owned& x, const Owned& indices, int threads) {
  OpCall call("mote.expert_linear");
  call.input(x).input(indices).input(weight).text("activations", s.activations);
  call.output(DType::kFloat32, {x.tensor.size(0), kChosen, weight.tensor.size(1)});
  const Status status = call.run(threads);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(call.result());
}

TEST_P(Moe, products_agree_with_double_and_are_equal_to_the_bit_for_threads_and_chunks) {
  const Setting& s = GetParam();
  const Model model = random_model(s);
  const int64_t rows = model.gate_up.tensor.size(1), tokens = 90;
  const Routed in = random_routed(s, tokens);
  std::vector<double> expected;
  for (int64_t choice = 0; choice < tokens * kChosen; ++choice) {
    const float* x = in.x.as<float>() + choice / kChosen * s.width;
    for (int64_t row = in.indices.as<int64_t>()[choice] * rows, r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t d = 0; d < s.width; ++d) {
        sum += model.gate_up_values[static_cast<size_t>((row + r) * s.width + d)] * static_cast<double>(x[d]);
      }
      expected.push_back(sum);
    }
  }
  const Owned whole = run_linear(s, model.gate_up, in.x, in.indices, 3);
  EXPECT_LT(relative_error(whole.as<float>(), expected), s.tolerance);
  EXPECT_TRUE(same_bits(whole, run_linear(s, model.gate_up, in.x, in.indices, 1)));
  for (const int64_t t : {0, 17, 89}) {
    const float* x = in.x.as<float>() + t * s.width;
    const int64_t* chosen = in.indices.as<int64_t>() + t * kChosen;
    const Owned one = run_linear(s, model.gate_up, floats({1, s.width}, std::vector<float>(x, x + s.width)),
                                 integers({1, kChosen}, std::vector<int64_t>(chosen, chosen + kChosen)), 2);
    EXPECT_EQ(0, std::memcmp(one.bytes.data(), whole.as<float>() + t * kChosen * rows,
                             static_cast<size_t>(kChosen * rows) * sizeof(float)));
  }
}

TEST(ExpertLinearRefuses, experts_and_operands_that_do_not_fit) {
  const auto status = [](const Shape& x, int64_t index, const Shape& weight, const Shape& y) {
    OpCall call("mote.expert_linear");
    const Owned a = random_floats(x, 1), b = integers({3, 2}, {0, 1, 2, 3, 0, index}), c = random_floats(weight, 2);
    call.input(a).input(b).input(c).output(DType::kFloat32, y);
    return call.run().code();
  };
  EXPECT_EQ(Code::kOk, status({3, 8}, 3, {4, 6, 8}, {3, 2, 6}));
  for (const int64_t index : {int64_t{-1}, int64_t{4}, INT64_MAX}) {
    EXPECT_EQ(Code::kInvalidArgument, status({3, 8}, index, {4, 6, 8}, {3, 2, 6}));
  }
  EXPECT_EQ(Code::kInvalidProgram, status({4, 8}, 3, {4, 6, 8}, {4, 2, 6}));
  EXPECT_EQ(Code::kInvalidProgram, status({3, 8}, 3, {4, 6, 7}, {3, 2, 6}));
  EXPECT_EQ(Code::kInvalidProgram, status({3, 8}, 3, {6, 8}, {3, 2, 6}));
  EXPECT_EQ(Code::kInvalidProgram, status({3, 8}, 3, {4, 6, 8}, {3, 2, 8}));
}

TEST(MoeRefuses, experts_that_do_not_exist) {
  const Setting s{.name = "plain"};
  const Model model = random_model(s);
  for (const int64_t index : {int64_t{-1}, kExperts, INT64_MAX}) {
    OpCall call("mote.moe_experts");
    const Owned x = random_floats({1, s.width}, 1), chosen = integers({1, 1}, {index}), weight = floats({1, 1}, {1});
    call.input(x)
        .input(chosen)
        .input(weight)
        .input(model.gate_up)
        .input(model.down)
        .output(DType::kFloat32, {1, s.width});
    EXPECT_EQ(Code::kInvalidArgument, call.run().code());
  }
}

TEST(MoeRefuses, a_limit_that_is_no_bound) {
  const Setting s{.name = "plain"};
  const Model model = random_model(s);
  const Routed in = random_routed(s, 1);
  for (const double limit : {-1.0, std::nan("")}) {
    OpCall call("mote.moe_experts");
    call.input(in.x).input(in.indices).input(in.weights).input(model.gate_up).input(model.down);
    call.output(DType::kFloat32, {1, s.width}).number("limit", limit);
    EXPECT_EQ(Code::kInvalidProgram, call.check().code());
  }
}

TEST(MoeRefuses, operands_that_do_not_fit) {
  const auto accepted = [](const Shape& x, const Shape& indices, const Shape& weights, const Shape& gate_up,
                           const Shape& down) {
    OpCall call("mote.moe_experts");
    const Owned a = make(DType::kFloat32, x), b = make(DType::kInt64, indices), c = make(DType::kFloat32, weights);
    const Owned d = make(DType::kFloat32, gate_up), e = make(DType::kFloat32, down);
    call.input(a).input(b).input(c).input(d).input(e).output(DType::kFloat32, x);
    return call.check().ok();
  };
  EXPECT_TRUE(accepted({3, 8}, {3, 2}, {3, 2}, {4, 6, 8}, {4, 8, 3}));
  EXPECT_FALSE(accepted({3, 8}, {2, 2}, {3, 2}, {4, 6, 8}, {4, 8, 3}));
  EXPECT_FALSE(accepted({3, 8}, {3, 2}, {3, 1}, {4, 6, 8}, {4, 8, 3}));
  EXPECT_FALSE(accepted({3, 8}, {3, 2}, {3, 2}, {4, 6, 7}, {4, 8, 3}));
  EXPECT_FALSE(accepted({3, 8}, {3, 2}, {3, 2}, {4, 7, 8}, {4, 8, 3}));
  EXPECT_FALSE(accepted({3, 8}, {3, 2}, {3, 2}, {4, 6, 8}, {5, 8, 3}));
  EXPECT_FALSE(accepted({3, 8}, {3, 2}, {3, 2}, {6, 8}, {4, 8, 3}));
}

}  // namespace
}  // namespace mote::test
