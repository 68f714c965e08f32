#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "runner/program/delegates.h"
#include "runner/program/lowering.h"
#include "tests/runner/program/fake_backend.h"
#include "tests/runner/program/sum_session.h"

namespace mote {
namespace {

using test::constant;
using test::fake;
using test::kDim;
using test::kPrefill;
using test::MethodBuilder;
using test::ProgramBuilder;
using test::tokens;

using Bind = Result<std::shared_ptr<const Bound>>;

constexpr int32_t kBias = 2;  // index of the weight that parts add
constexpr size_t kDelegated = 1;  // the first instruction that a part runs
const std::string kPlace = "test.mote: prefill: instructions[1] (mote.delegate, model.layers.0)";

const std::vector<float>& bias() {
  static const std::vector<float> elements = {0.5f, -1.0f, 2.0f, 0.25f};
  return elements;
}

ProgramBuilder tables() {
  ProgramBuilder builder = test::sum_tables();
  builder.dense_weight("bias", fb::DType::float32, {kDim}, bias());
  return builder;
}

int32_t rows(MethodBuilder& method) { return method.activation({constant(1), tokens(), constant(kDim)}); }

int32_t emit_part(ProgramBuilder& builder, MethodBuilder& method, const std::string& backend, std::vector<int32_t> inputs, float factor,
                  std::vector<int32_t> weights = {}) {
  const int32_t index = builder.delegate(backend, std::move(weights), test::fake_blob(factor));
  return method.emit(std::string(kDelegateOp), std::move(inputs), rows(method), test::integer_attribute("delegate", index));
}

// y = 2 x + bias.
void add_one_part(ProgramBuilder& builder, const std::string& backend, const std::string& lowering) {
  test::add_lowering(builder, lowering, [&](MethodBuilder& method, int32_t x) {
    return emit_part(builder, method, backend, {x}, 2.0f, {kBias});
  });
}

// y = 2 x + bias; z = 0.5 (y + x).
void add_two_parts(ProgramBuilder& builder, const std::string& first, const std::string& second, const std::string& lowering) {
  test::add_lowering(builder, lowering, [&](MethodBuilder& method, int32_t x) {
    const int32_t y = emit_part(builder, method, first, {x}, 2.0f, {kBias});
    return emit_part(builder, method, second, {y, x}, 0.5f);
  });
}

int32_t emit_plain(ProgramBuilder& builder, MethodBuilder& method, int32_t a, int32_t b, int32_t offsets, double factor) {
  const int32_t weight = offsets < 0 ? -1 : method.weight(builder.program, offsets);
  return method.emit("test.scaled_sum", {a, b, weight}, rows(method), test::number_attribute("factor", factor));
}

// What parts compute, as ops.
void add_plain(ProgramBuilder& builder, int num_parts) {
  test::add_lowering(builder, "cpu", [&](MethodBuilder& method, int32_t x) {
    const int32_t y = emit_plain(builder, method, x, -1, kBias, 2.0);
    return num_parts == 1 ? y : emit_plain(builder, method, y, x, -1, 0.5);
  });
}

ProgramBuilder one_part(const std::string& backend = "fake") {
  ProgramBuilder builder = tables();
  add_one_part(builder, backend, backend);
  return builder;
}

ProgramBuilder two_parts(const std::string& first = "fake", const std::string& second = "fake") {
  ProgramBuilder builder = tables();
  add_two_parts(builder, first, second, first == second ? first : first + "+" + second);
  return builder;
}

ProgramBuilder plain(int num_parts) {
  ProgramBuilder builder = tables();
  add_plain(builder, num_parts);
  return builder;
}

Result<Verified> verified(ProgramBuilder builder) {
  MOTE_ASSIGN(Mapped mapped, map_bytes("test.mote", builder.build()));
  return verify(std::move(mapped));
}

Bind load(ProgramBuilder builder) {
  MOTE_ASSIGN(Verified program, verified(std::move(builder)));
  return bind(std::move(program));
}

Result<Chosen> choose(ProgramBuilder builder, std::string_view wanted) {
  MOTE_ASSIGN(Verified program, verified(std::move(builder)));
  return bind_lowering(std::move(program), wanted);
}

void expect_status(const Status& status, Code code, const std::string& message) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(message), std::string::npos) << "expected: " << message << "\n     got: " << status.message();
}

fb::InstructionT& delegated(ProgramBuilder& builder) { return *builder.program.methods[kPrefill]->instructions[kDelegated]; }

class Delegates : public testing::Test {
 protected:
  void SetUp() override { test::reset_fakes(); }
  void TearDown() override { test::reset_fakes(); }
};

class Lowerings : public Delegates {};

// Logits of every token, however the ids are divided between calls.
std::vector<float> logits_of(const std::shared_ptr<const Bound>& bound, const std::vector<int64_t>& ids) {
  test::SumSession session(bound, {.max_tokens = 8});
  if (!session.status.ok() || !session.run("verify", ids).ok()) return {};
  std::vector<float> logits = session.logits("verify");
  for (const char* method : {"decode", "prefill"}) {
    EXPECT_TRUE(session.run(method, {ids[0]}).ok());
    const std::vector<float> row = session.logits(method);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

TEST_F(Delegates, compute_what_ops_do) {
  for (const int num_parts : {1, 2}) {
    const auto ops = load(plain(num_parts));
    const auto parts = load(num_parts == 1 ? one_part() : two_parts());
    ASSERT_TRUE(ops.ok() && parts.ok()) << ops.status().message() << parts.status().message();
    for (const size_t count : {1, 2, 7}) {
      std::vector<int64_t> ids = {3, 1, 4, 1, 5, 9, 2};
      ids.resize(count);
      const std::vector<float> expected = logits_of(*ops, ids);
      ASSERT_EQ(expected.size(), (count + 2) * static_cast<size_t>(test::kVocabSize));
      EXPECT_EQ(logits_of(*parts, ids), expected) << num_parts << " parts, T = " << count;
    }
  }
}

TEST_F(Delegates, of_several_backends_run_in_one_method) {
  const auto parts = load(two_parts("fake", "spare"));
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  ASSERT_EQ((*parts)->backends().size(), 2u);
  EXPECT_EQ(logits_of(*parts, {3, 1, 4}), logits_of(*load(plain(2)), {3, 1, 4}));
  EXPECT_EQ(fake("fake").loaded.at(0).parts.size(), 3u);
  EXPECT_EQ(fake("spare").loaded.at(0).parts.size(), 3u);
}

TEST_F(Delegates, have_a_session_each_and_are_loaded_once) {
  const auto bound = load(two_parts());
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  test::SumSession first(bound, {.max_tokens = 8});
  test::SumSession second(bound, {.max_tokens = 4});
  ASSERT_TRUE(first.status.ok() && second.status.ok());
  ASSERT_TRUE(first.run("verify", {3, 1, 4}).ok());
  ASSERT_TRUE(second.run("verify", {5, 9}).ok());
  EXPECT_EQ(first.logits("verify"), [&] {
    test::SumSession ops(load(plain(2)), {.max_tokens = 8});
    EXPECT_TRUE(ops.run("verify", {3, 1, 4}).ok());
    return ops.logits("verify");
  }());
  EXPECT_EQ(fake("fake").loaded.size(), 1u);
  EXPECT_EQ(fake("fake").num_opened, 2);
}

TEST_F(Delegates, are_given_the_parts_in_order_with_the_bytes_of_the_file) {
  const auto bound = load(two_parts());
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const DelegateSource& source = fake("fake").loaded.at(0);
  EXPECT_EQ(source.path, "");  // it is in memory
  EXPECT_EQ(source.program_crc32, crc32((*bound)->file().program_bytes()));
  ASSERT_EQ(source.parts.size(), 6u);
  for (uint32_t i = 0; i < 6; ++i) {
    const DelegatePart& part = source.parts[i];
    EXPECT_EQ(part.place, "test.mote: delegates[" + std::to_string(i) + "] (fake)");
    EXPECT_EQ(part.blob.data(), (*bound)->verified().delegate(i).data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part.blob.data()) % 64, 0u);
    const test::Bytes expected = test::fake_blob(i % 2 == 0 ? 2.0f : 0.5f);
    EXPECT_TRUE(std::ranges::equal(part.blob, expected));
    EXPECT_EQ(part.weights.size(), i % 2 == 0 ? 1u : 0u);
  }
}

TEST_F(Delegates, are_given_weights_as_kernels_get_them) {
  const auto bound = load(one_part());
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const DelegateWeight& weight = fake("fake").loaded.at(0).parts.at(0).weights.at(0);
  EXPECT_EQ(weight.index, static_cast<uint32_t>(kBias));
  EXPECT_EQ(weight.name, "bias");
  EXPECT_EQ(weight.tensor.data, static_cast<const void*>((*bound)->verified().weight(kBias).data()));
  ASSERT_EQ(weight.tensor.num_elements(), kDim);
  EXPECT_TRUE(std::equal(bias().begin(), bias().end(), weight.tensor.as<float>()));
}

TEST_F(Delegates, run_the_part_that_the_instruction_names) {
  ProgramBuilder builder = two_parts();
  delegated(builder).attributes[0]->dims = {constant(1)};
  builder.program.methods[kPrefill]->instructions[2]->attributes[0]->dims = {constant(0)};
  const auto bound = load(std::move(builder));
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(fake("fake").loaded.at(0).parts.at(0).place, "test.mote: delegates[1] (fake)");
  test::SumSession session(bound, {.max_tokens = 8});
  ASSERT_TRUE(session.run("prefill", {1, 2}).ok());
  ASSERT_TRUE(session.run("decode", {1}).ok());
  EXPECT_EQ(fake("fake").executed, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST_F(Delegates, that_no_instruction_of_the_lowering_runs_are_not_loaded) {
  ProgramBuilder builder = plain(1);
  add_one_part(builder, "fake", "fake");
  const auto bound = load(std::move(builder));
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_TRUE((*bound)->backends().empty());
  EXPECT_TRUE(fake("fake").loaded.empty());
}

TEST_F(Delegates, have_the_scratch_that_they_ask_for) {
  fake("fake").scratch_bytes = 1000;
  const auto bound = load(two_parts());
  test::SumSession session(bound, {.max_tokens = 8});
  ASSERT_TRUE(session.status.ok()) << session.status.message();
  EXPECT_GE(session.executor().scratch_bytes(), 1000u);
  ASSERT_TRUE(session.run("verify", {1, 2, 3}).ok());
  fake("fake").scratch_bytes = 5000;  // a part may need more for another T
  ASSERT_TRUE(session.run("verify", {1, 2}).ok());
  EXPECT_EQ(fake("fake").num_bad_scratch, 0);
  EXPECT_EQ(fake("fake").executed.size(), 4u);
}

TEST_F(Delegates, that_ask_for_too_much_scratch_are_refused) {
  fake("fake").scratch_bytes = size_t{1} << 60;
  test::SumSession session(load(one_part()), {.max_tokens = 8});
  expect_status(session.status, Code::kOutOfMemory, "test.mote: working memory of the kernels needs 1152921504606846976 bytes");
}

TEST_F(Delegates, report_the_memory_that_they_hold) {
  fake("fake").held_bytes = 1000;
  fake("spare").held_bytes = 234;
  test::SumSession session(load(two_parts("fake", "spare")), {.max_tokens = 8});
  ASSERT_TRUE(session.status.ok()) << session.status.message();
  EXPECT_EQ(session.executor().delegate_bytes(), 1234u);
}

// Refusals of bind

TEST_F(Delegates, refuse_an_index_beyond_the_table) {
  ProgramBuilder builder = one_part();
  delegated(builder).attributes[0]->dims = {constant(3)};
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram, kPlace + ": delegate = 3: the file has 3 delegates");
}

TEST_F(Delegates, refuse_an_index_where_the_file_has_none) {
  ProgramBuilder builder = one_part();
  builder.program.delegates.clear();
  builder.delegates.clear();
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram, kPlace + ": delegate = 0: the file has 0 delegates");
}

TEST_F(Delegates, refuse_a_negative_index) {
  ProgramBuilder builder = one_part();
  delegated(builder).attributes[0]->dims = {constant(-1)};
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram,
                kPlace + " for T = 1: delegate = -1: must be an index into delegates");
}

TEST_F(Delegates, refuse_an_index_that_depends_on_tokens) {
  ProgramBuilder builder = one_part();
  delegated(builder).attributes[0]->dims = {tokens()};
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram, kPlace + ": delegate: must not depend on T");
}

TEST_F(Delegates, refuse_an_instruction_without_one_index) {
  ProgramBuilder builder = one_part();
  delegated(builder).attributes[0]->dims = {constant(0), constant(1)};
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram, "delegate");
  builder = one_part();
  delegated(builder).attributes.clear();
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram, "delegate");
}

TEST_F(Delegates, refuse_a_part_that_two_instructions_run) {
  ProgramBuilder builder = two_parts();
  delegated(builder).attributes[0]->dims = {constant(1)};
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram,
                "instructions[2] (mote.delegate, model.layers.0): delegate = 1: another instruction runs it");
}

TEST_F(Delegates, refuse_a_strided_view_as_input) {
  ProgramBuilder builder = tables();
  test::add_lowering(builder, "fake", [&](MethodBuilder& method, int32_t x) {
    const int32_t turned = method.emit("test.transpose", {x}, method.view_of(x, {constant(1), constant(kDim), tokens()}));
    return emit_part(builder, method, "fake", {turned}, 2.0f);
  });
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram, "inputs[0]: must be a contiguous activation");
}

TEST_F(Delegates, refuse_an_input_that_is_absent) {
  ProgramBuilder builder = one_part();
  delegated(builder).inputs.push_back(-1);
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram,
                kPlace + " for T = 1: inputs[1]: must be a contiguous activation");
}

TEST_F(Delegates, of_an_unknown_backend_are_refused) {
  expect_status(load(one_part("npu")).status(), Code::kUnsupportedBackend,
                "test.mote: npu: this build has no such backend: it has cpu, fake, spare, third");
}

TEST_F(Delegates, of_a_backend_that_the_device_lacks_are_refused) {
  fake("fake").check_device = Status(Code::kUnsupportedBackend, "the driver is too old: install version 3");
  expect_status(load(one_part()).status(), Code::kUnsupportedBackend, "fake: the driver is too old: install version 3");
  EXPECT_TRUE(fake("fake").loaded.empty());
}

TEST_F(Delegates, that_do_not_load_are_refused) {
  ProgramBuilder builder = one_part();
  builder.program.delegates[1]->bytes = 3;
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram,
                "test.mote: delegates[1] (fake): the blob has 3 bytes: must be 4");
  fake("fake").load = Status(Code::kOutOfMemory, "no memory for the parts");
  expect_status(load(one_part()).status(), Code::kOutOfMemory, "no memory for the parts");
}

// Refusals of a session

TEST_F(Delegates, that_do_not_open_end_the_session) {
  fake("fake").open = Status(Code::kOutOfMemory, "the device has no memory");
  test::SumSession session(load(one_part()), {.max_tokens = 8});
  expect_status(session.status, Code::kOutOfMemory, "the device has no memory");
}

TEST_F(Delegates, refuse_sizes_that_the_part_does_not_take) {
  ProgramBuilder builder = one_part();
  delegated(builder).inputs = builder.program.methods[kPrefill]->inputs;
  test::SumSession session(load(std::move(builder)), {.max_tokens = 8});
  expect_status(session.status, Code::kInvalidProgram, kPlace + ": inputs[0]: must be float32 with the sizes of the output");
}

TEST_F(Delegates, that_could_not_be_prepared_do_not_run) {
  test::SumSession session(load(one_part()), {.max_tokens = 8});
  ASSERT_TRUE(session.run("prefill", {1, 2}).ok());
  fake("fake").prepare = Status(Code::kOutOfMemory, "no memory for 3 tokens");
  expect_status(session.run("prefill", {1, 2, 3}), Code::kOutOfMemory, kPlace + ": no memory for 3 tokens");
  EXPECT_EQ(session.executor().run(session.index("prefill"), {}, test::cancel_flag).code(), Code::kInvalidArgument);
  test::reset_fakes();
  EXPECT_TRUE(session.run("prefill", {1, 2, 3}).ok());
}

TEST_F(Delegates, that_fail_are_reported_with_their_place) {
  test::SumSession session(load(one_part()), {.max_tokens = 8});
  fake("fake").execute = Status(Code::kInternal, "the device was lost");
  const Status status = session.run("prefill", {1, 2});
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), kPlace + ": the device was lost");
  test::reset_fakes();
  EXPECT_TRUE(session.run("prefill", {1, 2}).ok());
}

// Lowerings of one file

// In the file's order: "spare", "fake", "cpu".
ProgramBuilder three_ways() {
  ProgramBuilder builder = tables();
  add_one_part(builder, "spare", "spare");
  add_two_parts(builder, "fake", "third", "fake+third");
  add_plain(builder, 2);
  return builder;
}

void expect_passed_over(const PassedOver& other, const std::string& lowering, const std::string& reason) {
  EXPECT_EQ(other.lowering, lowering);
  EXPECT_NE(other.reason.find(reason), std::string::npos) << other.reason;
}

TEST_F(Lowerings, are_bound_by_name) {
  for (const std::string name : {"spare", "fake+third", "cpu"}) {
    const auto chosen = choose(three_ways(), name);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen->bound->lowering(), name);
    EXPECT_EQ(chosen->bound->num_methods(), 3u);
    EXPECT_TRUE(chosen->passed_over.empty());
  }
  EXPECT_EQ(fake("spare").loaded.size(), 1u);
}

TEST_F(Lowerings, compute_the_same) {
  const std::vector<float> expected = logits_of(choose(three_ways(), "cpu")->bound, {3, 1, 4});
  EXPECT_EQ(logits_of(choose(three_ways(), "fake+third")->bound, {3, 1, 4}), expected);
}

TEST_F(Lowerings, of_a_file_without_names_are_cpu) {
  const auto chosen = choose(test::sum_model(), "cpu");
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(choose(test::sum_model(), kAnyBackend)->bound->lowering(), "cpu");
}

TEST_F(Lowerings, that_the_file_lacks_are_refused_with_those_that_it_has) {
  for (const std::string name : {"npu", "fake", "third+fake", ""}) {
    expect_status(choose(three_ways(), name).status(), Code::kInvalidArgument,
                  "test.mote: has no lowering " + name + ": it has spare, fake+third, cpu");
  }
}

TEST_F(Lowerings, that_are_wanted_by_name_are_not_replaced) {
  fake("spare").check_device = Status(Code::kUnsupportedBackend, "no such device");
  expect_status(choose(three_ways(), "spare").status(), Code::kUnsupportedBackend, "spare: no such device");
  fake("fake").why_not = "slow here";
  EXPECT_EQ(choose(three_ways(), "fake+third")->bound->lowering(), "fake+third");
}

TEST_F(Lowerings, auto_takes_the_first_of_the_file) {
  const auto chosen = choose(three_ways(), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->lowering(), "spare");
  ASSERT_EQ(chosen->passed_over.size(), 2u);
  expect_passed_over(chosen->passed_over[0], "fake+third", "the file prefers another");
  expect_passed_over(chosen->passed_over[1], "cpu", "the file prefers another");
  EXPECT_TRUE(fake("fake").loaded.empty());
}

TEST_F(Lowerings, auto_falls_back_and_says_why) {
  fake("spare").check_device = Status(Code::kUnsupportedBackend, "no such device");
  fake("third").load = Status(Code::kInvalidProgram, "a blob of another version");
  const auto chosen = choose(three_ways(), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->lowering(), "cpu");
  ASSERT_EQ(chosen->passed_over.size(), 2u);
  expect_passed_over(chosen->passed_over[0], "spare", "spare: no such device");
  expect_passed_over(chosen->passed_over[1], "fake+third", "a blob of another version");
}

TEST_F(Lowerings, auto_leaves_slow_ones_for_the_end) {
  fake("spare").why_not = "the CPU kernels are faster here";
  fake("third").why_not = "one core only";
  const auto chosen = choose(three_ways(), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->lowering(), "cpu");
  ASSERT_EQ(chosen->passed_over.size(), 2u);
  expect_passed_over(chosen->passed_over[0], "spare", "the CPU kernels are faster here");
  expect_passed_over(chosen->passed_over[1], "fake+third", "one core only");
}

TEST_F(Lowerings, auto_takes_a_slow_one_where_nothing_else_works) {
  fake("spare").why_not = "the CPU kernels are faster here";
  fake("fake").check_device = Status(Code::kUnsupportedBackend, "no such device");
  ProgramBuilder builder = tables();
  add_one_part(builder, "spare", "spare");
  add_one_part(builder, "fake", "fake");
  const auto chosen = choose(std::move(builder), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->lowering(), "spare");
  ASSERT_EQ(chosen->passed_over.size(), 1u);
  expect_passed_over(chosen->passed_over[0], "fake", "no such device");
}

TEST_F(Lowerings, auto_tells_every_reason_when_none_works) {
  fake("fake").check_device = Status(Code::kUnsupportedBackend, "no such device");
  ProgramBuilder builder = tables();
  add_one_part(builder, "npu", "npu");
  add_one_part(builder, "fake", "fake");
  const Status status = choose(std::move(builder), kAnyBackend).status();
  expect_status(status, Code::kUnsupportedBackend, "test.mote: can be run in none of its ways");
  expect_status(status, Code::kUnsupportedBackend, "npu: this build has no such backend");
  expect_status(status, Code::kUnsupportedBackend, "fake: test.mote: fake: no such device");
  expect_status(status, Code::kUnsupportedBackend, "--backend cpu");
}

TEST_F(Lowerings, a_choice_of_none_has_every_reason) {
  auto program = verified(one_part("npu"));
  ASSERT_TRUE(program.ok());
  const Chosen chosen = choose_lowering(std::make_shared<const Verified>(*std::move(program)));
  EXPECT_EQ(chosen.bound, nullptr);
  ASSERT_EQ(chosen.passed_over.size(), 1u);
  EXPECT_EQ(chosen.passed_over[0].lowering, "npu");
  EXPECT_NE(chosen.passed_over[0].reason.find("this build has no such backend"), std::string::npos);
}

TEST_F(Lowerings, auto_of_a_single_one_reports_what_bind_says) {
  const Status status = choose(one_part("npu"), kAnyBackend).status();
  expect_status(status, Code::kUnsupportedBackend, "npu: this build has no such backend");
}

}  // namespace
}  // namespace mote
