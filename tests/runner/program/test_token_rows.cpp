// Which programs may compute tokens of several sequences in one call.
#include <gtest/gtest.h>

#include "runner/program/token_rows.h"
#include "tests/runner/program/tiny_model.h"

namespace mote {
namespace {

using test::constant;
using test::dims_attribute;
using test::integer_attribute;
using test::MethodBuilder;
using test::number_attribute;
using test::tokens;

constexpr uint32_t kVerify = 2;

// What check_token_rows says of the tiny model whose `verify` has more instructions at its end: emit(builder, ids [1,
// T] int64).
template <typename Emit>
Status check(const Emit& emit) {
  test::ProgramBuilder builder = test::tiny_model();
  fb::MethodT& method = *builder.program.methods[kVerify];
  method.max_tokens = 8;  // room for 8 x 8 elements of 8 bytes in 64 bytes a token
  MethodBuilder more(method);
  emit(more, method.inputs[0]);
  MOTE_ASSIGN(Mapped mapped, map_bytes("test.mote", builder.build()));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  MOTE_ASSIGN(const auto bound, bind(std::move(verified)));
  return check_token_rows(*bound, kVerify);
}

template <typename Emit>
void expect_refused(const std::string& op, const Emit& emit) {
  const Status status = check(emit);
  EXPECT_EQ(status.code(), Code::kUnsupportedOp) << op << ": " << status.message();
  EXPECT_NE(status.message().find("(" + op + ", model.layers.0) makes a token's row depend on those of other tokens"),
            std::string::npos)
      << status.message();
}

constexpr fb::DType kInt = fb::DType::int64;

int32_t floats_of(MethodBuilder& builder, int32_t ids) {
  return builder.emit("aten._to_copy", {ids}, builder.activation({constant(1), tokens()}));
}

TEST(TokenRows, accepts_a_decoder) {
  const Status status = check([](MethodBuilder&, int32_t) {});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(TokenRows, accepts_what_works_on_rows) {
  const Status status = check([](MethodBuilder& builder, int32_t ids) {
    const int32_t x = floats_of(builder, ids);
    const int32_t column = builder.emit("aten.unsqueeze", {x}, builder.view_of(x, {constant(1), tokens(), constant(1)}),
                                        integer_attribute("dim", 2));
    const int32_t row = builder.emit("aten.permute", {column}, builder.view_of(x, {constant(1), constant(1), tokens()}),
                                     dims_attribute("dims", {constant(0), constant(2), constant(1)}));
    builder.emit("aten.sum", {row}, builder.activation({constant(1), tokens()}), dims_attribute("dims", {constant(1)}),
                 integer_attribute("keepdim", 0));
    const int32_t zeros = builder.emit("aten.full", {}, builder.activation({tokens(), constant(8)}),
                                       dims_attribute("size", {tokens(), constant(8)}), number_attribute("value", 0.0));
    const int32_t flat =
        builder.emit("aten.view", {zeros}, builder.view_of(zeros, {tokens(8)}), dims_attribute("size", {tokens(8)}));
    const int32_t pairs = builder.emit("aten.view", {flat}, builder.view_of(zeros, {tokens(4), constant(2)}),
                                       dims_attribute("size", {tokens(4), constant(2)}));
    builder.emit("aten.softmax", {pairs}, builder.activation({tokens(4), constant(2)}), integer_attribute("dim", 1));
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(TokenRows, refuses_sums_over_tokens) {
  expect_refused("aten.cumsum", [](MethodBuilder& builder, int32_t ids) {
    builder.emit("aten.cumsum", {ids}, builder.activation({constant(1), tokens()}, kInt), integer_attribute("dim", 1));
  });
  expect_refused("aten.amax", [](MethodBuilder& builder, int32_t ids) {
    builder.emit("aten.amax", {ids}, builder.activation({constant(1)}, kInt), dims_attribute("dims", {constant(1)}),
                 integer_attribute("keepdim", 0));
  });
  expect_refused("aten.softmax", [](MethodBuilder& builder, int32_t ids) {
    builder.emit("aten.softmax", {floats_of(builder, ids)}, builder.activation({constant(1), tokens()}),
                 integer_attribute("dim", 1));
  });
}

TEST(TokenRows, refuses_what_counts_tokens_of_a_call) {
  expect_refused("aten.arange", [](MethodBuilder& builder, int32_t) {
    builder.emit("aten.arange", {}, builder.activation({tokens()}, kInt), integer_attribute("start", 0),
                 dims_attribute("end", {tokens()}), integer_attribute("step", 1));
  });
  EXPECT_TRUE(check([](MethodBuilder& builder, int32_t) {
                builder.emit("aten.arange", {}, builder.activation({constant(4)}, kInt), integer_attribute("start", 0),
                             dims_attribute("end", {constant(4)}), integer_attribute("step", 1));
              }).ok());
}

TEST(TokenRows, refuses_a_table_of_tokens_by_tokens) {
  expect_refused("aten.sub", [](MethodBuilder& builder, int32_t ids) {
    const int32_t column =
        builder.emit("aten.unsqueeze", {ids}, builder.view_of(ids, {constant(1), tokens(), constant(1)}),
                     integer_attribute("dim", 2));
    const int32_t row =
        builder.emit("aten.unsqueeze", {ids}, builder.view_of(ids, {constant(1), constant(1), tokens()}),
                     integer_attribute("dim", 1));
    builder.emit("aten.sub", {column, row}, builder.activation({constant(1), tokens(), tokens()}, kInt));
  });
}

TEST(TokenRows, refuses_slices_and_shifts_of_tokens) {
  expect_refused("aten.constant_pad_nd", [](MethodBuilder& builder, int32_t ids) {
    builder.emit("aten.constant_pad_nd", {ids}, builder.activation({constant(1), tokens()}, kInt),
                 dims_attribute("pad", {constant(1), {0, -1}}), number_attribute("value", 0.0));
  });
  expect_refused("aten.slice", [](MethodBuilder& builder, int32_t ids) {
    builder.emit("aten.slice", {ids}, builder.view_of(ids, {constant(1), constant(1)}), integer_attribute("dim", 1),
                 dims_attribute("start", {{1, -1}}), dims_attribute("end", {tokens()}), integer_attribute("step", 1));
  });
}

}  // namespace
}  // namespace mote
