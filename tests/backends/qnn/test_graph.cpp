// Blobs that are verified, and damaged ones: each is refused with a message or is whole. No library is needed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "backends/qnn/graph.h"
#include "tests/backends/mutations.h"

namespace mote::qnn::test {
namespace {

using mote::test::below;
using mote::test::change_bytes;
using mote::test::changed;
using mote::test::Random;
using Bytes = std::vector<std::byte>;

constexpr int kMutations = 2000;
constexpr uint32_t kTokens = 4, kCapacity = 12, kWidth = 8, kTiled = 32;

class Builder {
 public:
  uint32_t value(fb::ValueKind kind, Shape shape, int32_t index = -1) {
    auto made = std::make_unique<fb::ValueT>();
    made->kind = kind;
    made->shape = std::move(shape);
    made->index = index;
    part_.values.push_back(std::move(made));
    return static_cast<uint32_t>(part_.values.size() - 1);
  }
  fb::NodeT& node(fb::Op op, std::vector<uint32_t> inputs, uint32_t output) {
    auto made = std::make_unique<fb::NodeT>();
    made->op = op;
    made->inputs = std::move(inputs);
    made->output = output;
    part_.nodes.push_back(std::move(made));
    return *part_.nodes.back();
  }
  fb::PartT& part() { return part_; }

 private:
  fb::PartT part_;
};

Bytes pack(const fb::PartT& part) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPartBuffer(builder, fb::Part::Pack(builder, &part));
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

// The matrix of an expert out of a stack, and the places of the best of rows.
void add_experts(Builder& graph, uint32_t rows, const Shape& square) {
  using Kind = fb::ValueKind;
  const uint32_t place = graph.value(Kind::input, {1}, 4), codes = graph.value(Kind::weight, {2, kTiled, 16}, 3),
                 places = graph.value(Kind::output, {kTokens, 2}, 2);
  (void)graph.value(Kind::distances, square);
  graph.part().values[codes]->form = fb::WeightForm::codes;
  graph.part().values[place]->whole = graph.part().values[places]->whole = true;
  graph.node(fb::Op::top_places, {rows}, places).end = 2;
  graph.node(fb::Op::gather, {codes, place}, graph.value(Kind::output, {1, kTiled, 16}, 3));
}

// A norm, a product, one of words, attention of one head over a state, and a matrix out of a stack.
Bytes sound_blob() {
  using Kind = fb::ValueKind;
  Builder graph;
  graph.part().tokens = kTokens;
  graph.part().capacity = kCapacity;
  graph.part().context_bytes = 1 << 20;
  graph.part().positions = 1;
  const Shape rows = {1, 1, kTokens, kWidth}, all = {1, 1, kCapacity + kTokens, kWidth};
  const Shape square = {1, 1, kTokens, kCapacity + kTokens};
  const uint32_t x = graph.value(Kind::input, {1, kTokens, kWidth}, 0), gains = graph.value(Kind::weight, {kWidth}, 0);
  const uint32_t weight = graph.value(Kind::weight, {kWidth, kWidth}, 1), one = graph.value(Kind::constant, {1});
  graph.part().values[weight]->form = fb::WeightForm::matrix;
  graph.part().values[one]->numbers = {1.0f};
  const uint32_t mask = graph.value(Kind::mask, square);
  const uint32_t past_keys = graph.value(Kind::past_keys, {1, 1, kCapacity, kWidth}, 3),
                 past_values = graph.value(Kind::past_values, {1, 1, kCapacity, kWidth}, 3);
  const uint32_t new_keys = graph.value(Kind::new_keys, rows, 3), new_values = graph.value(Kind::new_values, rows, 3);
  const uint32_t normed = graph.value(Kind::activation, {1, kTokens, kWidth}),
                 product = graph.value(Kind::activation, {1, kTokens, kWidth}),
                 heads = graph.value(Kind::activation, rows);
  graph.node(fb::Op::rms_norm, {x, gains}, normed).epsilon = 1e-5f;
  graph.node(fb::Op::matmul, {normed, weight}, product);
  graph.node(fb::Op::reshape, {product}, heads);
  graph.node(fb::Op::reshape, {heads}, new_keys);
  graph.node(fb::Op::multiply, {heads, one}, new_values);
  const uint32_t keys = graph.value(Kind::activation, all), values = graph.value(Kind::activation, all);
  graph.node(fb::Op::concatenate, {past_keys, heads}, keys).axes = {2};
  graph.node(fb::Op::concatenate, {past_values, heads}, values).axes = {2};
  const uint32_t scores = graph.value(Kind::activation, square), masked = graph.value(Kind::activation, square),
                 weights = graph.value(Kind::activation, square), mixed = graph.value(Kind::activation, rows);
  graph.node(fb::Op::matmul, {heads, keys}, scores).transposed = true;
  graph.node(fb::Op::add, {scores, mask}, masked);
  graph.node(fb::Op::softmax, {masked}, weights);
  graph.node(fb::Op::matmul, {weights, values}, mixed);
  const uint32_t turned = graph.value(Kind::activation, {1, kTokens, 1, kWidth}),
                 last = graph.value(Kind::output, {1, 1, 1, kWidth}, 0);
  graph.node(fb::Op::transpose, {mixed}, turned).axes = {0, 2, 1, 3};
  fb::NodeT& slice = graph.node(fb::Op::slice, {turned}, last);
  slice.axes = {1};
  slice.begin = kTokens - 1;
  slice.end = kTokens;
  const uint32_t y = graph.value(Kind::input, {kTokens, kTiled}, 2),
                 blocks = graph.value(Kind::weight, {kTiled, 16}, 2), lengths = graph.value(Kind::weight, {16}, 2),
                 largest = graph.value(Kind::activation, {kTokens, 1}),
                 mean = graph.value(Kind::activation, {kTokens, 1});
  const uint32_t words = graph.value(Kind::activation, {kTokens, kTiled}),
                 sums = graph.value(Kind::activation, {kTokens, 16}),
                 halves = graph.value(Kind::activation, {kTokens, 16});
  graph.part().values[blocks]->form = fb::WeightForm::blocks;
  graph.part().values[lengths]->form = fb::WeightForm::lengths;
  graph.part().values[words]->words = graph.part().values[sums]->words = 2.0f;
  graph.node(fb::Op::maximum_of, {y}, largest);
  graph.node(fb::Op::mean, {y}, mean);
  graph.node(fb::Op::quantize, {y}, words);
  graph.node(fb::Op::matmul, {words, blocks}, sums);
  graph.node(fb::Op::dequantize, {sums}, halves);
  graph.node(fb::Op::multiply, {halves, lengths}, graph.value(Kind::output, {kTokens, 16}, 1));
  add_experts(graph, y, square);
  return pack(graph.part());
}

class QnnGraph : public testing::Test {
 protected:
  QnnGraph() : gains_(kWidth), weight_(kWidth * kWidth) {
    part_.place = "test.mote: delegates[0] (qnn)";
    part_.weights.push_back({0, "gains", dense(gains_, {kWidth})});
    part_.weights.push_back({1, "weight", dense(weight_, {kWidth, kWidth})});
    Tensor tiles = dense(weight_, {16, kTiled});
    tiles.bits = 4;
    tiles.dtype = DType::kInt8;
    tiles.group_size = kTiled;
    part_.weights.push_back({2, "tiles", tiles});
    tiles.rank = 3;
    tiles.sizes = {2, 16, kTiled};
    part_.weights.push_back({3, "stack", tiles});
  }

  Result<Graph> verify(const Bytes& blob) {
    part_.blob = blob;
    return verify_graph(part_);
  }
  std::string refusal(const std::function<void(fb::PartT&)>& change) {
    const auto part = fb::UnPackPart(sound_blob().data());
    change(*part);
    const Result<Graph> graph = verify(pack(*part));
    EXPECT_FALSE(graph.ok());
    return graph.ok() ? "" : graph.status().message().substr(part_.place.size());
  }

 private:
  static Tensor dense(std::vector<float>& data, std::initializer_list<int64_t> sizes) {
    Tensor tensor;
    tensor.data = data.data();
    for (const int64_t size : sizes) tensor.sizes[static_cast<size_t>(tensor.rank++)] = size;
    tensor.set_contiguous_strides();
    return tensor;
  }

  std::vector<float> gains_, weight_;
  DelegatePart part_;
};

TEST_F(QnnGraph, reads_what_is_whole) {
  const Result<Graph> graph = verify(sound_blob());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->states.at(3), (StateSizes{kCapacity, 1, kWidth, kWidth}));
  EXPECT_EQ(graph->reads.size(), 7u);
  EXPECT_EQ(graph->writes.size(), 6u);
}

TEST_F(QnnGraph, says_what_is_wrong) {
  const auto value_of = [](fb::PartT& part, fb::ValueKind kind) -> fb::ValueT& {
    for (const auto& value : part.values) {
      if (value->kind == kind) return *value;
    }
    std::abort();
  };
  using Kind = fb::ValueKind;
  EXPECT_EQ(refusal([](auto& part) { part.tokens = 0; }), ".tokens: 0: must be 1..4096");
  EXPECT_EQ(refusal([](auto& part) { part.positions = 0; }), ".positions: 0: must be an argument of its own");
  EXPECT_EQ(refusal([&](auto& part) { value_of(part, Kind::weight).index = 4; }),
            ".values[1]: index = 4: the part has 4 weights");
  EXPECT_EQ(refusal([&](auto& part) { value_of(part, Kind::weight).form = fb::WeightForm::rows; }),
            ".values[1]: form: not of this weight's dtype and bits");
  EXPECT_EQ(refusal([&](auto& part) { value_of(part, Kind::weight).shape = {7}; }),
            ".values[1]: shape [7]: the weight gives [8]");
  EXPECT_EQ(refusal([&](auto& part) { value_of(part, Kind::past_values).shape[2] = 11; }),
            ".values[6]: shape [1, 1, 11, 8]: rows of a state are [1, heads, 12, width]");
  EXPECT_EQ(refusal([&](auto& part) { value_of(part, Kind::past_keys).index = 4; }),
            ".values: state 3: must have keys and values, before and new");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[1]->inputs[0] = 12; }), ".nodes[1]: inputs: value 12 is not there yet");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[1]->inputs[1] = 1; }), ".nodes[1]: ranks of a product");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[12]->end = 5; }), ".nodes[12]: begin and end: must lie in the input");
  EXPECT_EQ(refusal([](auto& part) { part.nodes.pop_back(); }), ".values[33]: is written by no node");
  EXPECT_EQ(refusal([](auto& part) { part.context_bytes = 0; }), ".context_bytes: 0: must be 1..4294967296");
  EXPECT_EQ(refusal([](auto& part) { part.values[1]->whole = true; }), ".values[1]: whole: is for inputs and outputs");
  EXPECT_EQ(refusal([](auto& part) { part.values[30]->form = fb::WeightForm::rows; }),
            ".values[30]: form: its weights have 2 dimensions");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[19]->end = 65; }),
            ".nodes[19]: end: must be 1 to the width of the rows");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[20]->inputs = {18, 29}; }),
            ".nodes[20]: inputs: a gather is of a plain weight or a stack, and a stack for a gather");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[20]->inputs[1] = 18; }),
            ".nodes[20]: a gather: must be at one place of the first axis");
  EXPECT_EQ(refusal([&](auto& part) { value_of(part, Kind::distances).window = -1; }),
            ".values[32]: a mask or distances must be [1, 1, tokens, capacity + tokens] with a window of at least 0");
  EXPECT_EQ(refusal([](auto& part) { part.values[21]->form = fb::WeightForm::rows; }),
            ".nodes[16]: words: must be what is quantized, or a product with a weight in blocks");
  EXPECT_EQ(refusal([](auto& part) { part.values[25]->words = 0; }),
            ".nodes[15]: words: must be what is quantized, or a product with a weight in blocks");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[17]->op = fb::Op::abs; }),
            ".nodes[17]: words: must be what is quantized, or a product with a weight in blocks");
  EXPECT_EQ(refusal([](auto& part) { part.values[25]->words = -1; }),
            ".values[25]: words = -1: must be at least 0, and 0 but for activations");
  EXPECT_EQ(refusal([](auto& part) { part.values[20]->words = 1; }),
            ".values[20]: words = 1: must be at least 0, and 0 but for activations");
  EXPECT_EQ(refusal([](auto& part) { part.values[1]->form = fb::WeightForm::blocks; }),
            ".values[1]: form: not of this weight's dtype and bits");
  EXPECT_EQ(refusal([](auto& part) { part.nodes[14]->inputs[0] = 21; }),
            ".nodes[14]: inputs: a weight in rows or blocks is for the second operand of a product");
}

void change_value(fb::ValueT& value, Random& random) {
  switch (below(random, 8)) {
    case 6: value.whole = !value.whole; break;
    case 5: value.words = below(random, 2) == 0 ? 3.0f : 0.0f; break;
    case 0: value.kind = static_cast<fb::ValueKind>(below(random, 13)); break;
    case 1: value.index = changed(value.index, random); break;
    case 2: value.form = static_cast<fb::WeightForm>(below(random, 10)); break;
    case 3: value.numbers.assign(below(random, 10), 1.0f); break;
    case 4: value.shape.resize(below(random, 8), 1); break;
    default:
      if (!value.shape.empty()) {
        uint32_t& size = value.shape[below(random, value.shape.size())];
        size = changed(size, random);
      }
  }
}

void change_node(fb::NodeT& node, size_t num_values, Random& random) {
  switch (below(random, 6)) {
    case 0: node.op = static_cast<fb::Op>(below(random, 31)); break;
    case 1: node.output = static_cast<uint32_t>(below(random, num_values + 2)); break;
    case 2: node.inputs.resize(below(random, 5), static_cast<uint32_t>(below(random, num_values))); break;
    case 3: node.axes.assign(below(random, 6), static_cast<uint32_t>(below(random, 6))); break;
    case 4: node.begin = changed(node.begin, random); break;
    default: node.end = changed(node.end, random);
  }
}

TEST_F(QnnGraph, never_crashes_on_a_damaged_blob) {
  int num_whole = 0;
  for (int i = 0; i < kMutations; ++i) {
    Random random(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u);
    Bytes blob = sound_blob();
    if (i % 4 == 0) {
      blob = change_bytes(std::move(blob), random);
    } else {
      const auto part = fb::UnPackPart(blob.data());
      if (below(random, 2) == 0)
        change_value(*part->values[below(random, part->values.size())], random);
      else
        change_node(*part->nodes[below(random, part->nodes.size())], part->values.size(), random);
      if (below(random, 8) == 0) part->capacity = changed(part->capacity, random);
      if (below(random, 8) == 0) part->tokens = changed(part->tokens, random);
      blob = pack(*part);
    }
    const Result<Graph> graph = verify(blob);
    ASSERT_TRUE(graph.ok() || !graph.status().message().empty()) << "mutation " << i;
    num_whole += graph.ok();
  }
  EXPECT_GT(num_whole, 10);
  EXPECT_LT(num_whole, kMutations);
}

}  // namespace
}  // namespace mote::qnn::test
