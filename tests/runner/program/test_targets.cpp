#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/runner/program/delegated_programs.h"

namespace mote {
namespace {

using test::add_one_part;
using test::add_plain;
using test::add_two_parts;
using test::choose;
using test::expect_status;
using test::fake;
using test::FakesReset;
using test::logits_of;
using test::one_part;
using test::ProgramBuilder;
using test::tables;
using test::verified;

class Targets : public FakesReset {};

// Targets of one file

// In the file's order: "spare", "fake", "cpu".
ProgramBuilder three_ways() {
  ProgramBuilder builder = tables();
  add_one_part(builder, "spare", "spare");
  add_two_parts(builder, "fake", "third", "fake+third");
  add_plain(builder, 2);
  return builder;
}

void expect_passed_over(const PassedOver& other, const std::string& target, const std::string& reason) {
  EXPECT_EQ(other.target, target);
  EXPECT_NE(other.reason.find(reason), std::string::npos) << other.reason;
}

TEST_F(Targets, are_bound_by_name) {
  for (const std::string name : {"spare", "fake+third", "cpu"}) {
    const auto chosen = choose(three_ways(), name);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen->bound->target(), name);
    EXPECT_EQ(chosen->bound->num_methods(), 3u);
    EXPECT_TRUE(chosen->passed_over.empty());
  }
  EXPECT_EQ(fake("spare").loaded.size(), 1u);
}

TEST_F(Targets, compute_the_same) {
  const std::vector<float> expected = logits_of(choose(three_ways(), "cpu")->bound, {3, 1, 4});
  EXPECT_EQ(logits_of(choose(three_ways(), "fake+third")->bound, {3, 1, 4}), expected);
}

TEST_F(Targets, of_a_file_without_names_are_cpu) {
  const auto chosen = choose(test::sum_model(), "cpu");
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(choose(test::sum_model(), kAnyBackend)->bound->target(), "cpu");
}

TEST_F(Targets, that_the_file_lacks_are_refused_with_those_that_it_has) {
  for (const std::string name : {"npu", "fake", "third+fake", ""}) {
    expect_status(choose(three_ways(), name).status(), Code::kInvalidArgument,
                  "test.mote: has no target " + name + ": it has spare, fake+third, cpu");
  }
}

TEST_F(Targets, that_are_wanted_by_name_are_not_replaced) {
  fake("spare").check_device = Status(Code::kUnsupportedBackend, "no such device");
  expect_status(choose(three_ways(), "spare").status(), Code::kUnsupportedBackend, "spare: no such device");
  fake("fake").why_not = "slow here";
  EXPECT_EQ(choose(three_ways(), "fake+third")->bound->target(), "fake+third");
}

TEST_F(Targets, auto_takes_the_first_of_the_file) {
  const auto chosen = choose(three_ways(), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->target(), "spare");
  ASSERT_EQ(chosen->passed_over.size(), 2u);
  expect_passed_over(chosen->passed_over[0], "fake+third", "the file prefers another");
  expect_passed_over(chosen->passed_over[1], "cpu", "the file prefers another");
  EXPECT_TRUE(fake("fake").loaded.empty());
}

TEST_F(Targets, auto_falls_back_and_says_why) {
  fake("spare").check_device = Status(Code::kUnsupportedBackend, "no such device");
  fake("third").load = Status(Code::kInvalidProgram, "a blob of another version");
  const auto chosen = choose(three_ways(), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->target(), "cpu");
  ASSERT_EQ(chosen->passed_over.size(), 2u);
  expect_passed_over(chosen->passed_over[0], "spare", "spare: no such device");
  expect_passed_over(chosen->passed_over[1], "fake+third", "a blob of another version");
}

TEST_F(Targets, auto_leaves_slow_ones_for_the_end) {
  fake("spare").why_not = "the CPU kernels are faster here";
  fake("third").why_not = "one core only";
  const auto chosen = choose(three_ways(), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->target(), "cpu");
  ASSERT_EQ(chosen->passed_over.size(), 2u);
  expect_passed_over(chosen->passed_over[0], "spare", "the CPU kernels are faster here");
  expect_passed_over(chosen->passed_over[1], "fake+third", "one core only");
  EXPECT_EQ(fake("third").asked, 3u);  // one a method
}

TEST_F(Targets, auto_takes_a_slow_one_where_nothing_else_works) {
  fake("spare").why_not = "the CPU kernels are faster here";
  fake("fake").check_device = Status(Code::kUnsupportedBackend, "no such device");
  ProgramBuilder builder = tables();
  add_one_part(builder, "spare", "spare");
  add_one_part(builder, "fake", "fake");
  const auto chosen = choose(std::move(builder), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->target(), "spare");
  ASSERT_EQ(chosen->passed_over.size(), 1u);
  expect_passed_over(chosen->passed_over[0], "fake", "no such device");
}

// So that one which finds itself slower can leave the file to them.
TEST_F(Targets, auto_tells_a_backend_whether_there_are_others) {
  ASSERT_TRUE(choose(three_ways(), kAnyBackend).ok());
  EXPECT_TRUE(fake("spare").loaded.at(0).is_choice);
  ASSERT_TRUE(choose(three_ways(), "spare").ok());
  EXPECT_FALSE(fake("spare").loaded.at(1).is_choice);
  fake("spare").why_not = "the CPU kernels are faster here";
  fake("fake").check_device = Status(Code::kUnsupportedBackend, "no such device");
  ProgramBuilder builder = tables();
  add_one_part(builder, "spare", "spare");
  add_one_part(builder, "fake", "fake");
  ASSERT_TRUE(choose(std::move(builder), kAnyBackend).ok());
  EXPECT_FALSE(fake("spare").loaded.at(2).is_choice);
}

// Before a target is bound nothing is known of its instructions.
TEST_F(Targets, auto_passes_over_one_whose_instructions_name_no_part) {
  using Dims = std::vector<fb::Dim>;
  const auto number = test::constant(0);
  for (const Dims& dims :
       {Dims{test::constant(99)}, Dims{test::constant(-1)}, Dims{test::tokens()}, Dims{number, number}}) {
    ProgramBuilder builder = three_ways();
    test::delegated(builder).attributes[0]->dims = dims;
    const auto chosen = choose(std::move(builder), kAnyBackend);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen->bound->target(), "fake+third");
    ASSERT_EQ(chosen->passed_over.size(), 2u);
    expect_passed_over(chosen->passed_over[0], "spare", "delegate");
  }
  ProgramBuilder builder = three_ways();
  test::delegated(builder).attributes[0]->dims.clear();
  test::delegated(builder).attributes[0]->text = "0";
  EXPECT_EQ(choose(std::move(builder), kAnyBackend)->bound->target(), "fake+third");
  builder = three_ways();
  test::delegated(builder).attributes.clear();
  const auto chosen = choose(std::move(builder), kAnyBackend);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->bound->target(), "fake+third");
}

TEST_F(Targets, auto_tells_every_reason_when_none_works) {
  fake("fake").check_device = Status(Code::kUnsupportedBackend, "no such device");
  ProgramBuilder builder = tables();
  add_one_part(builder, "npu", "npu");
  add_one_part(builder, "fake", "fake");
  const Status status = choose(std::move(builder), kAnyBackend).status();
  expect_status(status, Code::kUnsupportedBackend, "test.mote: can be run in none of its ways");
  expect_status(status, Code::kUnsupportedBackend, "npu: this build has no such backend");
  expect_status(status, Code::kUnsupportedBackend, "fake: fake: no such device");
  expect_status(status, Code::kUnsupportedBackend, "--backend cpu");
}

TEST_F(Targets, a_choice_of_none_has_every_reason) {
  auto program = verified(one_part("npu"));
  ASSERT_TRUE(program.ok());
  const Chosen chosen = *choose_target(std::make_shared<const Verified>(*std::move(program)));
  EXPECT_EQ(chosen.bound, nullptr);
  ASSERT_EQ(chosen.passed_over.size(), 1u);
  EXPECT_EQ(chosen.passed_over[0].target, "npu");
  EXPECT_NE(chosen.passed_over[0].reason.find("this build has no such backend"), std::string::npos);
}

TEST_F(Targets, that_are_only_described_do_not_run) {
  auto program = verified(three_ways());
  ASSERT_TRUE(program.ok());
  const Chosen chosen =
      *choose_target(std::make_shared<const Verified>(*std::move(program)), {.purpose = Purpose::kDescribe});
  ASSERT_NE(chosen.bound, nullptr);
  EXPECT_EQ(chosen.bound->target(), "spare");
  EXPECT_EQ(chosen.bound->backends()[0].program, nullptr);
  const auto threads = *make_thread_pool(1);
  expect_status(Executor::create(chosen.bound, {}, threads.get()).status(), Code::kInternal, "only to be described");
}

// Others are not tried then.
TEST_F(Targets, choosing_ends_when_loading_one_is_cancelled) {
  std::vector<double> fractions;
  auto program = verified(three_ways());
  ASSERT_TRUE(program.ok());
  const Progress progress = [&](double fraction) {
    fractions.push_back(fraction);
    return fraction >= 0.5 ? Status(Code::kCancelled, "stop") : Status();
  };
  const Status status = bind_target(*std::move(program), kAnyBackend, {.progress = progress}).status();
  expect_status(status, Code::kCancelled, "stop");
  EXPECT_EQ(fractions.back(), 0.5);
  EXPECT_TRUE(fake("spare").loaded.empty());
  EXPECT_TRUE(fake("third").loaded.empty());
}

TEST_F(Targets, auto_of_a_single_one_reports_what_bind_says) {
  const Status status = choose(one_part("npu"), kAnyBackend).status();
  expect_status(status, Code::kUnsupportedBackend, "npu: this build has no such backend");
}

}  // namespace
}  // namespace mote
