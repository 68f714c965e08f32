// What adapters add in mote.linear and mote.gated_linear, against sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "kernels/adapters.h"
#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

constexpr int64_t kColumns = 64;

// The matrices of one part and what they add.
struct Part {
  Owned a, b, gains;  // b: [rank, rows]
  LowRank part;
  std::vector<double> down, up;  // a and b

  static Part random(int64_t rank, int64_t columns, int64_t first_row, int64_t rows, DType dtype, bool has_gains,
                     uint32_t seed) {
    Part made{random_floats({rank, columns}, seed, 0.2f),
              random_floats({rank, rows}, seed + 1, 0.3f),
              random_floats({rows}, seed + 2, 0.1f),
              {},
              {},
              {}};
    if (dtype != DType::kFloat32) {
      made.a = narrow(made.a, dtype);
      made.b = narrow(made.b, dtype);
    }
    made.down = to_doubles(made.a);
    made.up = to_doubles(made.b);
    made.part.a = made.a.bytes.data();
    made.part.b = made.b.bytes.data();
    made.part.gains = has_gains ? made.gains.as<float>() : nullptr;
    made.part.dtype = dtype;
    made.part.rank = rank;
    made.part.columns = columns;
    made.part.first_row = first_row;
    made.part.rows = rows;
    made.part.scale = 1.5f;
    return made;
  }

  // The factor of row n of the plain product, and what is added to it for a row of x.
  double gain(int64_t n) const {
    const int64_t row = n - part.first_row;
    return part.gains == nullptr || row < 0 || row >= part.rows ? 0.0 : static_cast<double>(part.gains[row]);
  }
  double added(int64_t n, const double* x) const {
    const int64_t row = n - part.first_row;
    if (row < 0 || row >= part.rows) return 0.0;
    double sum = 0.0;
    for (int64_t r = 0; r < part.rank; ++r) {
      double inner = 0.0;
      for (int64_t k = 0; k < part.columns; ++k) inner += down[static_cast<size_t>(r * part.columns + k)] * x[k];
      sum += up[static_cast<size_t>(r * part.rows + row)] * inner;
    }
    return static_cast<double>(part.scale) * sum;
  }
};

// Three adapters over a weight of `rows` rows: q and v of q, k, v; odd ranges; one with gains.
struct Adapters {
  std::deque<Part> parts;
  AdapterWeights weights[3];
  std::vector<std::vector<size_t>> parts_of{{0, 1}, {2}, {3}};

  Adapters(const void* weight, int64_t rows, int64_t columns) {
    parts.push_back(Part::random(4, columns, 0, rows / 2, DType::kFloat32, false, 100));
    parts.push_back(Part::random(17, columns, rows / 2 + 3, rows - rows / 2 - 3, DType::kFloat16, false, 200));
    parts.push_back(Part::random(8, columns, 1, rows - 2, DType::kBFloat16, false, 300));
    parts.push_back(Part::random(3, columns, 0, rows, DType::kFloat32, true, 400));
    for (size_t adapter = 0; adapter < 3; ++adapter) {
      for (const size_t part : parts_of[adapter]) {
        const Status status = weights[adapter].add(weight, parts[part].part);
        EXPECT_TRUE(status.ok()) << status.message();
      }
    }
  }

  // What a sequence with these adapters makes of the plain products, [tokens, rows]. x: as doubles, [tokens, columns]
  void add(const std::vector<std::pair<size_t, float>>& mix, int64_t rows, const double* x, double* y) const {
    for (int64_t n = 0; n < rows; ++n) {
      double factor = 1.0, sum = 0.0;
      for (const auto& [adapter, weight] : mix) {
        for (const size_t part : parts_of[adapter]) {
          factor += static_cast<double>(weight) * parts[part].gain(n);
          sum += static_cast<double>(weight) * parts[part].added(n, x);
        }
      }
      y[n] = y[n] * factor + sum;
    }
  }
};

using Mix = std::vector<std::pair<size_t, float>>;

std::vector<AdapterUse> uses_of(const Adapters& adapters, const Mix& mix) {
  std::vector<AdapterUse> uses;
  for (const auto& [adapter, weight] : mix) uses.push_back({&adapters.weights[adapter], weight});
  return uses;
}

const std::vector<Mix> kMixes = {
    {{0, 1.0f}}, {}, {{1, -0.5f}, {0, 2.0f}}, {{2, 1.0f}}, {{2, 0.5f}, {0, 1.0f}, {1, 1.0f}}};

struct Form {
  const char* activations;
  int bits;
  bool has_norm;
  friend std::ostream& operator<<(std::ostream& out, const Form& form) {
    return out << form.activations << "_" << form.bits << (form.has_norm ? "_norm" : "");
  }
};

class LowRankProducts : public testing::TestWithParam<Form> {
 protected:
  struct Weight {
    Owned owned;
    std::vector<double> values;
  };
  static Weight weight_of(int bits, int64_t rows) {
    if (bits != 0) {
      Tiles tiles = random_tiles({rows, kColumns}, bits, 32, 5);
      return {std::move(tiles.owned), std::move(tiles.values)};
    }
    Owned dense = random_floats({rows, kColumns}, 5, 0.2f);
    std::vector<double> values = to_doubles(dense);
    return {std::move(dense), std::move(values)};
  }
  // x as the adapters read it.
  static std::vector<double> normalised(const Owned& x, const Owned& norm) {
    std::vector<double> rows = to_doubles(x);
    for (size_t t = 0; t < rows.size() / kColumns; ++t) {
      double squares = 0.0;
      for (size_t k = 0; k < kColumns; ++k) squares += rows[t * kColumns + k] * rows[t * kColumns + k];
      for (size_t k = 0; k < kColumns; ++k) {
        rows[t * kColumns + k] *=
            (1.0 + static_cast<double>(norm.as<float>()[k])) / std::sqrt(squares / kColumns + 1e-5);
      }
    }
    return rows;
  }
  Owned run(const std::string& op, const Owned& x, const Owned& weight, const Owned& bias, int64_t outputs,
            const std::vector<SequenceStates>* sequences, int threads) const {
    OpCall call(op);
    call.input(x).input(weight).input(bias);
    if (op == "mote.linear") call.absent();
    if (GetParam().has_norm) {
      call.input(norm_).text("norm", "rms").number("norm_eps", 1e-5).integers("norm_unit_offset", {1});
    }
    call.output(DType::kFloat32, {x.tensor.size(0), outputs}).text("activations", GetParam().activations);
    if (op == "mote.gated_linear") call.text("function", "identity");
    if (sequences != nullptr) call.sequences(sequences);
    const Status status = call.run(threads);
    EXPECT_TRUE(status.ok()) << status.message();
    return std::move(call.result());
  }
  static Owned rows_of(const Owned& x, int64_t first, int64_t count) {
    const float* from = x.as<float>() + first * kColumns;
    return floats({count, kColumns}, std::vector<float>(from, from + count * kColumns));
  }

  const Owned norm_ = random_floats({kColumns}, 77, 0.1f);
};

TEST_P(LowRankProducts, agree_with_sums_in_double_for_each_sequence) {
  const int64_t n = 150;
  const Weight weight = weight_of(GetParam().bits, n);
  const Adapters adapters(weight.owned.tensor.data, n, kColumns);
  const std::vector<int64_t> counts = {1, 3, 40, 1, 17};
  const Owned x = random_floats({62, kColumns}, 6), bias = random_floats({n}, 7);
  std::vector<double> expected = to_doubles(run("mote.linear", x, weight.owned, bias, n, nullptr, 1));
  const std::vector<double> read = GetParam().has_norm ? normalised(x, norm_) : to_doubles(x);
  std::vector<std::vector<AdapterUse>> uses;
  for (const Mix& mix : kMixes) uses.push_back(uses_of(adapters, mix));
  std::vector<SequenceStates> sequences;
  int64_t token = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    sequences.push_back({counts[i], {}, {}, uses[i]});
    for (int64_t t = token; t < token + counts[i]; ++t) {
      double* y = expected.data() + t * n;
      for (int64_t j = 0; j < n; ++j) y[j] -= static_cast<double>(bias.as<float>()[j]);
      adapters.add(kMixes[i], n, read.data() + t * kColumns, y);
      for (int64_t j = 0; j < n; ++j) y[j] += static_cast<double>(bias.as<float>()[j]);
    }
    token += counts[i];
  }
  const Owned together = run("mote.linear", x, weight.owned, bias, n, &sequences, 3);
  EXPECT_LT(relative_error(together.as<float>(), expected), 5e-6);
  EXPECT_TRUE(same_bits(together, run("mote.linear", x, weight.owned, bias, n, &sequences, 1)));
  // Each sequence, and each of its rows, gets alone what it gets beside others.
  token = 0;
  for (const SequenceStates& sequence : sequences) {
    for (int64_t t = token; t < token + sequence.tokens; ++t) {
      const std::vector<SequenceStates> alone = {{1, {}, {}, sequence.adapters}};
      const Owned y = run("mote.linear", rows_of(x, t, 1), weight.owned, bias, n, &alone, 2);
      EXPECT_EQ(0, std::memcmp(y.bytes.data(), together.as<float>() + t * n, static_cast<size_t>(n) * sizeof(float)))
          << t;
    }
    token += sequence.tokens;
  }
}

TEST_P(LowRankProducts, are_added_before_a_gate) {
  for (const int64_t features : {16, 37}) {
    const Weight weight = weight_of(GetParam().bits, 2 * features);
    const Adapters adapters(weight.owned.tensor.data, 2 * features, kColumns);
    const Owned x = random_floats({5, kColumns}, 8), bias = random_floats({2 * features}, 9);
    const std::vector<AdapterUse> uses = uses_of(adapters, kMixes[4]);
    const std::vector<SequenceStates> sequences = {{5, {}, {}, uses}};
    const Owned both = run("mote.linear", x, weight.owned, bias, 2 * features, &sequences, 1);
    std::vector<double> expected;
    for (int64_t t = 0; t < 5; ++t) {
      const float* row = both.as<float>() + t * 2 * features;
      for (int64_t i = 0; i < features; ++i)
        expected.push_back(static_cast<double>(row[i]) * static_cast<double>(row[features + i]));
    }
    const Owned gated = run("mote.gated_linear", x, weight.owned, bias, features, &sequences, 2);
    EXPECT_LT(relative_error(gated.as<float>(), expected), 1e-6);
  }
}

TEST_P(LowRankProducts, change_nothing_where_no_part_is_of_the_weight) {
  const Weight weight = weight_of(GetParam().bits, 33);
  const Owned other = random_floats({33, kColumns}, 1);
  const Adapters adapters(other.tensor.data, 33, kColumns);
  const Owned x = random_floats({4, kColumns}, 8), bias = random_floats({33}, 9);
  const std::vector<AdapterUse> uses = uses_of(adapters, kMixes[4]);
  const std::vector<SequenceStates> sequences = {{4, {}, {}, uses}};
  EXPECT_TRUE(same_bits(run("mote.linear", x, weight.owned, bias, 33, &sequences, 2),
                        run("mote.linear", x, weight.owned, bias, 33, nullptr, 2)));
}

INSTANTIATE_TEST_SUITE_P(Forms, LowRankProducts,
                         testing::Values(Form{"float", 0, false}, Form{"float", 0, true}, Form{"float", 4, true},
                                         Form{"int8", 4, true}, Form{"rotated_int8", 4, false},
                                         Form{"rotated_int8", 8, true}),
                         testing::PrintToStringParamName());

TEST(LowRank, refuses_rows_that_are_not_tokens) {
  const Owned weight = random_floats({8, kColumns}, 5), x = random_floats({6, kColumns}, 6);
  const Adapters adapters(weight.tensor.data, 8, kColumns);
  const std::vector<AdapterUse> uses = uses_of(adapters, kMixes[0]);
  const std::vector<SequenceStates> sequences = {{1, {}, {}, uses}, {2, {}, {}, {}}};
  OpCall call("mote.linear");
  call.input(x).input(weight).output(DType::kFloat32, {6, 8}).text("activations", "float").sequences(&sequences);
  EXPECT_EQ(call.run(1).code(), Code::kUnsupportedOp);
}

}  // namespace
}  // namespace mote::test
