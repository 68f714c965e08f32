// A blob of this backend, verified: every index, size and enum in it is valid for any number of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/xnnpack/api.h"
#include "base/status.h"
#include "runner/program/delegate.h"
#include "xnnpack_schema_generated.h"

namespace mote::xnnpack {

// The size tokens * T + constant, which is at least 1 for every T from 1 on.
struct LinearSize {
  int64_t tokens = 0;
  int64_t constant = 0;

  int64_t at(int64_t num_tokens) const { return tokens * num_tokens + constant; }
  bool operator==(const LinearSize&) const = default;
};
using Shape = std::vector<LinearSize>;  // at most kMaxTensorDims

std::string shape_text(const Shape& shape);

struct GraphValue {
  fb::ValueKind kind = fb::ValueKind::activation;
  fb::DType dtype = fb::DType::float32;
  Shape shape{};
  uint32_t weight = 0;
  fb::WeightForm form = fb::WeightForm::float32;
  int64_t first_row = 0;
  float offset = 0;
  std::vector<float> numbers{};

  bool is_static() const { return kind == fb::ValueKind::weight || kind == fb::ValueKind::constant; }
};

struct GraphNode {
  fb::Op op = fb::Op::unary;
  fb::Function function = fb::Function::abs;
  std::vector<uint32_t> inputs{};
  uint32_t output = 0;
  std::vector<size_t> axes{};
  LinearSize begin{}, end{};  // of a slice; may be 0
  std::vector<float> numbers{};
};

struct Graph {
  std::vector<GraphValue> values;
  std::vector<GraphNode> nodes;
  std::vector<uint32_t> inputs, outputs;  // values, in the order of the part's arguments
};

inline constexpr int64_t kMaxTokens = int64_t{1} << 20;
inline constexpr int64_t kMaxFactor = int64_t{1} << 31;  // of either part of a size

// Errors: kInvalidProgram naming the part's place, the field, its value and what would be accepted.
Result<Graph> verify_graph(const DelegatePart& part);

// The shape that a node computes from inputs whose kinds and dtypes were checked.
// Errors: the message starts with what is wrong, without a place.
Result<Shape> output_shape(const Graph& graph, const GraphNode& node);

// How a slice names a bound to XNNPACK: from the front if `bound` does not grow with T, else from the end (0 or
// negative).
bool slice_bound(const LinearSize& bound, const LinearSize& size, int64_t* result);

}  // namespace mote::xnnpack
