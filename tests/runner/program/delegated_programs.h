// The sum model with parts of its methods given to fake backends, in one target or several.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runner/program/delegates.h"
#include "runner/program/target.h"
#include "tests/runner/program/fake_backend.h"
#include "tests/runner/program/sum_session.h"

namespace mote::test {

using Bind = Result<std::shared_ptr<const Bound>>;

inline constexpr int32_t kBias = 2;      // index of the weight that parts add
inline constexpr size_t kDelegated = 1;  // the first instruction that a part runs
inline const std::string kPlace = "test.mote: prefill: instructions[1] (mote.delegate, model.layers.0)";

inline const std::vector<float>& bias() {
  static const std::vector<float> elements = {0.5f, -1.0f, 2.0f, 0.25f};
  return elements;
}

inline ProgramBuilder tables() {
  ProgramBuilder builder = sum_tables();
  builder.dense_weight("bias", fb::DType::float32, {kDim}, bias());
  return builder;
}

inline int32_t rows(MethodBuilder& method) { return method.activation({constant(1), tokens(), constant(kDim)}); }

inline int32_t emit_part(ProgramBuilder& builder, MethodBuilder& method, const std::string& backend,
                         std::vector<int32_t> inputs, float factor, std::vector<int32_t> weights = {}) {
  const int32_t index = builder.delegate(backend, std::move(weights), fake_blob(factor));
  return method.emit(std::string(kDelegateOp), std::move(inputs), rows(method), integer_attribute("delegate", index));
}

// y = 2 x + bias.
inline void add_one_part(ProgramBuilder& builder, const std::string& backend, const std::string& target) {
  add_target(builder, target,
             [&](MethodBuilder& method, int32_t x) { return emit_part(builder, method, backend, {x}, 2.0f, {kBias}); });
}

// y = 2 x + bias; z = 0.5 (y + x).
inline void add_two_parts(ProgramBuilder& builder, const std::string& first, const std::string& second,
                          const std::string& target) {
  add_target(builder, target, [&](MethodBuilder& method, int32_t x) {
    const int32_t y = emit_part(builder, method, first, {x}, 2.0f, {kBias});
    return emit_part(builder, method, second, {y, x}, 0.5f);
  });
}

inline int32_t emit_plain(ProgramBuilder& builder, MethodBuilder& method, int32_t a, int32_t b, int32_t offsets,
                          double factor) {
  const int32_t weight = offsets < 0 ? -1 : method.weight(builder.program, offsets);
  return method.emit("test.scaled_sum", {a, b, weight}, rows(method), number_attribute("factor", factor));
}

// What parts compute, as ops.
inline void add_plain(ProgramBuilder& builder, int num_parts) {
  add_target(builder, "cpu", [&](MethodBuilder& method, int32_t x) {
    const int32_t y = emit_plain(builder, method, x, -1, kBias, 2.0);
    return num_parts == 1 ? y : emit_plain(builder, method, y, x, -1, 0.5);
  });
}

inline ProgramBuilder one_part(const std::string& backend = "fake") {
  ProgramBuilder builder = tables();
  add_one_part(builder, backend, backend);
  return builder;
}

inline ProgramBuilder two_parts(const std::string& first = "fake", const std::string& second = "fake") {
  ProgramBuilder builder = tables();
  add_two_parts(builder, first, second, first == second ? first : first + "+" + second);
  return builder;
}

inline ProgramBuilder plain(int num_parts) {
  ProgramBuilder builder = tables();
  add_plain(builder, num_parts);
  return builder;
}

inline Result<Verified> verified(ProgramBuilder builder) {
  MOTE_ASSIGN(Mapped mapped, map_bytes("test.mote", builder.build()));
  return verify(std::move(mapped));
}

inline Bind load(ProgramBuilder builder) {
  MOTE_ASSIGN(Verified program, verified(std::move(builder)));
  return bind(std::move(program));
}

inline Result<Chosen> choose(ProgramBuilder builder, std::string_view wanted) {
  MOTE_ASSIGN(Verified program, verified(std::move(builder)));
  return bind_target(std::move(program), wanted);
}

inline void expect_status(const Status& status, Code code, const std::string& message) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(message), std::string::npos)
      << "expected: " << message << "\n     got: " << status.message();
}

inline fb::InstructionT& delegated(ProgramBuilder& builder) {
  return *builder.program.methods[kPrefill]->instructions[kDelegated];
}

class FakesReset : public testing::Test {
 protected:
  void SetUp() override { reset_fakes(); }
  void TearDown() override { reset_fakes(); }
};

// Logits of every token, however the ids are divided between calls.
inline std::vector<float> logits_of(const std::shared_ptr<const Bound>& bound, const std::vector<int64_t>& ids) {
  SumSession session(bound, {.max_tokens = 8});
  if (!session.status.ok() || !session.run("verify", ids).ok()) return {};
  std::vector<float> logits = session.logits("verify");
  for (const char* method : {"decode", "prefill"}) {
    EXPECT_TRUE(session.run(method, {ids[0]}).ok());
    const std::vector<float> row = session.logits(method);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

}  // namespace mote::test
