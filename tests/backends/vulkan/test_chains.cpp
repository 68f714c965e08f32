// Which dispatches become steps of one, and which of its workgroups do them.
#include <gtest/gtest.h>

#include "backends/vulkan/planner.h"

namespace mote::vulkan::test {
namespace {

constexpr size_t kWords = 48, kFirst = 9, kCount = 10;  // of a step: chain.comp
constexpr int64_t kNeg = 1;

// Values of a megabyte, each in a slot of its own but for the last two, which share one.
Graph graph_of(size_t num_values) {
  Graph graph;
  for (size_t i = 0; i < num_values; ++i) {
    graph.values.push_back({.bytes = {0, 1 << 20}, .slot = static_cast<uint32_t>(std::min(i, num_values - 2))});
  }
  return graph;
}

// `count` elements of one value to those of another, both in order.
Dispatch map(uint32_t from, uint32_t to, uint32_t count, uint32_t offset = 0) {
  Dispatch made{.shader = Shader::map, .constants = {word(kNeg)}, .groups = spread(ceil_div(count, kLanes))};
  made.bindings = {{Bind::value, from}, {}, {}, {Bind::value, to}};
  made.writes = 0b1000;
  made.push = {1, 1, 1, count, offset, 0, 0, 0, 1, offset, 0, 0, 0, 1};
  made.push.resize(26);
  return made;
}

Dispatch reduce(uint32_t from, uint32_t to) {
  Dispatch made{.shader = Shader::reduce, .constants = {64, 0}, .bindings = {{Bind::value, from}, {Bind::value, to}}};
  made.writes = 0b10;
  made.push = {64, 1, 1, 0, 0, 0, 1};
  return made;
}

Dispatch product(uint32_t from, uint32_t to) {
  Dispatch made{.shader = Shader::product, .bindings = {{Bind::value, from}, {Bind::value, to}}};
  made.writes = 0b10;
  return made;
}

// Codes of a row of 64 columns, in three values from `to` on.
Dispatch quantize(uint32_t from, uint32_t to) {
  Dispatch made{.shader = Shader::quantize};
  made.constants.resize(kRoundingConstants + 8);
  made.constants[kKept] = 64;
  made.bindings = {{Bind::value, from}, {}};
  for (uint32_t i = 0; i < 3; ++i) made.bindings.push_back({Bind::value, to + i});
  made.bindings.insert(made.bindings.end(), {{Bind::value, to}, {}});
  made.writes = 0b111100;
  made.push = {1, 1, 0, 0, 0, 1, 0, 0, 64, 0, 0, 0, 0};
  return made;
}

// `count` elements of a row, of a matrix of floats.
Dispatch float_product(uint32_t from, uint32_t to, uint32_t count) {
  Dispatch made{.shader = Shader::float_product, .constants = std::vector<uint32_t>(17), .groups = {count, 1, 1}};
  made.bindings = {{Bind::value, from}, {Bind::weight, 0}, {}, {}, {Bind::value, to}, {}};
  made.writes = 0b10000;
  made.push = {64, 1, count, 0, count, 0, 0, 0, 1, 0, 0, 0};
  return made;
}

Plan drawn(std::vector<Dispatch> dispatches, uint32_t buffers = 19) {
  Plan plan;
  plan.dispatches = std::move(dispatches);
  VkPhysicalDeviceLimits limits{};
  limits.maxComputeSharedMemorySize = 32768;
  limits.maxPerStageDescriptorStorageBuffers = buffers;
  draw_chains(graph_of(32), 1, limits, &plan);
  return plan;
}

std::vector<Shader> shaders_of(const Plan& plan) {
  std::vector<Shader> made;
  for (const Dispatch& each : plan.dispatches) made.push_back(each.shader);
  return made;
}

// The first workgroup of each step and how many there are.
std::vector<std::pair<uint32_t, uint32_t>> workgroups_of(const Plan& plan) {
  std::vector<std::pair<uint32_t, uint32_t>> made;
  for (size_t at = 0; at < plan.steps.size(); at += kWords) {
    made.emplace_back(plan.steps[at + kFirst], plan.steps[at + kCount]);
  }
  return made;
}

using Shaders = std::vector<Shader>;
using Workgroups = std::vector<std::pair<uint32_t, uint32_t>>;

TEST(Chains, a_single_dispatch_stays_what_it_is) {
  EXPECT_EQ(Shaders{Shader::map}, shaders_of(drawn({map(0, 1, 64)})));
}

TEST(Chains, what_reads_other_elements_is_done_by_one_workgroup) {
  const Plan plan = drawn({map(0, 1, 100), reduce(1, 2), map(2, 3, 1)});
  EXPECT_EQ(Shaders{Shader::chain}, shaders_of(plan));
  EXPECT_EQ((Workgroups{{0, 1}, {0, 1}, {0, 1}}), workgroups_of(plan));
  EXPECT_EQ(1u, plan.dispatches[0].groups[0]);
}

TEST(Chains, what_reads_other_elements_of_many_waits) {
  EXPECT_EQ((Shaders{Shader::map, Shader::reduce}), shaders_of(drawn({map(0, 1, 64 * 9), reduce(1, 2)})));
}

TEST(Chains, functions_of_the_same_elements_go_along_each_other) {
  const Plan plan = drawn({map(0, 1, 1000), map(1, 2, 1000)});
  EXPECT_EQ(Shaders{Shader::chain}, shaders_of(plan));
  EXPECT_EQ((Workgroups{{0, 16}, {0, 16}}), workgroups_of(plan));
}

TEST(Chains, functions_of_other_elements_do_not) {
  EXPECT_EQ((Shaders{Shader::map, Shader::map}), shaders_of(drawn({map(0, 1, 1000), map(1, 2, 900)})));
}

TEST(Chains, what_has_nothing_in_common_lies_side_by_side) {
  const Plan plan = drawn({map(0, 1, 1000), reduce(2, 3), map(4, 5, 640)});
  EXPECT_EQ((Workgroups{{0, 16}, {16, 1}, {17, 10}}), workgroups_of(plan));
  EXPECT_EQ(27u, plan.dispatches[0].groups[0]);
}

TEST(Chains, parts_of_one_value_have_nothing_in_common) {
  EXPECT_EQ((Workgroups{{0, 10}, {10, 10}}), workgroups_of(drawn({map(0, 1, 640), map(2, 1, 640, 640)})));
}

TEST(Chains, values_that_share_memory_are_kept_apart) {
  EXPECT_EQ((Shaders{Shader::map, Shader::map}), shaders_of(drawn({map(30, 1, 1000), map(2, 31, 900)})));
}

TEST(Chains, a_step_is_done_before_what_does_not_touch_its_values) {
  EXPECT_EQ((Shaders{Shader::chain, Shader::product}),
            shaders_of(drawn({map(0, 1, 64), product(2, 3), map(4, 5, 64)})));
}

TEST(Chains, or_the_others_are_done_behind_it) {
  EXPECT_EQ((Shaders{Shader::product, Shader::chain}),
            shaders_of(drawn({map(0, 1, 64), product(2, 3), map(3, 5, 64)})));
}

TEST(Chains, what_others_need_is_done_before_them) {
  const Shaders expected{Shader::map, Shader::product, Shader::map};
  EXPECT_EQ(expected, shaders_of(drawn({map(0, 1, 64), product(1, 3), map(3, 5, 64)})));
}

TEST(Chains, what_is_still_read_is_not_overwritten) {
  const Shaders expected{Shader::map, Shader::product, Shader::map};
  EXPECT_EQ(expected, shaders_of(drawn({map(0, 1, 64), product(1, 3), map(4, 1, 64)})));
}

TEST(Chains, have_as_many_values_as_a_shader_sees) {
  std::vector<Dispatch> dispatches;
  for (uint32_t i = 0; i < 20; ++i) dispatches.push_back(map(i, i + 1, 64));
  const Plan plan = drawn(std::move(dispatches));
  EXPECT_EQ((Shaders{Shader::chain, Shader::chain}), shaders_of(plan));
  for (const Dispatch& each : plan.dispatches) EXPECT_EQ(13u, each.bindings.size());
  EXPECT_EQ(20u * kWords, plan.steps.size());
  EXPECT_EQ(11u, plan.dispatches[1].push[0]);
  EXPECT_EQ(0b1111111111100u, plan.dispatches[0].writes);  // but for the steps and the first value
}

TEST(Chains, round_a_row_that_they_make) {
  const Plan plan = drawn({map(0, 1, 640), map(1, 2, 640), quantize(2, 4), product(4, 8)});
  EXPECT_EQ((Shaders{Shader::chain_rounds, Shader::product}), shaders_of(plan));
  EXPECT_EQ(19u, plan.dispatches[0].bindings.size());
  EXPECT_EQ(10u, plan.dispatches[0].push[2]);  // workgroups, of which the last one rounds
  EXPECT_EQ(kAlignment, plan.counters_bytes);
}

TEST(Chains, a_single_dispatch_rounds_its_row_too) {
  EXPECT_EQ((Shaders{Shader::chain_rounds}), shaders_of(drawn({map(0, 1, 640), quantize(1, 4)})));
}

TEST(Chains, do_not_round_rows_of_others) {
  EXPECT_EQ((Shaders{Shader::map, Shader::product, Shader::quantize}),
            shaders_of(drawn({product(0, 1), map(2, 3, 640), quantize(1, 4)})));
}

TEST(Chains, do_not_round_into_memory_that_they_read) {
  EXPECT_EQ((Shaders{Shader::map, Shader::quantize}), shaders_of(drawn({map(0, 1, 640), quantize(1, 0)})));
}

TEST(Chains, round_only_where_a_shader_sees_enough_buffers) {
  EXPECT_EQ((Shaders{Shader::map, Shader::quantize}), shaders_of(drawn({map(0, 1, 640), quantize(1, 4)}, 16)));
}

TEST(Chains, of_one_workgroup_are_done_by_the_last_one_of_the_product_before) {
  const Plan plan = drawn({float_product(0, 1, 64), map(1, 2, 64), reduce(2, 3)});
  EXPECT_EQ(Shaders{Shader::float_product_chain}, shaders_of(plan));
  EXPECT_EQ((Workgroups{{0, 1}, {0, 1}}), workgroups_of(plan));
  EXPECT_EQ(18u, plan.dispatches[0].bindings.size());
  EXPECT_EQ(1u, plan.dispatches[0].bindings[6].index);  // what it makes is the first memory
  EXPECT_EQ(0b111010000u, plan.dispatches[0].writes);
  EXPECT_EQ(64u, plan.dispatches[0].push[12]);
}

TEST(Chains, of_many_workgroups_are_not) {
  EXPECT_EQ((Shaders{Shader::float_product, Shader::map}),
            shaders_of(drawn({float_product(0, 1, 1000), map(1, 2, 1000)})));
}

TEST(Chains, that_overwrite_what_the_product_reads_are_not) {
  EXPECT_EQ((Shaders{Shader::float_product, Shader::map}), shaders_of(drawn({float_product(0, 1, 64), map(1, 0, 64)})));
}

TEST(Chains, are_not_done_by_products_whose_shader_sees_too_few_buffers) {
  EXPECT_EQ((Shaders{Shader::float_product, Shader::map}),
            shaders_of(drawn({float_product(0, 1, 64), map(1, 2, 64)}, 16)));
}

}  // namespace
}  // namespace mote::vulkan::test
