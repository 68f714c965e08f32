// What the nodes of a graph read and write, for one number of tokens: every element that a shader can reach lies in its
// value.
#pragma once

#include <bit>
#include <concepts>
#include <string>
#include <vector>

#include "backends/vulkan/graph.h"
#include "backends/vulkan/plan.h"
#include "base/size.h"

namespace mote::vulkan {

inline constexpr int64_t kMaxIndex = (int64_t{1} << 32) - 1;  // of elements, which shaders count in 32 bits

// What is pushed to a shader.
uint32_t word(std::integral auto value) { return static_cast<uint32_t>(value); }
inline uint32_t word(float value) { return std::bit_cast<uint32_t>(value); }

// A view for one number of tokens; every element of it lies in its value.
struct View {
  uint32_t value = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;

  int64_t count() const {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return count;
  }
  bool is_contiguous() const {
    int64_t expected = 1;
    for (size_t i = sizes.size(); i-- > 0; expected *= sizes[i]) {
      if (sizes[i] != 1 && strides[i] != expected) return false;
    }
    return true;
  }
};

// Rows of neighbours in two dimensions.
struct RowsView {
  View view{};
  int64_t outer = 0, inner = 0, columns = 0;
  int64_t count() const { return outer * inner; }
};

// Of the node that begin() was called with last. Errors: kInvalidProgram naming the node and the operand.
class Operands {
 public:
  Operands(const Graph& graph, const std::vector<const DeviceWeight*>& weights, int64_t tokens)
      : graph_(graph), weights_(weights), tokens_(tokens) {}

 protected:
  void begin(size_t index) {
    node_index_ = index;
    node_ = &graph_.nodes[index];
  }
  [[MOTE_PRINTF(2, 3)]] Status invalid(const char* pattern, ...) const;

  const GraphValue& value_of(const GraphView& view) const { return graph_.values[static_cast<size_t>(view.value)]; }
  Result<View> floats(const char* name, const GraphView& from) const;
  // All of a value, in order: `count` elements, or any number where that is 0.
  Result<View> whole(const char* name, const GraphView& from, int64_t count) const;
  Result<View> whole_words(const char* name, const GraphView& from, int64_t count) const;
  // A parameter of `count` elements; absent: Bind::none.
  Result<Bound> parameter(const char* name, const GraphView& from, int64_t count) const;
  // Elements of 4 bytes, whatever they are.
  Result<View> words(const char* name, const GraphView& from) const;
  // int64 numbers, in order.
  Result<View> integers(const char* name, const GraphView& from) const;
  Result<RowsView> rows(const char* name, const GraphView& from) const;
  Status needs_bytes(const char* name, const GraphView& from, Size bytes) const;
  Status integer_below(size_t index, int64_t limit) const;
  // nullptr: it is none.
  const DeviceWeight* weight_of(const GraphView& from) const;
  Bound bound(uint32_t value) const;
  Bound bound(const View& view) const { return bound(view.value); }

  const Graph& graph_;
  const std::vector<const DeviceWeight*>& weights_;
  const int64_t tokens_;
  size_t node_index_ = 0;
  const GraphNode* node_ = nullptr;

 private:
  int64_t elements(const GraphValue& value) const;
  Result<View> view(const char* name, const GraphView& from, fb::Content content) const;
};

}  // namespace mote::vulkan
