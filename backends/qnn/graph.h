// A blob of this backend, verified: every index, size and enum in it is valid.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "qnn_schema_generated.h"
#include "runner/program/delegate.h"

namespace mote::qnn {

using Shape = std::vector<uint32_t>;

// Rows of one state.
struct StateSizes {
  uint32_t capacity = 0, heads = 0, key_width = 0, value_width = 0;
  bool operator==(const StateSizes&) const = default;
};

struct Graph {
  fb::PartT part;
  std::map<int32_t, StateSizes> states;
  std::vector<uint32_t> reads, writes;  // values that the caller gives and gets, in the order of `values`

  const fb::ValueT& value(uint32_t index) const { return *part.values[index]; }
};

inline constexpr uint64_t kMaxContextBytes = uint64_t{4} << 30;  // of weights that one context may hold

bool is_made_by_node(fb::ValueKind kind);
bool is_stacked(fb::WeightForm form);
uint64_t elements(const Shape& shape);
std::string shape_text(const Shape& shape);

// Errors: kInvalidProgram naming the part's place, the field, its value and what would be accepted.
Result<Graph> verify_graph(const DelegatePart& part);

// The shape that a node computes of inputs that were verified.
// Errors: the message says what is wrong, without a place.
Result<Shape> output_shape(const fb::NodeT& node, const std::vector<const Shape*>& inputs);

}  // namespace mote::qnn
