// What a blob may not say, and what sessions share.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "runner/program/thread_pool.h"
#include "tests/backends/xnnpack/harness.h"

namespace mote::xnnpack::test {
namespace {

using mote::test::random_floats;
using mote::test::random_tiles;

// x [1, T, 64], quantised, times a weight [32, 64] of 4 bits, times its scales.
GraphBuilder small_graph() {
  GraphBuilder graph;
  const int32_t x = graph.input({1, kT, 64}), y = graph.output({1, kT, 32});
  const int32_t rows = graph.activation({1, kT, 64}, fb::DType::int8_rows), product = graph.activation({1, kT, 32});
  graph.node(fb::Op::convert, {x}, rows);
  graph.node(fb::Op::fully_connected, {rows, graph.weight({32, 64}, 0, fb::WeightForm::int4_blocks)}, product);
  graph.node(fb::Op::binary, {product, graph.weight({32}, 0, fb::WeightForm::row_scales)}, y, fb::Function::multiply);
  return graph;
}

struct Refusal {
  const char* name;
  std::function<void(GraphBuilder&)> damage;
  const char* message;
};

const std::vector<Refusal> kRefusals = {
    {"weight index", [](auto& g) { g.value(4).weight = 1; }, "values[4]: weight = 1: the part has 1"},
    {"rows", [](auto& g) { g.value(4).first_row = 1; }, "first_row = 1"},
    {"negative row", [](auto& g) { g.value(4).first_row = -1; }, "first_row = -1"},
    {"columns", [](auto& g) { g.value(4).shape[1] = fb::Dim(0, 32); }, "does not match the weight's"},
    {"form", [](auto& g) { g.value(4).form = fb::WeightForm::int8_high; }, "form = int8_high"},
    {"enum", [](auto& g) { g.value(4).form = static_cast<fb::WeightForm>(77); }, "not one of this version"},
    {"growing weight", [](auto& g) { g.value(4).shape[0] = fb::Dim(1, 31); }, "does not grow with T"},
    {"negative size", [](auto& g) { g.value(0).shape[1] = fb::Dim(1, -1); }, "must be at least 1 for every T"},
    {"huge size", [](auto& g) { g.value(0).shape[1] = fb::Dim(INT64_MAX, INT64_MAX); }, "at most 2^31"},
    {"rank", [](auto& g) { g.value(0).shape.resize(7, fb::Dim(0, 1)); }, "has 7 sizes"},
    {"unwritten", [](auto& g) { g.graph().nodes.erase(g.graph().nodes.begin()); }, "was written before"},
    {"no writer", [](auto& g) { g.graph().nodes.pop_back(); }, "values[1]: is written by no node"},
    {"written twice", [](auto& g) { g.graph().nodes[2]->output = 3; }, "still to be written"},
    {"input index", [](auto& g) { g.graph().nodes[0]->inputs[0] = -7; }, "inputs: -7"},
    {"output shape", [](auto& g) { g.value(1).shape[2] = fb::Dim(0, 33); }, "its output has shape [1, 1*T+0, 32]"},
    {"operand count", [](auto& g) { g.graph().nodes[1]->inputs.pop_back(); }, "has 1 inputs: must be 2 to 3"},
    {"rows as floats", [](auto& g) { g.graph().nodes[1]->inputs[0] = 0; }, "cannot multiply float32 with int4_blocks"},
    {"function of another op", [](auto& g) { g.graph().nodes[2]->function = fb::Function::abs; }, "function = abs"},
    {"quantised output", [](auto& g) { g.value(1).dtype = fb::DType::int8_rows; }, "only an activation"},
    {"rows as halves", [](auto& g) { g.value(2).dtype = fb::DType::float16; },
     "cannot multiply float16 with int4_blocks"},
    {"product in halves", [](auto& g) { g.value(3).dtype = fb::DType::float16; }, "writes float32 only"},
    {"a conversion of nothing", [](auto& g) { g.value(2).dtype = fb::DType::float32; },
     "cannot convert float32 to float32"},
    {"halves of tiles", [](auto& g) { g.value(4).form = fb::WeightForm::float16; },
     "form = float16: cannot be made from"},
    {"kernel as operand", [](auto& g) { g.graph().nodes[2]->inputs[1] = 4; }, "must be float32"},
};

TEST(XnnpackGraph, makes_runtimes_after_weights_of_several_sizes_were_packed) {
  if (!has_library()) GTEST_SKIP();
  const auto small = random_tiles({64, 64}, 4, 32, 1, Multipliers::kNotNegative),
             large = random_tiles({4096, 64}, 4, 32, 2, Multipliers::kNotNegative);
  GraphBuilder graph;
  const int32_t x = graph.input({1, kT, 64}), y = graph.output({1, kT, 64}), z = graph.output({1, kT, 4096});
  const int32_t rows = graph.activation({1, kT, 64}, fb::DType::int8_rows);
  graph.node(fb::Op::convert, {x}, rows);
  graph.node(fb::Op::fully_connected, {rows, graph.weight({64, 64}, 0, fb::WeightForm::int4_blocks)}, y);
  graph.node(fb::Op::fully_connected, {rows, graph.weight({4096, 64}, 1, fb::WeightForm::int4_blocks)}, z);
  Loaded loaded(graph.build(), {&small.owned, &large.owned});
  const Owned in = random_floats({1, 3, 64}, 3);
  const Status status = loaded.run({&in}, {{1, 3, 64}, {1, 3, 4096}}, 3);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(XnnpackGraph, refuses_what_does_not_hold) {
  if (!has_library()) GTEST_SKIP();
  const auto weight = random_tiles({32, 64}, 4, 32, 1, Multipliers::kNotNegative);
  ASSERT_TRUE(Loaded(small_graph().build(), {&weight.owned}).status().ok());
  for (const Refusal& refusal : kRefusals) {
    GraphBuilder graph = small_graph();
    refusal.damage(graph);
    const Status status = Loaded(graph.build(), {&weight.owned}).status();
    EXPECT_EQ(status.code(), Code::kInvalidProgram) << refusal.name;
    EXPECT_NE(status.message().find(refusal.message), std::string::npos) << refusal.name << ": " << status.message();
    EXPECT_EQ(status.message().find("test.mote: delegates[0] (xnnpack)"), 0u) << status.message();
  }
}

TEST(XnnpackGraph, refuses_calls_of_other_sizes) {
  if (!has_library()) GTEST_SKIP();
  const auto weight = random_tiles({32, 64}, 4, 32, 1, Multipliers::kNotNegative);
  Loaded loaded(small_graph().build(), {&weight.owned});
  const Owned in = random_floats({1, 3, 64}, 3);
  EXPECT_TRUE(loaded.run({&in}, {{1, 3, 32}}, 3).ok());
  EXPECT_FALSE(loaded.run({&in}, {{1, 3, 32}}, 2).ok());
  EXPECT_FALSE(loaded.run({&in}, {{1, 3, 31}}, 3).ok());
  EXPECT_FALSE(loaded.run({&in, &in}, {{1, 3, 32}}, 3).ok());
  EXPECT_FALSE(loaded.run({&in}, {{1, 3, 32}}, int64_t{1} << 60).ok());
  EXPECT_TRUE(loaded.run({&in}, {{1, 3, 32}}, 3).ok());
}

// Three parts that read one weight, as the methods of a program do.
DelegateSource three_parts(const std::byte* blob, size_t bytes, const Owned& weight) {
  DelegateSource source;
  for (int i = 0; i < 3; ++i) {
    DelegatePart part;
    part.place = "test";
    part.blob = {blob, bytes};
    part.weights.push_back({5, "w", weight.tensor});
    source.parts.push_back(std::move(part));
  }
  return source;
}

TEST(XnnpackGraph, packs_a_weight_once_for_all_parts_and_sessions) {
  if (!has_library()) GTEST_SKIP();
  const auto weight = random_tiles({512, 512}, 4, 32, 1, Multipliers::kNotNegative);
  GraphBuilder graph;
  const int32_t x = graph.input({1, kT, 512}), y = graph.output({1, kT, 512});
  const int32_t rows = graph.activation({1, kT, 512}, fb::DType::int8_rows);
  graph.node(fb::Op::convert, {x}, rows);
  graph.node(fb::Op::fully_connected, {rows, graph.weight({512, 512}, 0, fb::WeightForm::int4_blocks)}, y);
  const Bytes blob = graph.build();
  const auto aligned = align(blob);
  const auto program = find_backend("xnnpack")->load(three_parts(aligned.get(), blob.size(), weight.owned));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const uint64_t codes = 512 * 512 / 2;
  EXPECT_GE((*program)->private_bytes(), codes);
  EXPECT_LT((*program)->private_bytes(), codes * 3 / 2);

  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> sessions;
  for (auto& result : results) {
    sessions.emplace_back([&] {
      const auto pool = *make_thread_pool(2);
      const auto delegate = (*program)->open({.threads = pool.get(), .max_tokens = 64});
      const Owned in = random_floats({1, 9, 512}, 3);
      Owned out = mote::test::make(DType::kFloat32, {1, 9, 512});
      const Tensor* inputs[] = {&in.tensor};
      Tensor* outputs[] = {&out.tensor};
      Call call{};
      call.inputs = inputs;
      call.outputs = outputs;
      KernelContext context;
      for (size_t part = 0; part < 3; ++part) {
        if (!(*delegate)->prepare(part, call, 9).ok() || !(*delegate)->execute(part, call, context).ok()) return;
        result.insert(result.end(), out.as<float>(), out.as<float>() + out.count());
      }
    });
  }
  for (std::thread& session : sessions) session.join();
  ASSERT_EQ(results[0].size(), 3u * 9 * 512);
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_TRUE(std::equal(results[0].begin(), results[0].begin() + 9 * 512, results[0].begin() + 9 * 512));
}

}  // namespace
}  // namespace mote::xnnpack::test
