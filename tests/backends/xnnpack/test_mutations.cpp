// Damaged blobs: each is refused with a message or runs. Sanitizers and crashes are the failures.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/backends/mutations.h"
#include "tests/backends/xnnpack/harness.h"
#include "tests/fuzz/code_name.h"

namespace mote::xnnpack::test {
namespace {

using mote::test::below;
using mote::test::change_bytes;
using mote::test::changed;
using mote::test::changed_dim;
using mote::test::Random;
using mote::test::random_floats;
using mote::test::random_tiles;

constexpr int kMutations = 2000;
constexpr int64_t kTokensOfCall = 5;

// A norm, linear layers of 4 bits in blocks and rows, of 8 bits and in float16, a gate, heads that are turned, a
// product of matrices.
GraphBuilder large_graph() {
  GraphBuilder graph;
  const Sizes wide = {1, kT, 64}, column = {1, kT, 1};
  const int32_t x = graph.input(wide), y = graph.output({2, kT, kT}), z = graph.output({1, kT, 32});
  const int32_t square = graph.activation(wide), mean = graph.activation(column), root = graph.activation(column);
  const int32_t normed = graph.activation(wide), weighted = graph.activation(wide);
  graph.node(fb::Op::unary, {x}, square, fb::Function::square);
  graph.node(fb::Op::mean, {square}, mean);
  graph.node(fb::Op::unary, {mean}, root, fb::Function::rsqrt);
  graph.node(fb::Op::binary, {x, root}, normed, fb::Function::multiply);
  graph.node(fb::Op::binary, {normed, graph.weight({64}, 1)}, weighted, fb::Function::multiply);
  const int32_t rows = graph.activation(wide, fb::DType::int8_rows), product = graph.activation(wide),
                scaled = graph.activation(wide);
  graph.node(fb::Op::convert, {weighted}, rows);
  graph.node(fb::Op::fully_connected, {rows, graph.weight({64, 64}, 0, fb::WeightForm::int4_blocks, 16)}, product);
  graph.node(fb::Op::binary, {product, graph.weight({64}, 0, fb::WeightForm::row_scales, 16)}, scaled,
             fb::Function::multiply);
  const int32_t high = graph.activation({1, kT, 32}), low = graph.activation({1, kT, 32}),
                clamped = graph.activation({1, kT, 32});
  graph.node(fb::Op::fully_connected,
             {scaled, graph.weight({32, 64}, 2, fb::WeightForm::int8_high), graph.weight({32}, 1)}, high);
  graph.node(fb::Op::fully_connected, {scaled, graph.weight({32, 64}, 2, fb::WeightForm::int8_low)}, low);
  graph.node(fb::Op::binary, {high, low}, clamped, fb::Function::add);
  const int32_t halves = graph.activation(wide, fb::DType::float16),
                half = graph.activation({1, kT, 32}, fb::DType::float16);
  const int32_t whole = graph.activation({1, kT, 32}), by_rows = graph.activation({1, kT, 32});
  const int32_t more = graph.activation({1, kT, 32}), sum = graph.activation({1, kT, 32});
  graph.node(fb::Op::convert, {scaled}, halves);
  graph.node(fb::Op::fully_connected, {halves, graph.weight({32, 64}, 3, fb::WeightForm::float16)}, half);
  graph.node(fb::Op::convert, {half}, whole);
  graph.node(fb::Op::fully_connected, {rows, graph.weight({32, 64}, 4, fb::WeightForm::int4_rows)}, by_rows);
  graph.node(fb::Op::binary, {clamped, whole}, more, fb::Function::add);
  graph.node(fb::Op::binary, {more, by_rows}, sum, fb::Function::add);
  graph.node(fb::Op::unary, {sum}, z, fb::Function::clamp).numbers = {-1, 1};
  const int32_t heads = graph.activation({kT, 2, 32}), queries = graph.activation({2, kT, 32}),
                keys = graph.activation({2, 32, kT});
  const int32_t part = graph.activation({2, 16, kT}), joined = graph.activation({2, 32, kT}),
                scores = graph.activation({2, kT, kT});
  graph.node(fb::Op::reshape, {scaled}, heads);
  graph.node(fb::Op::transpose, {heads}, queries).axes = {1, 0, 2};
  graph.node(fb::Op::transpose, {queries}, keys).axes = {0, 2, 1};
  fb::NodeT& slice = graph.node(fb::Op::slice, {keys}, part);
  slice.axes = {1};
  slice.begin = std::make_unique<fb::Dim>(0, 8);
  slice.end = std::make_unique<fb::Dim>(0, 24);
  graph.node(fb::Op::concatenate, {part, part}, joined).axes = {1};
  graph.node(fb::Op::batch_matrix_multiply, {queries, joined}, scores);
  graph.node(fb::Op::softmax, {scores}, y);
  return graph;
}

void change_value(fb::ValueT& value, Random& random) {
  switch (below(random, 8)) {
    case 0: value.kind = static_cast<fb::ValueKind>(below(random, 6)); break;
    case 1: value.dtype = static_cast<fb::DType>(below(random, 4)); break;
    case 2: value.weight = changed(value.weight, random); break;
    case 3: value.form = static_cast<fb::WeightForm>(below(random, 9)); break;
    case 4: value.first_row = changed(value.first_row, random); break;
    case 5: value.numbers.assign(below(random, 40), 1.0f); break;
    case 6: value.shape.resize(below(random, 8), fb::Dim(0, 1)); break;
    default:
      if (!value.shape.empty()) {
        fb::Dim& dim = value.shape[below(random, value.shape.size())];
        dim = changed_dim(dim, random);
      }
  }
}

void change_node(fb::NodeT& node, size_t num_values, Random& random) {
  switch (below(random, 8)) {
    case 0: node.op = static_cast<fb::Op>(below(random, 12)); break;
    case 1: node.function = static_cast<fb::Function>(below(random, 26)); break;
    case 2: node.output = static_cast<int32_t>(below(random, num_values + 2)) - 1; break;
    case 3: node.inputs.resize(below(random, 5), static_cast<int32_t>(below(random, num_values))); break;
    case 4: node.axes.assign(below(random, 8), static_cast<int32_t>(below(random, 7))); break;
    case 5: node.begin = std::make_unique<fb::Dim>(changed_dim(fb::Dim(0, 0), random)); break;
    case 6: node.end = std::make_unique<fb::Dim>(changed_dim(fb::Dim(0, 8), random)); break;
    default:
      if (!node.inputs.empty())
        node.inputs[below(random, node.inputs.size())] = static_cast<int32_t>(below(random, num_values));
  }
}

Bytes change_fields(const Bytes& blob, Random& random) {
  const auto graph = fb::UnPackGraph(blob.data());
  for (size_t count = 1 + below(random, 3); count > 0; --count) {
    if (below(random, 2) == 0)
      change_value(*graph->values[below(random, graph->values.size())], random);
    else
      change_node(*graph->nodes[below(random, graph->nodes.size())], graph->values.size(), random);
  }
  return pack(*graph);
}

TEST(XnnpackMutations, never_crash) {
  if (!has_library()) GTEST_SKIP();
  const char* wanted = std::getenv("MOTE_FUZZ_ITERATIONS");
  const int num_mutations = wanted == nullptr ? kMutations : std::atoi(wanted);
  const auto four_bits = random_tiles({96, 64}, 4, 32, 1, Multipliers::kNotNegative),
             eight_bits = random_tiles({32, 64}, 8, 64, 2, Multipliers::kNotNegative);
  const Owned vector = random_floats({64}, 3), dense = random_floats({32, 64}, 5),
              in = random_floats({1, kTokensOfCall, 64}, 4);
  const auto by_rows = random_tiles({32, 64}, 4, 32, 6, Multipliers::kOne);
  const std::vector<const Owned*> weights = {&four_bits.owned, &vector, &eight_bits.owned, &dense, &by_rows.owned};
  const std::vector<mote::test::Shape> outputs = {{2, kTokensOfCall, kTokensOfCall}, {1, kTokensOfCall, 32}};
  const Bytes blob = large_graph().build();
  Loaded sound(blob, weights);
  const Status undamaged = sound.run({&in}, outputs, kTokensOfCall);
  ASSERT_TRUE(undamaged.ok()) << undamaged.message();
  std::map<std::string, int> outcomes;
  for (int i = 0; i < num_mutations; ++i) {
    Random random(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u);
    Loaded loaded(i % 4 == 0 ? change_bytes(blob, random) : change_fields(blob, random), weights);
    const Status status = loaded.run({&in}, outputs, kTokensOfCall);
    ++outcomes[status.ok() ? "ran" : code_name(status.code())];
    ASSERT_TRUE(status.ok() || !status.message().empty()) << "mutation " << i;
  }
  for (const auto& [outcome, count] : outcomes) std::printf("%s %d\n", outcome.c_str(), count);
  EXPECT_GT(outcomes["ran"], 10);
}

TEST(XnnpackMutations, never_crash_on_damaged_weights) {
  if (!has_library()) GTEST_SKIP();
  const Owned vector = random_floats({64}, 3), dense = random_floats({32, 64}, 5),
              in = random_floats({1, kTokensOfCall, 64}, 4);
  const auto by_rows = random_tiles({32, 64}, 4, 32, 6, Multipliers::kOne);
  const Bytes blob = large_graph().build();
  int num_refused = 0;
  for (int i = 0; i < 50; ++i) {
    Random random(static_cast<uint64_t>(i));
    auto four_bits = random_tiles({96, 64}, 4, 32, 1, Multipliers::kNotNegative),
         eight_bits = random_tiles({32, 64}, 8, 64, 2, Multipliers::kNotNegative);
    for (Owned* weight : {&four_bits.owned, &eight_bits.owned}) {
      auto* bytes = weight->as<std::byte>();
      for (size_t at = 0; at < weight->bytes.size(); ++at)
        bytes[at] = i == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
    }
    Loaded loaded(blob, {&four_bits.owned, &vector, &eight_bits.owned, &dense, &by_rows.owned});
    const Status status = loaded.run({&in}, {{2, kTokensOfCall, kTokensOfCall}, {1, kTokensOfCall, 32}}, kTokensOfCall);
    num_refused += !status.ok();
    const bool is_named = status.message().find("scale of row") != std::string::npos ||
                          status.message().find("for int4_blocks") != std::string::npos;
    EXPECT_TRUE(status.ok() || is_named) << status.message();
  }
  EXPECT_GT(num_refused, 0);  // negative scales
}

}  // namespace
}  // namespace mote::xnnpack::test
