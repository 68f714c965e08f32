// A graph for one number of tokens: dispatches with everything that a shader indexes checked against what it is bound
// to.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/vulkan/graph.h"
#include "backends/vulkan/shaders.h"
#include "backends/vulkan/variants.h"
#include "backends/vulkan/weights.h"
#include "kernels/op.h"

namespace mote::vulkan {

inline constexpr int64_t kSplitPositions = 256;  // of attend.comp
inline constexpr uint64_t kAlignment = 256;      // of what is bound within a buffer: no device asks for more

enum class Bind : uint8_t {
  none,
  value,
  weight,
  row_sums,
  keys,
  values,
  parts,
  history,
  slots,
  rows,
  start,
  largest,
  counters,
  steps
};

// What a binding of a shader sees: a value of the graph, a piece of a weight, a cache by its place in Graph.caches,
// a history by its place in Graph.histories, slots and rows of a recurrence likewise, what a call does with states
// (SlotPlan), the largest of an output, `piece` counters (last.glsl) from `index` times kAlignment bytes on, which no
// other dispatch of the plan has, the steps of chains (Plan.steps).
struct Bound {
  Bind kind = Bind::none;
  uint32_t index = 0;  // value, weight of the part, cache, history or recurrence, place of counters
  uint32_t piece = 0;
};

struct Dispatch {
  Shader shader{};
  std::vector<uint32_t> constants{};
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::vector<Bound> bindings{};
  unsigned writes = 0;  // bindings that it writes, a bit each
  std::vector<uint32_t> push{};
  Cost cost{};              // for profiles
  Cost of_position{};       // what is added for each position that a token sees
  int64_t window = 0;       // of them that a token sees at most; 0: all
  const char* origin = "";  // the graph's
};

struct Plan {
  std::vector<Dispatch> dispatches;
  std::vector<uint64_t> slot_offsets;  // in the arena
  uint64_t arena_bytes = 0;
  int64_t splits = 0;                             // that it was made for; 0: it is the same for any number
  uint64_t parts_bytes = 0;                       // of splits of attentions
  uint64_t counters_bytes = 0;                    // 0 before and after each call
  std::vector<uint32_t> steps;                    // of chains, as chain.comp reads them
  std::vector<std::pair<uint32_t, int64_t>> ids;  // inputs whose numbers must be below
  std::vector<uint32_t> positions;                // inputs that say where tokens lie in the caches
};

// What decides which shaders run on a device, and how.
struct DeviceTraits {
  VkPhysicalDeviceLimits limits{};
  bool is_cpu = false;
  gpu::GpuFeatures features{};  // that shaders may use
  uint32_t subgroup_size = 1;
  int64_t history_rows = 4096;  // that histories have room for beside those that a token sees
  int64_t recorded_rows = 0;    // of the rings of recurrences
  ProductForms products = forms_that_use({}, false);
};

// weights: of the part, in its order
// splits: that there is room for in the caches, 256 positions each
// Errors: kInvalidProgram naming the node; kUnsupportedBackend where the device cannot.
Result<Plan> make_plan(const Graph& graph, const std::vector<const DeviceWeight*>& weights, int64_t tokens,
                       int64_t splits, const DeviceTraits& device);

// Rows of a part's output, in which the largest elements are looked for.
struct OutputRows {
  uint32_t value = 0;
  int64_t rows = 0, width = 0;  // rows: 0: it has no such output
};

// Adds the dispatches that find the `count` largest elements of each row, at most kMostLargest and the row's width.
void add_largest(const OutputRows& output, int64_t count, Plan* plan);

}  // namespace mote::vulkan
