// Nodes to dispatches, one after the other. Functions of families of ops lie in plan_*.cpp.
#pragma once

#include <optional>
#include <vector>

#include "backends/vulkan/operands.h"
#include "base/size.h"

namespace mote::vulkan {

inline constexpr int64_t kLanes = 64;  // of a workgroup

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Workgroups as group_index() of common.glsl counts them.
std::array<uint32_t, 3> spread(int64_t groups);

// Of what rounds rows: where its constants begin, and which of them (quantize.glsl).
inline constexpr size_t kRoundingConstants = 20, kIsRotated = 23, kKept = 24, kLanesOfRounding = 25;

// Counters that no other dispatch has: last.glsl.
Bound counters(int64_t count, Plan* plan);

// Small dispatches that follow each other become one.
void draw_chains(const Graph& graph, int64_t tokens, const VkPhysicalDeviceLimits& limits, Plan* plan);

class Planner : Operands {
 public:
  Planner(const Graph& graph, const std::vector<const DeviceWeight*>& weights, int64_t tokens, int64_t splits,
          const DeviceTraits& device)
      : Operands(graph, weights, tokens), splits_(splits), device_(device) {}

  Result<Plan> plan();

 private:
  Status add();
  Status push(Dispatch dispatch);
  int64_t bytes_of(const Dispatch& dispatch) const;

  // What both kinds of product have in common.
  struct Product {
    const DeviceWeight* weight = nullptr;
    uint32_t weight_index = 0;
    uint32_t gate = 0;
    int64_t columns = 0, out = 0, rows = 0;
    int64_t pairs = 0;  // outputs of an input, each of an expert; 0: there are none
    int64_t heads = 0;  // of a token, each with a matrix, which then are the experts; 0: there are none
    View y{};
    Bound bias{}, residual{};  // residual: with experts, their numbers
    uint32_t residual_offset = 0, residual_stride = 0;

    bool has_residual() const { return residual.kind != Bind::none && pairs == 0; }
    int64_t inputs() const { return pairs != 0 ? rows / pairs : rows; }
    // Rows that a dispatch over a piece makes.
    int64_t rows_of(const WeightPiece& piece) const { return gate != 0 || pairs != 0 ? out : piece.rows; }
  };

  // A matrix that products and lookups read.
  Result<const DeviceWeight*> matrix(const char* name, const GraphView& from, bool only_tiles, int rank = 2) const;
  // codes, and for each row its scale with its zero point and sums of 32 codes; in groups scales of 32 codes and sums
  // of 16
  Status check_codes(const std::vector<GraphView>& views, int64_t rows, int64_t columns, bool in_groups) const;
  Result<Product> product_of(size_t first, bool only_tiles) const;
  // What products push; step_to_up: from gates to what they gate.
  std::vector<uint32_t> product_words(const Product& product, const WeightPiece& piece, int64_t step_to_up) const;
  // What the next node rounds, where it does so as it lets it through.
  struct Gate {
    uint32_t function = 0;  // gates.glsl
    View gate{}, up{};
    float alpha = 0, limit = 0;
  };
  // Rows that are rounded to codes: quantize.glsl.
  struct Quantized {
    RowsView x{};
    Bound weight{}, turned{};
    std::vector<Bound> outputs{};
    std::vector<uint32_t> constants{}, push{};
    bool is_shared = false;      // whether workgroups can share a row
    std::optional<Gate> gate{};  // of the experts whose rows they are
  };
  // Whether the next node alone reads the rows that this one makes, and rounds them.
  bool is_gate_of_next(const View& y, const View& gate, const View& up) const;
  // Of a map whose rows the next node alone reads, and rounds.
  std::optional<Gate> own_gate() const;
  Result<std::vector<View>> map_operands(const View& y) const;
  // Whether a later node writes into memory that this one still reads where both are one dispatch.
  bool is_overwritten_by(const GraphNode& next) const;
  // lanes: invocations of a workgroup, which takes so much shared memory already
  Result<Quantized> quantized_of(uint32_t lanes, int64_t shared_bytes) const;
  // How the next node rounds the row that this one makes, where the last workgroup of this one's dispatch can do it.
  std::optional<Quantized> rounded_by_last(const View& y, uint32_t lanes, int64_t shared_bytes);
  // How what experts' gates let through is rounded, each row by the last workgroup that makes some of it.
  std::optional<Quantized> rounded_by_experts(const Product& product, uint32_t lanes, int64_t shared_bytes);
  // What such a dispatch sees behind its own bindings, and with ROUNDS. first_word: of what it pushes for that
  void add_rounding(const std::optional<Quantized>& rounding, const View& y, int64_t num_counters, Dispatch* dispatch,
                    size_t first_word);
  static void add_gate_words(const Gate& gate, Dispatch* dispatch);
  const ProductForm& calls_form() const { return tokens_ == 1 ? device_.products.one : device_.products.many; }
  ProductForm form_of(const Product& product, bool in_groups) const;
  // Outputs of experts that a product makes together, and the places that they then have. 1: each alone.
  static int64_t outputs_together(const Product& product);
  static int64_t places_of(const Product& product, int64_t together);
  // Finds the places of experts' outputs; Bind::none: there are none.
  Result<Bound> add_order(const Product& product, int64_t together);
  uint32_t takes_packed_codes() const { return calls_form().uses.has(gpu::GpuFeature::kDot) ? 1 : 0; }
  static int64_t macs_of(const Product& product, const WeightPiece& part);
  Status add_embedding();
  Status add_quantize();
  // in_groups: inputs are rounded in groups, and tiles may have any scales
  Status add_product(bool in_groups);
  Status add_float_product();

  // docs/ops.md, "Rotation": columns of a turn, and what they are scaled by.
  struct Turn {
    int64_t columns = 0;
    float scale = 0;
  };
  static Turn turn_of(int64_t columns);
  std::vector<uint32_t> row_words(const RowsView& x) const;
  Status add_rope_table();
  Status add_norm();
  Status add_rotate();
  // Rows whose elements need not be neighbours.
  Result<RowsView> strided_rows(const char* name, const GraphView& from) const;
  // Of a shader whose groups of lanes take a row each.
  Status push_of_rows(Shader shader, const RowsView& x, const View& y);
  Status add_reduce();
  Status add_softmax();
  Status add_top();
  Status add_short_conv();
  Result<std::array<uint32_t, 4>> series(const char* name, const GraphView& from, std::span<const int64_t> sizes) const;
  Status add_linear_attention();

  // With 4 sizes.
  Result<View> four(const char* name, const GraphView& from) const;
  Status add_map();
  Status add_pick();
  Status add_scatter();
  Status add_matmul();

  // [1, H, T, D] with neighbours in D.
  Result<View> heads(const char* name, const GraphView& from) const;
  Status add_rope();
  // The state's place in Graph.caches.
  Result<uint32_t> cache_index() const;
  // cos or sin of a turn.
  Result<View> table_of(size_t input, int64_t tokens, int64_t width) const;
  // Of workgroups that take a row each: a device with few has no use for many.
  uint32_t lanes() const { return device_.is_cpu ? 8 : static_cast<uint32_t>(kLanes); }
  Status add_heads();
  Status add_latent_heads();
  Status add_append(const GraphView& from, const Bound& cache, int64_t num_heads, int64_t width, const View& positions);
  // What tells which positions a token sees, and how much more of them.
  struct Sight {
    Bound chosen{}, biases{};
    int64_t groups = 1, num_chosen = 0, num_biases = 0;
  };
  Result<Sight> sight_of(int64_t tokens, int64_t num_heads) const;
  Status add_attention();
  Status add_indexer();
  // What both shaders of attention have in common.
  struct AttentionCall {
    const GraphCache* cache = nullptr;
    int64_t num_heads = 0, value_width = 0;
    View y{};
    Bound lse{};  // logarithms of sums
    std::vector<Bound> bindings{};
    std::vector<uint32_t> push{};
  };
  // heads: of queries, of a workgroup; items: pairs of outputs that it makes at a time
  Dispatch attention_dispatch(AttentionCall call, int64_t heads, int64_t items) const;
  Status require_shared(int64_t bytes) const;
  Status add_attention_of_one(AttentionCall call);
  Status add_attention_tiles(AttentionCall call, int64_t tokens);

  const int64_t splits_;
  const DeviceTraits& device_;
  Plan plan_;
  std::optional<Gate> gate_;  // of the node that comes next
  size_t done_ = 0;           // nodes before it are, by one that came before them
};

}  // namespace mote::vulkan
