// mote.short_conv against a sum in double over all rows so far.
#include <gtest/gtest.h>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

struct Convolution {
  int64_t channels, taps;
  Owned weight, bias, state;
  std::vector<RecurrentState> states;

  Convolution(int64_t num_channels, int64_t num_taps)
      : channels(num_channels),
        taps(num_taps),
        weight(random_floats({num_channels, num_taps}, 1)),
        bias(random_floats({num_channels}, 2)),
        state(make(DType::kFloat32, {1, num_taps - 1, num_channels})),
        states{RecurrentState{state.tensor}} {}

  Owned run(const Owned& x, int threads) {
    OpCall call("mote.short_conv");
    StateShape shape;
    shape.recurrent = state.tensor;
    call.input(x).input(weight).input(bias).output(DType::kFloat32, {1, x.tensor.size(1), channels});
    call.integers("state", {0}).state(shape).recurrent(&states);
    const Status status = call.run(threads);
    EXPECT_TRUE(status.ok()) << status.message();
    return std::move(call.result());
  }
};

TEST(ShortConv, agrees_with_double_in_chunks_of_any_size) {
  const int64_t tokens = 23, channels = 37;
  const Owned x = random_floats({1, tokens, channels}, 3);
  for (const int64_t taps : {1, 2, 3, 4, 7}) {
    Convolution whole(channels, taps);
    const Owned y = whole.run(x, 1);
    std::vector<double> expected;
    for (int64_t i = 0; i < tokens * channels; ++i) {
      const int64_t t = i / channels, c = i % channels;
      double sum = static_cast<double>(whole.bias.as<float>()[c]);
      for (int64_t j = 0; j < taps; ++j) {
        const int64_t from = t + j - taps + 1;
        if (from >= 0)
          sum += static_cast<double>(whole.weight.as<float>()[c * taps + j]) *
                 static_cast<double>(x.as<float>()[from * channels + c]);
      }
      expected.push_back(sum);
    }
    EXPECT_LT(relative_error(y.as<float>(), expected), 1e-6) << taps;
    for (const int64_t chunk : {1, 2, 5}) {
      Convolution parts(channels, taps);
      for (int64_t begin = 0; begin < tokens; begin += chunk) {
        const int64_t end = std::min(tokens, begin + chunk);
        const Owned rows = floats({1, end - begin, channels},
                                  std::vector<float>(x.as<float>() + begin * channels, x.as<float>() + end * channels));
        const Owned out = parts.run(with_layout(rows, {0, 2, 1}), static_cast<int>(begin % 4) + 1);
        EXPECT_EQ(0, std::memcmp(out.bytes.data(), y.as<float>() + begin * channels,
                                 static_cast<size_t>((end - begin) * channels) * sizeof(float)));
      }
      EXPECT_TRUE(same_bits(whole.state, parts.state));
    }
  }
}

TEST(ShortConv, gives_each_sequence_of_a_call_the_bits_that_it_gets_alone) {
  const int64_t channels = 37, taps = 4;
  const std::vector<int64_t> lengths{1, 5, 1, 2};
  std::vector<Convolution> together, alone;
  together.reserve(lengths.size()), alone.reserve(lengths.size());
  std::vector<SequenceStates> sequences;
  for (size_t i = 0; i < lengths.size(); ++i) {
    together.emplace_back(channels, taps), alone.emplace_back(channels, taps);
    const Owned history = random_floats({1, 6, channels}, 20 + static_cast<uint32_t>(i));
    together[i].run(history, 1), alone[i].run(history, 1);
  }
  for (size_t i = 0; i < lengths.size(); ++i) sequences.push_back({lengths[i], {}, together[i].states});
  const int64_t total = 9;
  const Owned x = random_floats({1, total, channels}, 3);
  OpCall call("mote.short_conv");
  StateShape shape;
  shape.recurrent = together[0].state.tensor;
  call.input(x).input(together[0].weight).input(together[0].bias).output(DType::kFloat32, {1, total, channels});
  call.integers("state", {0}).state(shape).sequences(&sequences);
  ASSERT_TRUE(call.run(2).ok());
  int64_t first = 0;
  for (size_t i = 0; i < lengths.size(); first += lengths[i++]) {
    const float* from = x.as<float>() + first * channels;
    const Owned y =
        alone[i].run(floats({1, lengths[i], channels}, std::vector<float>(from, from + lengths[i] * channels)), 1);
    EXPECT_EQ(0, std::memcmp(call.result().as<float>() + first * channels, y.bytes.data(), y.bytes.size())) << i;
    EXPECT_TRUE(same_bits(together[i].state, alone[i].state)) << i;
  }
}

TEST(ShortConv, refuses_what_does_not_fit) {
  const auto accepted = [](const Shape& x, const Shape& weight, const Shape& state, int64_t index) {
    OpCall call("mote.short_conv");
    const Owned a = make(DType::kFloat32, x), b = make(DType::kFloat32, weight);
    StateShape shape;
    shape.recurrent = make(DType::kFloat32, state).tensor;
    call.input(a).input(b).output(DType::kFloat32, x).integers("state", {index}).state(shape);
    return call.check().ok();
  };
  EXPECT_TRUE(accepted({1, 2, 8}, {8, 3}, {1, 2, 8}, 0));
  EXPECT_FALSE(accepted({1, 2, 8}, {8, 3}, {1, 3, 8}, 0));
  EXPECT_FALSE(accepted({1, 2, 8}, {8, 3}, {2, 8}, 0));
  EXPECT_FALSE(accepted({1, 2, 8}, {8, 3}, {1, 2, 8}, 1));
  EXPECT_FALSE(accepted({1, 2, 8}, {8, 3}, {1, 2, 8}, -1));
  EXPECT_FALSE(accepted({2, 2, 8}, {8, 3}, {1, 2, 8}, 0));
  EXPECT_FALSE(accepted({1, 2, 8}, {8, 0}, {1, 2, 8}, 0));
  EXPECT_FALSE(accepted({1, 2, 8}, {7, 3}, {1, 2, 8}, 0));
}

}  // namespace
}  // namespace mote::test
