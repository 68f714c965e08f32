// A blob of this backend, verified as far as it can be without a number of tokens; plan.h does the rest for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "runner/program/delegate.h"
#include "vulkan_schema_generated.h"

namespace mote::vulkan {

inline constexpr int64_t kMaxTokens = int64_t{1} << 20;
inline constexpr size_t kMaxRank = 8;

// tokens * T + constant, at least 0 for every T from 1 on; neither part is above 2^40.
struct LinearSize {
  int64_t tokens = 0;
  int64_t constant = 0;

  int64_t at(int64_t num_tokens) const { return tokens * num_tokens + constant; }
};

struct GraphValue {
  fb::ValueKind kind = fb::ValueKind::scratch;
  fb::Content content = fb::Content::float32;
  LinearSize bytes{};
  uint32_t slot = 0;    // of scratch
  uint32_t weight = 0;  // of the part
};

struct GraphView {
  int32_t value = -1;  // -1: absent
  LinearSize offset{};
  std::vector<LinearSize> sizes{}, strides{};
};

struct GraphNode {
  fb::Op op = fb::Op::embedding;
  std::vector<GraphView> inputs{}, outputs{};
  std::vector<int64_t> integers{};
  std::vector<float> numbers{};
  std::string origin{};
};

struct GraphCache {
  int32_t state = 0, num_heads = 0, head_dim = 0, value_head_dim = 0;
  bool operator==(const GraphCache&) const = default;
};

// The latest rows that went into a state.
struct GraphHistory {
  int32_t state = 0, rows = 0, columns = 0;
  bool operator==(const GraphHistory&) const = default;
};

// A matrix [rows, width] for each head, and what is recorded of a token: its keys, what was added along them, decays.
struct GraphRecurrence {
  int32_t state = 0, key_heads = 0, heads = 0, rows = 0, width = 0, decays = 0;
  bool operator==(const GraphRecurrence&) const = default;
  int64_t floats() const { return int64_t{heads} * rows * width; }
  int64_t recorded_floats() const {
    return int64_t{key_heads} * width + int64_t{heads} * rows + int64_t{heads} * decays;
  }
};

struct Graph {
  std::string place;
  size_t num_weights = 0;  // of the part
  std::vector<GraphValue> values;
  std::vector<LinearSize> slots;
  std::vector<GraphCache> caches;
  std::vector<GraphHistory> histories;
  std::vector<GraphRecurrence> recurrences;
  std::vector<GraphNode> nodes;
  std::vector<uint32_t> inputs, outputs;  // values, in the order of the part's arguments
};

// Errors: kInvalidProgram naming the part's place, the field, its value and what would be accepted.
Result<Graph> verify_graph(const DelegatePart& part);

}  // namespace mote::vulkan
