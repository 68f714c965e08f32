// The ops' rules for rows, each by cases worked out by hand: T tokens are written as kT * n.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "kernels/op.h"

namespace mote {
namespace {

struct Times {
  int64_t tokens;
};
constexpr Times kT{1};
constexpr Times operator*(Times t, int64_t n) { return {t.tokens * n}; }

struct Size : Dim {
  Size(int64_t size) : Dim{size, 0} {}         // NOLINT(google-explicit-constructor)
  Size(Times times) : Dim{0, times.tokens} {}  // NOLINT(google-explicit-constructor)
};
using Shape = std::vector<Dim>;
Shape shape(std::initializer_list<Size> sizes) { return {sizes.begin(), sizes.end()}; }

struct Input {
  std::vector<Size> sizes;
  TokenAxis axis = {};
};
struct Case {
  const char* op;
  std::vector<Input> inputs;
  std::vector<std::pair<const char*, std::vector<Size>>> attributes;
  std::vector<Size> output;
  OutputAxis expected;
};

OutputAxis answer(const Case& one) {
  std::vector<Shape> shapes;
  for (const Input& input : one.inputs) shapes.emplace_back(input.sizes.begin(), input.sizes.end());
  std::vector<SymbolicCall::Input> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) inputs.push_back({shapes[i], one.inputs[i].axis});
  std::vector<Shape> dims;
  for (const auto& [name, values] : one.attributes) dims.emplace_back(values.begin(), values.end());
  std::vector<SymbolicCall::Attribute> attributes;
  for (size_t i = 0; i < dims.size(); ++i) attributes.push_back({one.attributes[i].first, dims[i]});
  const Shape output(one.output.begin(), one.output.end());
  return find_op(one.op)->token_axis({inputs, output, attributes});
}

constexpr TokenAxis kNone{}, kFirst{0}, kSecond{1}, kThird{2};
const Input kRows{{kT, 8}, kFirst};         // a row of 8 for each token
const Input kBatched{{1, kT, 8}, kSecond};  // the same with a batch dimension
const Input kWeight{{6, 8}, kNone};
const Input kHeads{{1, 4, kT, 8}, kThird};
const Input kTokenHeads{{1, kT, 4, 8}, kSecond};

const std::vector<Case> kCases = {
    {"aten.add", {kBatched, {{8}}}, {}, {1, kT, 8}, kSecond},
    {"aten.add", {kBatched, kRows}, {}, {1, kT, 8}, kSecond},  // aligned at the last
    {"aten.add", {{{kT, 1}, kFirst}, {{1, kT}, kSecond}}, {}, {kT, kT}, kMixesTokens},
    {"aten.add", {{{1}}, {{1}}}, {}, {kT, 1}, kFirst},  // repeated for each token
    {"aten.where", {{{kT, 1}, kFirst}, kRows, {{}}}, {}, {kT, 8}, kFirst},
    {"aten.expand", {{{1, 8}}}, {}, {kT, 8}, kFirst},
    {"aten.view", {kBatched}, {}, {1, kT, 2, 4}, kSecond},
    {"aten.view", {kRows}, {}, {kT * 8}, TokenAxis{0, 1, 8}},
    {"aten.view", {{{kT * 8}, {0, 1, 8}}}, {}, {kT * 2, 4}, TokenAxis{0, 1, 2}},
    {"aten.view", {{{kT * 8}, {0, 1, 8}}}, {}, {kT, 16}, kMixesTokens},  // half of the elements: no such view
    {"aten.view", {{{2, kT, 3}, kSecond}}, {}, {kT * 2, 3}, TokenAxis{0, 2, 1}},
    {"aten.permute", {kHeads}, {{"dims", {0, 2, 1, 3}}}, {1, kT, 4, 8}, kSecond},
    {"aten.unsqueeze", {kRows}, {{"dim", {0}}}, {1, kT, 8}, kSecond},
    {"aten.unsqueeze", {kRows}, {{"dim", {1}}}, {kT, 1, 8}, kFirst},
    {"aten.squeeze", {kHeads}, {{"dims", {0}}}, {4, kT, 8}, kSecond},
    {"aten.squeeze", {kRows}, {{"dims", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.select", {kHeads}, {{"dim", {1}}, {"index", {3}}}, {1, kT, 8}, kSecond},
    {"aten.select", {kHeads}, {{"dim", {2}}, {"index", {0}}}, {1, 4, 8}, kMixesTokens},
    {"aten.slice", {kRows}, {{"dim", {1}}, {"start", {2}}, {"end", {4}}}, {kT, 2}, kFirst},
    {"aten.slice", {kRows}, {{"dim", {0}}, {"start", {0}}, {"end", {kT}}, {"step", {1}}}, {kT, 8}, kFirst},
    {"aten.slice", {kRows}, {{"dim", {0}}, {"start", {0}}, {"end", {1}}}, {1, 8}, kMixesTokens},
    {"aten.slice", {kRows}, {{"dim", {0}}, {"start", {0}}, {"end", {kT}}, {"step", {2}}}, {kT, 8}, kMixesTokens},
    {"aten.clone", {kRows}, {}, {kT, 8}, kFirst},
    {"aten._to_copy", {kRows}, {}, {kT, 8}, kFirst},
    {"aten.cat", {kRows, kRows}, {{"dim", {1}}}, {kT, 16}, kFirst},
    {"aten.cat", {kRows, kRows}, {{"dim", {0}}}, {kT * 2, 8}, kMixesTokens},
    {"aten.cat", {kRows, {{1, 8}}}, {{"dim", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.scatter", {kRows, kRows, kRows}, {{"dim", {1}}}, {kT, 8}, kFirst},
    {"aten.scatter", {kRows, kRows, kRows}, {{"dim", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.full", {}, {}, {kT, 8}, kFirst},
    {"aten.full", {}, {}, {kT, kT}, kMixesTokens},
    {"aten.arange", {}, {{"start", {0}}, {"end", {4}}, {"step", {1}}}, {4}, kNone},
    {"aten.arange", {}, {{"start", {0}}, {"end", {kT}}, {"step", {1}}}, {kT}, kMixesTokens},
    {"aten.constant_pad_nd", {kRows}, {{"pad", {1, 1}}}, {kT, 10}, kFirst},
    {"aten.constant_pad_nd", {kRows}, {{"pad", {0, 0, 1, -1}}}, {kT, 8}, kMixesTokens},
    {"aten.tril", {{{kT, 4, 4}, kFirst}}, {}, {kT, 4, 4}, kFirst},
    {"aten.tril", {kRows}, {}, {kT, 8}, kMixesTokens},
    {"aten.triu", {{{4, kT}, kSecond}}, {}, {4, kT}, kMixesTokens},
    {"aten.index_select", {kWeight, {{kT}, kFirst}}, {{"dim", {0}}}, {kT, 8}, kFirst},
    {"aten.index_select", {kRows, {{3}}}, {{"dim", {1}}}, {kT, 3}, kFirst},
    {"aten.index_select", {kRows, {{3}}}, {{"dim", {0}}}, {3, 8}, kMixesTokens},
    {"aten.index_select", {kRows, {{kT}, kFirst}}, {{"dim", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.gather", {kRows, {{kT, 2}, kFirst}}, {{"dim", {1}}}, {kT, 2}, kFirst},
    {"aten.gather", {kRows, {{kT, 8}, kFirst}}, {{"dim", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.gather", {kWeight, {{kT, 8}, kFirst}}, {{"dim", {0}}}, {kT, 8}, kFirst},
    {"aten.repeat_interleave", {kRows}, {{"dim", {1}}, {"repeats", {2}}}, {kT, 16}, kFirst},
    {"aten.repeat_interleave", {kRows}, {{"dim", {0}}, {"repeats", {2}}}, {kT * 2, 8}, TokenAxis{0, 1, 2}},
    {"aten.sum", {kRows}, {{"dims", {1}}, {"keepdim", {0}}}, {kT}, kFirst},
    {"aten.sum", {kBatched}, {{"dims", {0}}, {"keepdim", {0}}}, {kT, 8}, kFirst},
    {"aten.mean", {kBatched}, {{"dims", {0, 2}}, {"keepdim", {1}}}, {1, kT, 1}, kSecond},
    {"aten.amax", {kRows}, {{"dims", {0}}, {"keepdim", {1}}}, {1, 8}, kMixesTokens},
    {"aten.amin", {kRows}, {{"dims", {0, 1}}}, {}, kMixesTokens},
    {"aten.prod", {kWeight}, {{"dims", {0}}}, {8}, kNone},
    {"aten.any", {kRows}, {{"dims", {1}}}, {kT}, kFirst},
    {"aten.all", {kRows}, {{"dims", {0}}}, {8}, kMixesTokens},
    {"aten.argmax", {kRows}, {{"dim", {1}}}, {kT}, kFirst},
    {"aten.max", {kRows}, {{"dim", {0}}}, {8}, kMixesTokens},
    {"aten.min", {kBatched}, {{"dim", {0}}}, {kT, 8}, kFirst},
    {"aten.cumsum", {kRows}, {{"dim", {1}}}, {kT, 8}, kFirst},
    {"aten.cumsum", {kRows}, {{"dim", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.softmax", {kRows}, {{"dim", {1}}}, {kT, 8}, kFirst},
    {"aten.log_softmax", {kRows}, {{"dim", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.topk", {kRows}, {{"dim", {1}}, {"k", {2}}}, {kT, 2}, kFirst},
    {"aten.sort", {kRows}, {{"dim", {0}}}, {kT, 8}, kMixesTokens},
    {"aten.bmm", {{{2, kT, 8}, kSecond}, {{2, 8, 3}}}, {}, {2, kT, 3}, kSecond},
    {"aten.bmm", {{{2, 3, 8}}, {{2, 8, kT}, kThird}}, {}, {2, 3, kT}, kThird},
    {"aten.bmm", {{{kT, 1, 8}, kFirst}, {{kT, 8, 3}, kFirst}}, {}, {kT, 1, 3}, kFirst},
    {"aten.bmm", {{{2, kT, 8}, kSecond}, {{2, 8, kT}, kThird}}, {}, {2, kT, kT}, kMixesTokens},  // scores
    {"aten.bmm", {{{2, 3, kT}, kThird}, {{2, kT, 8}, kSecond}}, {}, {2, 3, 8}, kMixesTokens},    // a sum over tokens
    {"mote.linear", {kBatched, kWeight}, {}, {1, kT, 6}, kSecond},
    {"mote.linear", {kBatched, kWeight, {{6}}, {{1, kT, 6}, kSecond}}, {}, {1, kT, 6}, kSecond},
    {"mote.linear", {{{8, kT}, kSecond}, kWeight}, {}, {8, 6}, kMixesTokens},  // a sum over tokens
    {"mote.gated_linear", {kRows, kWeight}, {}, {kT, 3}, kFirst},
    {"mote.rms_norm", {kRows, {{8}}}, {}, {kT, 8}, kFirst},
    {"mote.layer_norm", {{{8, kT}, kSecond}}, {}, {8, kT}, kMixesTokens},
    {"mote.embedding", {{{1, kT}, kSecond}, kWeight}, {}, {1, kT, 8}, kSecond},
    {"mote.embedding", {{{1, kT}, kSecond}, kRows}, {}, {1, kT, 8}, kMixesTokens},
    {"mote.ngram_ids", {{{1, kT}, kSecond}, {{1, kT, 2}, kSecond}, {{3}}}, {}, {1, kT, 4}, kSecond},
    {"mote.ngram_ids", {{{1, kT}, kSecond}, {{1, 2, kT}, kThird}, {{3}}}, {}, {1, kT, 4}, kMixesTokens},
    {"mote.rope_table", {{{1, kT}, kSecond}, {{4}}}, {}, {1, kT, 8}, kSecond},
    {"mote.rope_table", {{{1, 4}}, {{4}}}, {}, {1, 4, 8}, kMixesTokens},
    {"mote.rope", {kHeads, {{1, kT, 8}, kSecond}, {{1, kT, 8}, kSecond}}, {}, {1, 4, kT, 8}, kThird},
    {"mote.rope", {{{1, kT, 4, 8}, kSecond}, {{1, 4, 8}}, {{1, 4, 8}}}, {}, {1, kT, 4, 8}, kMixesTokens},
    {"mote.attention", {kHeads, kHeads, kHeads, {{1, kT}, kSecond}}, {}, {1, kT, 4, 8}, kSecond},
    {"mote.attention", {kHeads, {}, {}, {{1, kT}, kSecond}, {{4}}}, {}, {1, kT, 4, 8}, kSecond},
    {"mote.attention", {kHeads, kHeads, kHeads, {{1, kT}, kSecond}, {{kT}, kFirst}}, {}, {1, kT, 4, 8}, kMixesTokens},
    {"mote.attention",
     {kHeads, kHeads, kHeads, {{1, kT}, kSecond}, {{1, kT, 4}, kSecond}, {}, {{1, kT, 1, 3}, kSecond}, kTokenHeads},
     {},
     {1, kT, 4, 8},
     kSecond},
    {"mote.attention_lse", {kHeads, kHeads, kHeads, {{1, kT}, kSecond}}, {}, {1, kT, 4, 8}, kSecond},
    {"mote.attention",
     {kHeads, kHeads, kHeads, {{1, kT}, kSecond}, {}, {}, {{1, 4, 1, 3}}},
     {},
     {1, kT, 4, 8},
     kSecond},
    {"mote.head_linear", {kTokenHeads, {{4, 6, 8}}}, {}, {1, kT, 4, 6}, kSecond},
    {"mote.head_linear", {kHeads, {{4, 6, 8}}}, {}, {1, 4, kT, 6}, kMixesTokens},
    {"mote.indexer",
     {kHeads, kHeads, {{1, kT}, kSecond}, {{1, kT, 4}, kSecond}},
     {{"topk", {3}}},
     {1, kT, 4, 3},
     kSecond},
    {"mote.indexer", {kHeads, kHeads, {{1, kT}, kSecond}, kHeads}, {{"topk", {3}}}, {1, kT, 4, 3}, kMixesTokens},
    {"mote.short_conv", {kBatched, {{8, 3}}}, {}, {1, kT, 8}, kSecond},
    {"mote.short_conv", {{{1, 8, kT}, kThird}, {{8, 3}}}, {}, {1, 8, kT}, kMixesTokens},
    {"mote.linear_attention",
     {kTokenHeads, kTokenHeads, kTokenHeads, {{1, kT, 4}, kSecond}},
     {},
     {1, kT, 4, 8},
     kSecond},
    {"mote.linear_attention", {kTokenHeads, kTokenHeads, kTokenHeads, {{1, 4, 4}}}, {}, {1, kT, 4, 8}, kSecond},
    {"mote.linear_attention", {kHeads, kHeads, kHeads}, {}, {1, 4, kT, 8}, kMixesTokens},
    {"mote.moe_experts", {kRows, {{kT, 2}, kFirst}, {{kT, 2}, kFirst}, {{4, 6, 8}}, {{4, 8, 3}}}, {}, {kT, 8}, kFirst},
    {"mote.moe_experts", {kRows, {{8, 2}}, {{8, 2}}, {{4, 6, 8}}, {{4, 8, 3}}}, {}, {kT, 8}, kMixesTokens},
    {"mote.expert_linear", {kRows, {{kT, 2}, kFirst}, {{4, 6, 8}}}, {}, {kT, 2, 6}, kFirst},
    {"mote.expert_linear", {kRows, {{8, 2}}, {{4, 6, 8}}}, {}, {8, 2, 6}, kMixesTokens},
};

TEST(TokenAxis, rules_say_where_tokens_go) {
  for (size_t i = 0; i < kCases.size(); ++i) EXPECT_EQ(answer(kCases[i]), kCases[i].expected) << i << kCases[i].op;
}

// Ops may share a rule, and then its cases.
TEST(TokenAxis, every_op_of_this_build_has_a_rule_with_cases) {
  std::set<decltype(Op::token_axis)> in_cases;
  for (const Case& one : kCases) in_cases.insert(find_op(one.op)->token_axis);
  for (const Op* op : all_ops()) {
    ASSERT_NE(op->token_axis, nullptr) << op->name;
    EXPECT_TRUE(in_cases.contains(op->token_axis)) << op->name;
  }
}

TEST(TokenAxis, a_value_has_one_dimension_that_grows) {
  EXPECT_EQ(axis_of(shape({1, kT * 3, 8})), OutputAxis(TokenAxis{1, 1, 3}));
  EXPECT_EQ(axis_of(shape({1, 8})), OutputAxis(TokenAxis()));
  EXPECT_EQ(axis_of(shape({kT, kT})), kMixesTokens);
  EXPECT_EQ(axis_of(std::vector<Dim>{{1, 1}}), kMixesTokens);  // T + 1
}

}  // namespace
}  // namespace mote
