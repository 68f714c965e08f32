#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/runner/program/delegated_programs.h"

namespace mote {
namespace {

using test::add_one_part;
using test::bias;
using test::constant;
using test::delegated;
using test::emit_part;
using test::expect_status;
using test::fake;
using test::FakesReset;
using test::kBias;
using test::kDim;
using test::kPlace;
using test::kPrefill;
using test::load;
using test::logits_of;
using test::MethodBuilder;
using test::one_part;
using test::plain;
using test::ProgramBuilder;
using test::tables;
using test::tokens;
using test::two_parts;

class Delegates : public FakesReset {};

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

TEST(CachePrefix, is_beside_a_file_or_in_a_folder_and_else_nowhere) {
  ::unsetenv("MOTE_CACHE_DIR");
  EXPECT_EQ(cache_prefix("a/m.mote", true, "", 0x12), "a/m.mote");
  EXPECT_EQ(cache_prefix("a/m.mote", true, "b", 0x12), "b/m.mote-00000012");
  EXPECT_EQ(cache_prefix("m.mote", false, "", 0x12), "");
  EXPECT_EQ(cache_prefix("assets/m.mote", false, "b", 0x12), "b/m.mote-00000012");
  EXPECT_EQ(cache_prefix("a/..", false, "b", 0x12), "b/..-00000012");
  ::setenv("MOTE_CACHE_DIR", "c", 1);
  EXPECT_EQ(cache_prefix("m.mote", true, "", 0x12), "c/m.mote-00000012");
  EXPECT_EQ(cache_prefix("m.mote", false, "", 0x12), "c/m.mote-00000012");
  EXPECT_EQ(cache_prefix("m.mote", true, "b", 0x12), "b/m.mote-00000012");
  ::unsetenv("MOTE_CACHE_DIR");
}

TEST_F(Delegates, are_given_the_parts_in_order_with_the_bytes_of_the_file) {
  const auto bound = load(two_parts());
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const DelegateSource& source = fake("fake").loaded.at(0);
  EXPECT_EQ(source.cache_prefix, "");  // it is in memory
  EXPECT_EQ(source.file_bytes, (*bound)->file().file_bytes().size());
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

TEST_F(Delegates, that_no_instruction_of_the_target_runs_are_not_loaded) {
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
  expect_status(session.status, Code::kOutOfMemory,
                "test.mote: working memory of the kernels needs 1152921504606846976 bytes");
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
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram,
                kPlace + ": delegate = 3: the file has 3 delegates");
}

TEST_F(Delegates, refuse_an_index_where_the_file_has_none) {
  ProgramBuilder builder = one_part();
  builder.program.delegates.clear();
  builder.delegates.clear();
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram,
                kPlace + ": delegate = 0: the file has 0 delegates");
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
  test::add_target(builder, "fake", [&](MethodBuilder& method, int32_t x) {
    const int32_t turned =
        method.emit("test.transpose", {x}, method.view_of(x, {constant(1), constant(kDim), tokens()}));
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
  expect_status(session.status, Code::kInvalidProgram,
                kPlace + ": inputs[0]: must be float32 with the sizes of the output");
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

// States

TEST_F(Delegates, hand_their_state_on) {
  fake("fake").has_state = true;
  const auto bound = *load(two_parts("fake", "third"));
  EXPECT_TRUE(bound->has_delegate_state());
  EXPECT_TRUE(bound->uses_state(0));
  const auto open = [&] { return *mote::Delegates::open(bound->backends(), {}); };
  mote::Delegates first = open(), second = open();
  EXPECT_TRUE(first.seek(7));
  const auto snapshots = *first.snapshot();
  ASSERT_EQ(snapshots.size(), 1u);
  EXPECT_EQ(snapshots[0].backend, "fake");
  EXPECT_TRUE(*second.restore(snapshots));
  const test::Bytes bytes = *(*second.snapshot())[0].snapshot->to_bytes();
  EXPECT_EQ(bytes, *snapshots[0].snapshot->to_bytes());
  const auto imported = second.import("fake", bytes);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(*imported->snapshot->to_bytes(), bytes);
}

TEST_F(Delegates, refuse_states_that_are_not_theirs) {
  fake("fake").has_state = true;
  const auto bound = *load(two_parts("fake", "third"));
  mote::Delegates delegates = *mote::Delegates::open(bound->backends(), {});
  EXPECT_FALSE(*delegates.restore({}));
  expect_status(delegates.import("third", test::Bytes(8)).status(), Code::kInvalidSession,
                "no delegate of this session");
  expect_status(delegates.import("fake", test::Bytes(7)).status(), Code::kInvalidSession,
                "a state of 7 bytes: must be 8");
  fake("fake").can_seek = false;
  EXPECT_FALSE(delegates.seek(3));
  EXPECT_TRUE(delegates.seek(0));
}

TEST_F(Delegates, keep_a_state_in_all_methods_or_in_none) {
  ProgramBuilder builder = one_part();
  fb::InstructionT& sum = *builder.program.methods[test::kDecode]->instructions.at(2);
  ASSERT_EQ(sum.op, "test.running_sum");
  sum.op = "test.cancel";
  sum.attributes.clear();
  expect_status(load(std::move(builder)).status(), Code::kInvalidProgram,
                "test.mote: states[0]: the kernels use it in prefill or in decode");
}

}  // namespace
}  // namespace mote
