#include <gtest/gtest.h>

#include "runner/program/program.h"
#include "tests/runner/program/test_ops.h"

namespace mote {
namespace {

using test::constant;
using test::kVerify;
using test::tokens;

Result<std::shared_ptr<const Bound>> load(test::ProgramBuilder builder) {
  MOTE_ASSIGN(Mapped mapped, map_bytes("test.mote", builder.build()));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  return bind(std::move(verified));
}

void expect_refused(test::ProgramBuilder builder, Code code, const std::string& message) {
  const auto bound = load(std::move(builder));
  EXPECT_EQ(bound.status().code(), code);
  EXPECT_NE(bound.status().message().find(message), std::string::npos) << bound.status().message();
}

// The methods of sum_model, with instruction 2 of `prefill` (a view: test.row) replaced.
test::ProgramBuilder with_view(const std::string& op, int64_t start) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[0]->instructions[2]->op = op;
  builder.program.methods[0]->instructions[2]->attributes[0]->dims = {constant(start)};
  return builder;
}

TEST(Bind, finds_ops_methods_and_state_shapes) {
  const auto bound = load(test::sum_model());
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(*(*bound)->method_index("verify"), 2u);
  EXPECT_EQ((*bound)->method_index("encode_image").status().code(), Code::kInvalidArgument);
  ASSERT_EQ((*bound)->ops(1).size(), 4u);
  EXPECT_EQ((*bound)->ops(1)[0], find_op("test.embedding"));
  ASSERT_EQ((*bound)->state_shapes().size(), 1u);
  EXPECT_FALSE((*bound)->state_shapes()[0].is_kv_cache);
  EXPECT_EQ((*bound)->state_shapes()[0].recurrent.size(0), test::kDim);
}

TEST(Bind, describes_caches) {
  test::ProgramBuilder builder = test::sum_model();
  builder.kv_cache(2, 8, 16);
  const auto bound = load(std::move(builder));
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const StateShape& cache = (*bound)->state_shapes()[1];
  EXPECT_TRUE(cache.is_kv_cache);
  EXPECT_EQ(cache.num_heads, 2);
  EXPECT_EQ(cache.head_dim, 8);
  EXPECT_EQ(cache.value_head_dim, 8);
  EXPECT_EQ(cache.window, 16);
}

TEST(Bind, names_an_unknown_op_and_where_it_came_from) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[1]->instructions[1]->op = "aten.frobnicate";
  expect_refused(
      std::move(builder), Code::kUnsupportedOp,
      "test.mote: decode: instructions[1] (aten.frobnicate, model.layers.0): this runner has no op of that name");
}

TEST(Bind, refuses_operands_that_the_op_does_not_take) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[1]->instructions[0]->inputs.pop_back();
  expect_refused(std::move(builder), Code::kInvalidProgram,
                 "test.mote: decode: instructions[0] (test.embedding, model.layers.0) for T = 1: must hold: "
                 "call.inputs.size() == 2");
}

TEST(Bind, refuses_shapes_that_fit_for_one_token_only) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[kVerify]->values[4]->shape[1] = constant(1);
  expect_refused(std::move(builder), Code::kInvalidProgram,
                 "instructions[0] (test.embedding, model.layers.0) for T = 2: must hold");
}

TEST(Bind, refuses_shapes_that_do_not_fit_for_the_largest_tokens) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[0]->max_tokens = 16;
  builder.program.methods[0]->instructions[1]->op = "test.few_rows";
  expect_refused(std::move(builder), Code::kInvalidProgram,
                 "instructions[1] (test.few_rows, model.layers.0) for T = 16: must hold");
}

TEST(Bind, refuses_views_that_reach_outside_of_their_storage) {
  for (const int64_t start : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    expect_refused(with_view("test.row", start), Code::kInvalidProgram,
                   "test.mote: prefill: instructions[2] (test.row, model.layers.0): the view reaches outside of the 16 "
                   "bytes that it shares");
  }
}

TEST(Bind, refuses_a_view_op_whose_output_has_storage_of_its_own) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[0]->values[6]->alias_of = -1;
  builder.program.methods[0]->values[6]->arena = fb::Arena::fixed;
  builder.program.methods[0]->values[6]->bytes = 64;
  builder.program.methods[0]->values[6]->offset = 64;
  builder.program.methods[0]->fixed_bytes += 64;
  expect_refused(std::move(builder), Code::kInvalidProgram,
                 "values[6].alias_of must be the op's input, because the op is a view");
}

TEST(Bind, refuses_a_computing_op_whose_output_aliases) {
  expect_refused(with_view("test.cancel", 0), Code::kInvalidProgram,
                 "values[6].alias_of must be -1, because the op is no view");
}

TEST(Bind, refuses_logits_that_are_a_strided_view) {
  test::ProgramBuilder builder = test::sum_model();
  auto& method = *builder.program.methods[kVerify];
  // [1, 11, T] read as [1, T, 11]
  method.values[6]->shape = {constant(1), constant(test::kVocabSize), tokens()};
  method.instructions[2]->op = "test.cancel";
  method.instructions[2]->inputs = {method.inputs[0]};
  test::MethodBuilder edit(method);
  method.outputs = {
      edit.emit("test.transpose", {6}, edit.view_of(6, {constant(1), tokens(), constant(test::kVocabSize)}))};
  expect_refused(std::move(builder), Code::kInvalidProgram,
                 "test.mote: verify: the output (values[7]) is a strided view");
}

}  // namespace
}  // namespace mote
