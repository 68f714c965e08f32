// Which parts share a context.
#include <gtest/gtest.h>

#include "backends/qnn/contexts.h"

namespace mote::qnn::test {
namespace {

using Division = std::vector<std::vector<size_t>>;

// Parts that read these weights of the program, each of 100 bytes as it is stored.
Division division(const std::vector<std::vector<uint32_t>>& weights_of_parts, uint64_t most) {
  std::vector<Graph> graphs(weights_of_parts.size());
  std::vector<DelegatePart> parts(graphs.size());
  std::vector<ContextPart> both;
  for (size_t i = 0; i < graphs.size(); ++i) {
    graphs[i].part.context_bytes = most;
    for (const uint32_t weight : weights_of_parts[i]) {
      auto value = std::make_unique<fb::ValueT>();
      value->kind = fb::ValueKind::weight;
      value->shape = {50};
      value->index = static_cast<int32_t>(parts[i].weights.size());
      graphs[i].part.values.push_back(std::move(value));
      parts[i].weights.push_back({weight, "weight", {}});
    }
    both.push_back({&graphs[i], &parts[i]});
  }
  return contexts_of(both);
}

TEST(QnnContexts, are_one_where_the_weights_fit) {
  EXPECT_EQ(division({{0, 1}, {2}, {0, 1}, {2}}, 300), (Division{{0, 1, 2, 3}}));
}

TEST(QnnContexts, hold_the_parts_of_all_methods_that_read_the_same_weights) {
  EXPECT_EQ(division({{0, 1}, {2, 3}, {0, 1}, {2, 3}}, 250), (Division{{0, 2}, {1, 3}}));
}

TEST(QnnContexts, are_filled_as_far_as_parts_fit) {
  EXPECT_EQ(division({{0, 1}, {2, 3}, {4}, {5}}, 300), (Division{{0, 2}, {1, 3}}));
}

TEST(QnnContexts, a_part_that_fits_none_has_its_own) {
  EXPECT_EQ(division({{0}, {1, 2, 3}, {0}}, 200), (Division{{0, 2}, {1}}));
}

}  // namespace
}  // namespace mote::qnn::test
