// mote.linear_attention against its recurrence in double.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

enum class Decay { kNone, kOfHeads, kOfElements };

struct Case {
  int64_t key_heads, heads, width, per_head;
  Decay decay;
  bool has_beta;
};

constexpr int64_t kTokens = 37;  // more than the op takes at once

struct Operands {
  Owned q, k, v, decay, beta;
};

// What a trained model gives: decays within (0, 1), keys of length 1.
Operands operands_of(const Case& c) {
  Operands made{
      random_floats({1, kTokens, c.key_heads, c.width}, 1), random_floats({1, kTokens, c.key_heads, c.width}, 2),
      random_floats({1, kTokens, c.heads, c.per_head}, 3),
      random_floats(c.decay == Decay::kOfElements ? Shape{1, kTokens, c.heads, c.width} : Shape{1, kTokens, c.heads},
                    4),
      random_floats({1, kTokens, c.heads}, 5)};
  for (Owned* each : {&made.decay, &made.beta}) {
    float* values = each->as<float>();
    for (int64_t i = 0; i < each->tensor.num_elements(); ++i) values[i] = 1.0f / (1.0f + std::exp(-values[i]));
  }
  for (int64_t row = 0; row < kTokens * c.key_heads; ++row) {
    float* key = made.k.as<float>() + row * c.width;
    float length = 0;
    for (int64_t n = 0; n < c.width; ++n) length += key[n] * key[n];
    for (int64_t n = 0; n < c.width; ++n) key[n] /= std::sqrt(length);
  }
  return made;
}

std::vector<double> expected_of(const Case& c, const Operands& in) {
  const auto at = [](const Owned& owned, int64_t index) { return static_cast<double>(owned.as<float>()[index]); };
  std::vector<double> state(static_cast<size_t>(c.heads * c.per_head * c.width)), y;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t row = 0; row < c.heads * c.per_head; ++row) {
      const int64_t head = row / c.per_head, of_head = t * c.heads + head;
      const int64_t key = (t * c.key_heads + head / (c.heads / c.key_heads)) * c.width;
      double* s = state.data() + row * c.width;
      double known = 0, sum = 0;
      for (int64_t n = 0; n < c.width; ++n) {
        if (c.decay == Decay::kOfHeads) s[n] *= at(in.decay, of_head);
        if (c.decay == Decay::kOfElements) s[n] *= at(in.decay, of_head * c.width + n);
        known += at(in.k, key + n) * s[n];
      }
      double update = at(in.v, t * c.heads * c.per_head + row);
      if (c.has_beta) update = at(in.beta, of_head) * (update - known);
      for (int64_t n = 0; n < c.width; ++n) {
        s[n] += update * at(in.k, key + n);
        sum += at(in.q, key + n) * s[n];
      }
      y.push_back(sum);
    }
  }
  return y;
}

// Tokens [begin, end) of a value [1, kTokens, ..].
Owned tokens_of(const Owned& whole, int64_t begin, int64_t end) {
  Shape shape;
  for (int i = 0; i < whole.tensor.rank; ++i) shape.push_back(whole.tensor.size(i));
  const int64_t row = whole.tensor.num_elements() / kTokens;
  shape[1] = end - begin;
  return floats(shape, std::vector<float>(whole.as<float>() + begin * row, whole.as<float>() + end * row));
}

struct Memory {
  Owned state;
  std::vector<RecurrentState> states;
  explicit Memory(const Case& c)
      : state(make(DType::kFloat32, {1, c.heads, c.per_head, c.width})), states{RecurrentState{state.tensor}} {}
};

Owned run(const Case& c, const Operands& in, int64_t begin, int64_t end, Memory& memory, int threads, bool with_gaps) {
  const auto laid = [&](const Owned& whole) {
    Owned part = tokens_of(whole, begin, end);
    if (!with_gaps) return part;
    return with_layout(part, whole.tensor.rank == 4 ? std::vector<int>{0, 3, 2, 1} : std::vector<int>{0, 2, 1});
  };
  const Owned q = laid(in.q), k = laid(in.k), v = laid(in.v), decay = laid(in.decay), beta = laid(in.beta);
  OpCall call("mote.linear_attention");
  StateShape shape;
  shape.recurrent = memory.state.tensor;
  call.input(q).input(k).input(v);
  c.decay == Decay::kNone ? call.absent() : call.input(decay);
  if (c.has_beta) call.input(beta);
  call.output(DType::kFloat32, {1, end - begin, c.heads, c.per_head});
  call.integers("state", {0}).state(shape).recurrent(&memory.states);
  const Status status = call.run(threads);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(call.result());
}

TEST(LinearAttention, agrees_with_double_in_chunks_of_any_size) {
  const Case cases[] = {
      {2, 4, 32, 8, Decay::kOfHeads, true},       // gated delta rule
      {3, 3, 16, 5, Decay::kOfElements, true},    // with a gate for each element
      {1, 6, 21, 4, Decay::kOfHeads, false},      // Mamba-2
      {1, 37, 16, 1, Decay::kOfElements, false},  // Mamba
      {1, 40, 32, 1, Decay::kOfElements, false}, {1, 2, 16, 70, Decay::kOfHeads, true},
      {2, 2, 7, 3, Decay::kNone, false},
  };
  for (const Case& c : cases) {
    const Operands in = operands_of(c);
    Memory whole(c);
    const Owned y = run(c, in, 0, kTokens, whole, 1, false);
    EXPECT_LT(relative_error(y.as<float>(), expected_of(c, in)), 2e-6) << c.width;
    for (const int64_t chunk : {1, 4, 7, 33}) {
      Memory parts(c);
      for (int64_t begin = 0; begin < kTokens; begin += chunk) {
        const int64_t end = std::min(kTokens, begin + chunk);
        const Owned out = run(c, in, begin, end, parts, static_cast<int>(begin % 4) + 1, begin % 2 != 0);
        const float* expected = y.as<float>() + begin * c.heads * c.per_head;
        EXPECT_EQ(0, std::memcmp(out.bytes.data(), expected, out.bytes.size())) << c.width << " " << begin;
      }
      EXPECT_TRUE(same_bits(whole.state, parts.state));
    }
  }
}

TEST(LinearAttention, gives_each_sequence_of_a_call_the_bits_that_it_gets_alone) {
  const Case c{2, 4, 24, 3, Decay::kOfHeads, true};
  const Operands in = operands_of(c);
  const std::vector<int64_t> lengths{1, 20, 16};
  std::vector<Memory> together, alone;
  together.reserve(lengths.size()), alone.reserve(lengths.size());
  std::vector<SequenceStates> sequences;
  for (const int64_t length : lengths) {
    together.emplace_back(c), alone.emplace_back(c);
    run(c, in, 0, 3, together.back(), 1, false), run(c, in, 0, 3, alone.back(), 1, false);
    sequences.push_back({length, {}, together.back().states});
  }
  OpCall call("mote.linear_attention");
  StateShape shape;
  shape.recurrent = together[0].state.tensor;
  call.input(in.q).input(in.k).input(in.v).input(in.decay).input(in.beta);
  call.output(DType::kFloat32, {1, kTokens, c.heads, c.per_head}).integers("state", {0}).state(shape);
  ASSERT_TRUE(call.sequences(&sequences).run(2).ok());
  int64_t first = 0;
  for (size_t i = 0; i < lengths.size(); first += lengths[i++]) {
    const Owned y = run(c, in, first, first + lengths[i], alone[i], 1, false);
    const float* got = call.result().as<float>() + first * c.heads * c.per_head;
    EXPECT_EQ(0, std::memcmp(got, y.bytes.data(), y.bytes.size())) << i;
    EXPECT_TRUE(same_bits(together[i].state, alone[i].state)) << i;
  }
}

Owned run_planned(const Case& c, const Operands& in, int64_t begin, int64_t end, Memory& memory, RecurrentCall plan) {
  const Owned q = tokens_of(in.q, begin, end), k = tokens_of(in.k, begin, end), v = tokens_of(in.v, begin, end);
  const Owned decay = tokens_of(in.decay, begin, end), beta = tokens_of(in.beta, begin, end);
  std::vector<SequenceStates> sequences{{end - begin, {}, memory.states, {}, &plan}};
  OpCall call("mote.linear_attention");
  StateShape shape;
  shape.recurrent = memory.state.tensor;
  call.input(q).input(k).input(v);
  c.decay == Decay::kNone ? call.absent() : call.input(decay);
  if (c.has_beta) call.input(beta);
  call.output(DType::kFloat32, {1, end - begin, c.heads, c.per_head}).integers("state", {0}).state(shape);
  EXPECT_TRUE(call.sequences(&sequences).run(2).ok());
  return std::move(call.result());
}

TEST(LinearAttention, goes_on_from_a_copy_by_the_rows_that_it_recorded) {
  const Case cases[] = {
      {1, 2, 144, 6, Decay::kOfHeads, true}, {2, 2, 80, 5, Decay::kOfElements, true},
      {1, 3, 21, 9, Decay::kOfHeads, false}, {1, 37, 16, 1, Decay::kOfElements, false},
      {1, 2, 64, 260, Decay::kNone, false},
  };
  constexpr int64_t kRows = 40, kFirst = 30, kCopied = 3;  // the ring begins again on the way
  for (const Case& c : cases) {
    const Operands in = operands_of(c);
    const int64_t decays = c.decay == Decay::kNone ? 0 : c.decay == Decay::kOfHeads ? 1 : c.width;
    const int64_t row_floats = c.key_heads * c.width + c.heads * (c.per_head + decays) + 5;
    std::vector<float> rows(static_cast<size_t>(kRows * row_floats));
    Memory first(c);
    std::vector<float> copy(static_cast<size_t>(first.state.tensor.num_elements()));
    const RecurrentCopy copies[] = {{kCopied, copy.data()}};
    first.states[0].rows = rows.data(), first.states[0].row_floats = row_floats;
    run_planned(
        c, in, 0, kTokens, first,
        {.num_rows = kRows, .num_kept = kTokens, .first_recorded = kFirst, .num_recorded = kTokens, .copies = copies});
    for (const int64_t replayed : {0, 1, 4, 6, 33}) {
      const int64_t at = kCopied + replayed;
      Memory whole(c), back(c);
      run(c, in, 0, at, whole, 1, false);
      const Owned expected = run(c, in, at, at + 1, whole, 1, false);
      back.states[0].rows = rows.data(), back.states[0].row_floats = row_floats;
      const Owned y = run_planned(c, in, at, at + 1, back,
                                  {.num_rows = kRows,
                                   .source = copy.data(),
                                   .first_replayed = (kFirst + kCopied) % kRows,
                                   .num_replayed = replayed,
                                   .num_kept = 1});
      EXPECT_EQ(0, std::memcmp(y.bytes.data(), expected.bytes.data(), y.bytes.size())) << c.width << " " << replayed;
      EXPECT_TRUE(same_bits(whole.state, back.state)) << c.width << " " << replayed;
    }
  }
}

TEST(LinearAttention, refuses_what_does_not_fit) {
  const auto accepted = [](const Shape& q, const Shape& v, const Shape& decay, const Shape& beta, const Shape& state) {
    OpCall call("mote.linear_attention");
    const Owned queries = make(DType::kFloat32, q), values = make(DType::kFloat32, v);
    const Owned decays = make(DType::kFloat32, decay), betas = make(DType::kFloat32, beta);
    StateShape shape;
    shape.recurrent = make(DType::kFloat32, state).tensor;
    call.input(queries).input(queries).input(values).input(decays).input(betas);
    return call.output(DType::kFloat32, v).integers("state", {0}).state(shape).check().ok();
  };
  const Shape q{1, 2, 2, 8}, v{1, 2, 4, 3}, of_heads{1, 2, 4}, of_elements{1, 2, 4, 8}, state{1, 4, 3, 8};
  EXPECT_TRUE(accepted(q, v, of_heads, of_heads, state));
  EXPECT_TRUE(accepted(q, v, of_elements, of_heads, state));
  EXPECT_FALSE(accepted(q, v, {1, 2, 4, 3}, of_heads, state));
  EXPECT_FALSE(accepted(q, v, {1, 2, 2}, of_heads, state));
  EXPECT_FALSE(accepted(q, v, of_heads, of_elements, state));
  EXPECT_FALSE(accepted(q, v, of_heads, of_heads, {1, 4, 8, 3}));
  EXPECT_FALSE(accepted({1, 2, 3, 8}, v, of_heads, of_heads, state));
  EXPECT_FALSE(accepted({1, 3, 2, 8}, v, of_heads, of_heads, state));
  EXPECT_FALSE(accepted({1, 2, 0, 8}, v, of_heads, of_heads, state));
  EXPECT_FALSE(accepted({2, 2, 8}, v, of_heads, of_heads, state));
  EXPECT_FALSE(accepted({1, 2, 2, 0}, v, of_heads, of_heads, {1, 4, 3, 0}));
}

}  // namespace
}  // namespace mote::test
