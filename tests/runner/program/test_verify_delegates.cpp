#include <algorithm>

#include <gtest/gtest.h>

#include "tests/runner/program/refusal.h"

namespace mote {
namespace {

using test::Edit;
using test::expect_refused;
using test::kDecode;
using test::kPrefill;
using test::kVerify;
using test::refusal;

// sum_model with two blobs of 4 and 8 bytes: the second starts at byte 64.
test::ProgramBuilder with_delegates() {
  test::ProgramBuilder builder = test::sum_model();
  builder.delegate("fake", {0, 1}, test::Bytes(4));
  builder.delegate("fake", {}, test::Bytes(8));
  return builder;
}

TEST(VerifyDelegates, accepts_delegates) {
  EXPECT_EQ(refusal([](auto&) {}, with_delegates()), "");
  EXPECT_EQ(refusal([](auto& p) { p.delegates[1]->bytes = 0; }, with_delegates()), "");
}
TEST(VerifyDelegates, rejects_a_weight_of_a_delegate_that_does_not_exist) {
  expect_refused([](auto& p) { p.delegates[0]->weights[1] = 2; }, "delegates[0].weights[1] = 2: must be 0..1",
                 with_delegates());
  expect_refused([](auto& p) { p.delegates[0]->weights[0] = -1; }, "delegates[0].weights[0] = -1: must be 0..1",
                 with_delegates());
}
TEST(VerifyDelegates, rejects_a_delegate_that_is_not_aligned) {
  expect_refused([](auto& p) { p.delegates[1]->offset = 32; },
                 "delegates[1] = 32 + 8 bytes: must start at a multiple of 64", with_delegates());
}
TEST(VerifyDelegates, rejects_a_delegate_outside_of_its_segment) {
  expect_refused(
      [](auto& p) { p.delegates[1]->bytes = 9; },
      "delegates[1] = 64 + 9 bytes: must start at a multiple of 64 and lie in the delegates segment (72 bytes)",
      with_delegates());
  expect_refused([](auto& p) { p.delegates[1]->bytes = UINT64_MAX; }, "delegates[1] = 64 + 18446744073709551615 bytes",
                 with_delegates());
  expect_refused([](auto& p) { p.delegates[1]->offset = UINT64_MAX - 63; },
                 "delegates[1] = 18446744073709551552 + 8 bytes", with_delegates());
}
TEST(VerifyDelegates, rejects_delegates_without_a_segment) {
  expect_refused(
      [](auto& p) {
        p.delegates.push_back(std::make_unique<fb::DelegateT>());
        p.delegates[0]->bytes = 1;
      },
      "delegates[0] = 0 + 1 bytes: must start at a multiple of 64 and lie in the delegates segment (0 bytes)");
}
TEST(VerifyDelegates, rejects_blobs_that_share_bytes) {
  expect_refused(
      [](auto& p) {
        for (auto& delegate : p.delegates) *delegate = fb::DelegateT(*p.delegates[0]);
        for (auto& delegate : p.delegates) delegate->bytes = 40;
      },
      "delegates have 80 bytes together: must have at most those of their segment (72 bytes)", with_delegates());
}
TEST(VerifyDelegates, rejects_a_backend_name_that_is_too_long) {
  expect_refused([](auto& p) { p.delegates[0]->backend.assign(257, 'x'); }, "delegates[0].backend", with_delegates());
}
TEST(VerifyDelegates, accepts_ops_with_their_counts) {
  EXPECT_EQ(refusal(
                [](auto& p) {
                  p.delegates[0]->ops = {"aten.add", "mote.linear"};
                  p.delegates[0]->op_counts = {1, INT32_MAX};
                },
                with_delegates()),
            "");
}
TEST(VerifyDelegates, rejects_ops_and_counts_of_different_number) {
  expect_refused([](auto& p) { p.delegates[0]->ops = {"aten.add"}; }, "delegates[0].op_counts.size = 0: must be 1..1",
                 with_delegates());
  expect_refused([](auto& p) { p.delegates[1]->op_counts = {3}; }, "delegates[1].op_counts.size = 1: must be 0..0",
                 with_delegates());
}
TEST(VerifyDelegates, rejects_ops_that_are_no_names_or_that_nothing_was_made_of) {
  const auto with = [](std::string op, int32_t count) -> Edit {
    return [=](auto& p) {
      p.delegates[0]->ops = {op};
      p.delegates[0]->op_counts = {count};
    };
  };
  expect_refused(with(std::string(257, 'x'), 1), "delegates[0].ops[0] has 257 bytes: must have at most 256",
                 with_delegates());
  expect_refused(with("\xff", 1), "delegates[0].ops[0] is not UTF-8", with_delegates());
  expect_refused(with("aten.add", 0), "delegates[0].op_counts[0] = 0: must be 1..2147483647", with_delegates());
  expect_refused(with("aten.add", -1), "delegates[0].op_counts[0] = -1: must be 1..2147483647", with_delegates());
}
TEST(VerifyDelegates, rejects_a_method_twice_in_one_target) {
  const Edit add = [](auto& p) { p.methods.push_back(std::make_unique<fb::MethodT>(*p.methods[kDecode])); };
  expect_refused(add, "methods[3] name = decode: is the name of another method");
  expect_refused(
      [&](auto& p) {
        add(p);
        p.methods[3]->target = "cpu";
      },
      "methods[3] name = decode: is the name of another method");
}
// Adds verify once more, for calls of `length` tokens only, after the first has become one of 4.
Edit with_lengths(int32_t length) {
  return [=](auto& p) {
    p.methods[kVerify]->min_tokens = p.methods[kVerify]->max_tokens = 4;
    p.methods.push_back(std::make_unique<fb::MethodT>(*p.methods[kVerify]));
    p.methods[3]->min_tokens = p.methods[3]->max_tokens = length;
  };
}
TEST(VerifyDelegates, accepts_methods_of_one_name_for_calls_of_different_lengths) {
  EXPECT_EQ(refusal(with_lengths(16)), "");
}
TEST(VerifyDelegates, rejects_methods_of_one_name_and_length) {
  expect_refused(with_lengths(4), "methods[3] name = verify: is the name of another method");
  expect_refused(
      [](auto& p) {
        with_lengths(16)(p);
        p.methods[3]->max_tokens = 17;
      },
      "methods[3] name = verify: is the name of another method");
}
TEST(VerifyDelegates, rejects_other_ranges_than_any_length_and_one) {
  expect_refused([](auto& p) { p.methods[kVerify]->min_tokens = 2; },
                 "methods[2].min_tokens = 2: must be 1, or max_tokens where calls have one length");
  expect_refused([](auto& p) { p.methods[kDecode]->min_tokens = p.methods[kDecode]->max_tokens = 2; },
                 "methods[1].min_tokens = 2: must be 1");
}
TEST(VerifyDelegates, rejects_a_target_without_a_name) {
  test::ProgramBuilder builder = test::sum_model();
  test::Bytes file = builder.build();
  builder.program.methods[kDecode]->target = "~";
  test::Bytes program = test::pack(builder.program);
  // The packer leaves empty texts out.
  const std::string named("\1\0\0\0~", 5);
  const auto equal = [](std::byte a, char b) { return a == static_cast<std::byte>(b); };
  const auto found = std::search(program.begin(), program.end(), named.begin(), named.end(), equal);
  ASSERT_NE(found, program.end());
  std::fill_n(found, named.size(), std::byte{0});
  ASSERT_TRUE(test::replace_program(file, program, builder.program.segments[0]->offset));
  const std::string got = test::refusal_of(file);
  EXPECT_NE(got.find("test.mote: methods[1].target is empty: must be \"cpu\""), std::string::npos) << got;
}
TEST(VerifyDelegates, rejects_a_target_that_lacks_a_method) {
  expect_refused([](auto& p) { p.methods[kDecode]->target = "fake"; },
                 "methods: must have one named decode with the target cpu");
  expect_refused(
      [](auto& p) {
        for (const size_t method : {kPrefill, kVerify}) {
          p.methods.push_back(std::make_unique<fb::MethodT>(*p.methods[method]));
          p.methods.back()->target = "fake";
        }
      },
      "methods: must have one named decode with the target fake");
}
TEST(VerifyDelegates, accepts_methods_of_one_name_in_two_targets) {
  test::ProgramBuilder builder = test::sum_model();
  test::add_target(builder, "fake", [](test::MethodBuilder&, int32_t x) { return x; });
  EXPECT_EQ(refusal([](auto&) {}, std::move(builder)), "");
}

}  // namespace
}  // namespace mote
