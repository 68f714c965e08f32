#include "backends/qnn/graph.h"

#include <cmath>
#include <set>

#include "base/size.h"
#include "kernels/formats.h"

namespace mote::qnn {
namespace {

constexpr uint32_t kMaxTables = 1 << 18;
constexpr size_t kMaxValues = 1 << 16;
constexpr size_t kMaxDims = 5;
constexpr uint32_t kMaxPartTokens = 4096, kMaxCapacity = 1 << 20;
constexpr int32_t kMaxIndex = 1 << 16;
constexpr uint64_t kMaxElements = uint64_t{1} << 31;

struct Arity {
  size_t least, most;
};
Arity arity(fb::Op op) {
  if (op <= fb::Op::minimum || op == fb::Op::matmul || op == fb::Op::rms_norm || op == fb::Op::gather) return {2, 2};
  if (op == fb::Op::concatenate) return {2, 16};
  return {1, 1};
}

class Verifier {
 public:
  explicit Verifier(const DelegatePart& part) : part_(part) {}

  Result<Graph> verify() {
    // A copy, because a file that others write to may change between a check and a use.
    const std::vector<std::byte> blob(part_.blob.begin(), part_.blob.end());
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(blob.data()), blob.size(), 8, kMaxTables);
    if (blob.size() < 12 || !fb::VerifyPartBuffer(verifier)) return invalid("", "is not a part for QNN");
    fb::GetPart(blob.data())->UnPackTo(&graph_.part);
    const fb::PartT& part = graph_.part;
    if (part.values.size() > kMaxValues || part.nodes.size() > kMaxValues)
      return invalid("", format("has %zu values and %zu nodes: must be at most %zu", part.values.size(),
                                part.nodes.size(), kMaxValues));
    if (part.tokens < 1 || part.tokens > kMaxPartTokens)
      return invalid("tokens", format("%u: must be 1..%u", part.tokens, kMaxPartTokens));
    if (part.context_bytes < 1 || part.context_bytes > kMaxContextBytes)
      return invalid("context_bytes",
                     format("%llu: must be 1..%llu", static_cast<unsigned long long>(part.context_bytes),
                            static_cast<unsigned long long>(kMaxContextBytes)));
    if (part.capacity > kMaxCapacity) return invalid("capacity", format("%u: at most %u", part.capacity, kMaxCapacity));
    for (uint32_t i = 0; i < part.values.size(); ++i) MOTE_RETURN_IF_ERROR(add_value(i));
    MOTE_RETURN_IF_ERROR(check_states());
    for (uint32_t i = 0; i < part.nodes.size(); ++i) MOTE_RETURN_IF_ERROR(check_node(i));
    for (uint32_t i = 0; i < part.values.size(); ++i) {
      if (!is_written_[i]) return invalid(format("values[%u]", i), "is written by no node");
    }
    if (graph_.writes.empty()) return invalid("values", "have no output");
    return std::move(graph_);
  }

 private:
  Status invalid(const std::string& field, const std::string& text) const {
    return {Code::kInvalidProgram, part_.place + (field.empty() ? "" : "." + field) + ": " + text};
  }

  Status add_value(uint32_t index) {
    const fb::ValueT& value = graph_.value(index);
    const std::string place = format("values[%u]", index);
    if (value.kind > fb::ValueKind::MAX || value.form > fb::WeightForm::MAX)
      return invalid(place, "kind or form is not one of this version");
    if (value.shape.empty() || value.shape.size() > kMaxDims)
      return invalid(place, format("%zu sizes: must be 1 to %zu", value.shape.size(), kMaxDims));
    Size count = 1;
    for (const uint32_t size : value.shape) count = count * size;
    if (!count.at_most(kMaxElements) || count.value() == 0)
      return invalid(place, format("shape %s: must have 1 to 2^31 elements", shape_text(value.shape).c_str()));
    is_written_.push_back(!is_made_by_node(value.kind));
    if (value.whole && value.kind != fb::ValueKind::input && value.kind != fb::ValueKind::output)
      return invalid(place, "whole: is for inputs and outputs");
    if (!std::isfinite(value.words) || value.words < 0 || (value.words > 0 && value.kind != fb::ValueKind::activation))
      return invalid(
          place, format("words = %g: must be at least 0, and 0 but for activations", static_cast<double>(value.words)));
    MOTE_RETURN_IF_ERROR(check_kind(place, value));
    const bool is_static = value.kind == fb::ValueKind::weight || value.kind == fb::ValueKind::constant;
    if (!is_static && !is_made_by_node(value.kind)) graph_.reads.push_back(index);
    if (is_made_by_node(value.kind) && value.kind != fb::ValueKind::activation) graph_.writes.push_back(index);
    return {};
  }

  Status check_kind(const std::string& place, const fb::ValueT& value) {
    const uint32_t tokens = graph_.part.tokens, capacity = graph_.part.capacity;
    switch (value.kind) {
      case fb::ValueKind::activation: return {};
      case fb::ValueKind::input:
      case fb::ValueKind::output:
        if (value.index < 0 || value.index > kMaxIndex || !arguments_.insert({value.kind, value.index}).second)
          return invalid(place, format("index = %d: must be an argument of its own", value.index));
        return {};
      case fb::ValueKind::constant:
        if (value.numbers.size() != elements(value.shape))
          return invalid(place, format("numbers has %zu elements: shape %s needs as many as it says",
                                       value.numbers.size(), shape_text(value.shape).c_str()));
        return {};
      case fb::ValueKind::weight: return check_weight(place, value);
      case fb::ValueKind::mask:
      case fb::ValueKind::distances:
        if (value.window < 0 || value.shape != Shape{1, 1, tokens, capacity + tokens})
          return invalid(place,
                         "a mask or distances must be [1, 1, tokens, capacity + tokens] with a window of at least 0");
        return {};
      default: return add_rows(place, value);
    }
  }

  Status check_weight(const std::string& place, const fb::ValueT& value) const {
    if (value.index < 0 || static_cast<size_t>(value.index) >= part_.weights.size())
      return invalid(place, format("index = %d: the part has %zu weights", value.index, part_.weights.size()));
    const Tensor& tensor = part_.weights[static_cast<size_t>(value.index)].tensor;
    const bool is_dense = tensor.bits == 0 && (tensor.dtype == DType::kFloat32 || tensor.dtype == DType::kFloat16 ||
                                               tensor.dtype == DType::kBFloat16);
    const bool is_tiled = tensor.bits != 0 && tensor.scales == TileScales();
    const bool is_any = value.form == fb::WeightForm::matrix || value.form == fb::WeightForm::stack;
    const bool fits = value.form == fb::WeightForm::plain    ? is_dense
                      : is_any                               ? is_dense || is_tiled
                      : value.form == fb::WeightForm::blocks ? is_tiled && tensor.bits == 4
                                                             : is_tiled;
    if (!fits) return invalid(place, "form: not of this weight's dtype and bits");
    Shape expected;
    for (int i = 0; i < tensor.rank; ++i)
      expected.push_back(static_cast<uint32_t>(tensor.sizes[static_cast<size_t>(i)]));
    if (value.form != fb::WeightForm::plain) {
      const int rank = is_stacked(value.form) ? 3 : 2;
      if (tensor.rank != rank) return invalid(place, format("form: its weights have %d dimensions", rank));
      std::swap(expected.end()[-2], expected.back());
      if (value.form == fb::WeightForm::lengths) expected.erase(expected.begin());
      if (value.form == fb::WeightForm::code_scales) expected[1] = 1;
    }
    const bool has_shape =
        value.form == fb::WeightForm::plain ? elements(value.shape) == elements(expected) : value.shape == expected;
    if (!has_shape || !std::isfinite(value.offset))
      return invalid(place, format("shape %s: the weight gives %s", shape_text(value.shape).c_str(),
                                   shape_text(expected).c_str()));
    return {};
  }

  Status add_rows(const std::string& place, const fb::ValueT& value) {
    const bool is_past = value.kind == fb::ValueKind::past_keys || value.kind == fb::ValueKind::past_values;
    const bool is_keys = value.kind == fb::ValueKind::past_keys || value.kind == fb::ValueKind::new_keys;
    const uint32_t rows = is_past ? graph_.part.capacity : graph_.part.tokens;
    if (value.index < 0 || value.index > kMaxIndex || !arguments_.insert({value.kind, value.index}).second)
      return invalid(place, format("index = %d: must be a state of its own", value.index));
    if (value.shape.size() != 4 || value.shape[0] != 1 || value.shape[2] != rows || rows == 0)
      return invalid(
          place, format("shape %s: rows of a state are [1, heads, %u, width]", shape_text(value.shape).c_str(), rows));
    StateSizes& sizes = graph_.states[value.index];
    uint32_t& width = is_keys ? sizes.key_width : sizes.value_width;
    const bool fits = (sizes.heads == 0 || sizes.heads == value.shape[1]) && (width == 0 || width == value.shape[3]);
    if (!fits) return invalid(place, "shape: the state's other rows have other sizes");
    sizes.capacity = graph_.part.capacity;
    sizes.heads = value.shape[1];
    width = value.shape[3];
    return {};
  }

  Status check_states() const {
    using Kind = fb::ValueKind;
    for (const auto& [state, sizes] : graph_.states) {
      for (const Kind kind : {Kind::past_keys, Kind::past_values, Kind::new_keys, Kind::new_values}) {
        if (!arguments_.contains({kind, state}))
          return invalid("values", format("state %d: must have keys and values, before and new", state));
      }
    }
    bool has_mask = false;
    for (const auto& value : graph_.part.values)
      has_mask = has_mask || value->kind == Kind::mask || value->kind == Kind::distances;
    const int32_t positions = graph_.part.positions;
    const bool needs_positions = has_mask || !graph_.states.empty();
    if (needs_positions && (positions < 0 || positions > kMaxIndex || arguments_.contains({Kind::input, positions})))
      return invalid("positions", format("%d: must be an argument of its own", positions));
    return {};
  }

  Status check_node(uint32_t index) {
    const fb::NodeT& node = *graph_.part.nodes[index];
    const std::string place = format("nodes[%u]", index);
    if (node.op > fb::Op::MAX) return invalid(place, "op is not one of this version");
    const Arity counts = arity(node.op);
    if (node.inputs.size() < counts.least || node.inputs.size() > counts.most)
      return invalid(place, format("has %zu inputs", node.inputs.size()));
    std::vector<const Shape*> inputs;
    for (const uint32_t input : node.inputs) {
      if (input >= is_written_.size() || !is_written_[input])
        return invalid(place, format("inputs: value %u is not there yet", input));
      inputs.push_back(&graph_.value(input).shape);
    }
    if (node.output >= is_written_.size() || is_written_[node.output])
      return invalid(place, format("output = %u: must be a value that nothing has written", node.output));
    MOTE_RETURN_IF_ERROR(check_forms(place, node));
    const Shape& output = graph_.value(node.output).shape;
    if (node.op == fb::Op::rms_norm && !(node.epsilon >= 0 && std::isfinite(node.epsilon)))
      return invalid(place, "epsilon: must be at least 0");
    const Result<Shape> computed = output_shape(node, inputs);
    if (!computed.ok()) return invalid(place, computed.status().message());
    const bool fits = node.op == fb::Op::reshape ? elements(output) == elements(*inputs[0]) : *computed == output;
    if (!fits)
      return invalid(place, format("output has shape %s: the node gives %s", shape_text(output).c_str(),
                                   shape_text(*computed).c_str()));
    is_written_[node.output] = true;
    return {};
  }

  bool has_form(uint32_t index, fb::WeightForm form) const {
    const fb::ValueT& value = graph_.value(index);
    return value.kind == fb::ValueKind::weight && value.form == form;
  }

  // Signed bytes and blocks are for the second operand of a product, words for a product with blocks.
  Status check_forms(const std::string& place, const fb::NodeT& node) const {
    const bool is_product = node.op == fb::Op::matmul && !node.transposed;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_quantised =
          has_form(node.inputs[i], fb::WeightForm::rows) || has_form(node.inputs[i], fb::WeightForm::blocks);
      if (is_quantised && (!is_product || i != 1))
        return invalid(place, "inputs: a weight in rows or blocks is for the second operand of a product");
    }
    const bool is_gather = node.op == fb::Op::gather;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const fb::ValueT& input = graph_.value(node.inputs[i]);
      const bool is_weight = input.kind == fb::ValueKind::weight;
      const bool is_gathered = is_gather && i == 0;
      const bool fits = is_gathered ? is_weight && (input.form == fb::WeightForm::plain || is_stacked(input.form))
                                    : !(is_weight && is_stacked(input.form));
      if (!fits) return invalid(place, "inputs: a gather is of a plain weight or a stack, and a stack for a gather");
    }
    const bool is_of_blocks = is_product && has_form(node.inputs[1], fb::WeightForm::blocks);
    const bool reads_words = is_of_blocks || node.op == fb::Op::dequantize;
    const bool writes_words = is_of_blocks || node.op == fb::Op::quantize;
    bool fits = (graph_.value(node.output).words > 0) == writes_words;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      fits = fits && (graph_.value(node.inputs[i]).words > 0) == (reads_words && i == 0);
    if (!fits) return invalid(place, "words: must be what is quantized, or a product with a weight in blocks");
    return {};
  }

  const DelegatePart& part_;
  Graph graph_;
  std::set<std::pair<fb::ValueKind, int32_t>> arguments_;
  std::vector<bool> is_written_;
};

}  // namespace

bool is_made_by_node(fb::ValueKind kind) {
  return kind == fb::ValueKind::activation || kind == fb::ValueKind::output || kind == fb::ValueKind::new_keys ||
         kind == fb::ValueKind::new_values;
}

bool is_stacked(fb::WeightForm form) { return form >= fb::WeightForm::stack; }

uint64_t elements(const Shape& shape) {
  uint64_t count = 1;
  for (const uint32_t size : shape) count *= size;
  return count;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

Result<Graph> verify_graph(const DelegatePart& part) { return Verifier(part).verify(); }

}  // namespace mote::qnn
