#include "runner/program/token_rows.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "runner/program/delegates.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

using Dims = flatbuffers::Vector<const fb::Dim*>;

// Where a value's tokens lie: dimension `dim` has before * T * after elements, and element (b, t, a) is of token t.
struct TokenAxis {
  int dim = -1;  // -1: the value is the same for all tokens
  int64_t before = 1;
  int64_t after = 1;

  bool exists() const { return dim >= 0; }
  TokenAxis at(int other) const { return {other, before, after}; }
  bool operator==(const TokenAxis&) const = default;
};

// Of an instruction's outputs; nothing: it mixes tokens.
using Answer = std::optional<TokenAxis>;
constexpr std::nullopt_t kMixes = std::nullopt;

// An instruction with what is known of its inputs.
class Step {
 public:
  Step(const fb::Method& method, const fb::Instruction& instruction, const std::vector<TokenAxis>& axes)
      : method_(method), instruction_(instruction), axes_(axes) {}

  uint32_t num_inputs() const { return instruction_.inputs()->size(); }
  TokenAxis axis(uint32_t input) const {
    const int32_t value = input < num_inputs() ? instruction_.inputs()->Get(input) : -1;
    return value < 0 ? TokenAxis() : axes_[static_cast<size_t>(value)];
  }
  // Do all inputs from this one on have no tokens?
  bool same_for_all_tokens(uint32_t from) const {
    for (uint32_t i = from; i < num_inputs(); ++i) {
      if (axis(i).exists()) return false;
    }
    return true;
  }
  const Dims& shape(uint32_t input) const { return *value(instruction_.inputs()->Get(input)).shape(); }
  const Dims& output_shape() const { return *value(instruction_.outputs()->Get(0)).shape(); }
  int rank(uint32_t input) const { return static_cast<int>(shape(input).size()); }
  int output_rank() const { return static_cast<int>(output_shape().size()); }

  const Dims* dims(std::string_view name) const {
    for (const fb::Attribute* attribute : *instruction_.attributes()) {
      if (text_of(*attribute->name()) == name) return attribute->dims();
    }
    return nullptr;
  }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const Dims* found = dims(name);
    return found == nullptr || found->size() == 0 ? otherwise : found->Get(0)->constant();
  }
  bool depends_on_tokens(std::string_view name) const {
    const Dims* found = dims(name);
    return found != nullptr &&
           std::any_of(found->begin(), found->end(), [](const fb::Dim* dim) { return dim->tokens() != 0; });
  }

 private:
  const fb::Value& value(int32_t index) const { return *method_.values()->Get(static_cast<uint32_t>(index)); }

  const fb::Method& method_;
  const fb::Instruction& instruction_;
  const std::vector<TokenAxis>& axes_;
};

// The axis of a value that is the same for all tokens, or a row for each: its only dimension that grows with T.
Answer axis_of(const Dims& shape) {
  TokenAxis axis;
  for (uint32_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim]->tokens() == 0) continue;
    if (axis.exists() || shape[dim]->constant() != 0) return kMixes;
    axis = {static_cast<int>(dim), 1, shape[dim]->tokens()};
  }
  return axis;
}

bool fits(const TokenAxis& axis, const Dims& shape) {
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    const fb::Dim& size = *shape[static_cast<uint32_t>(dim)];
    if (size.tokens() != (dim == axis.dim ? axis.before * axis.after : 0)) return false;
    if (dim == axis.dim && size.constant() != 0) return false;
  }
  return axis.dim < static_cast<int>(shape.size());
}

// Elements of one step along the dimension; those after it must not grow with T.
int64_t stride_of(const Dims& shape, int dim) {
  int64_t stride = 1;
  for (auto i = static_cast<uint32_t>(dim) + 1; i < shape.size(); ++i) stride *= shape[i]->constant();
  return stride;
}

Answer create(const Step& step) { return axis_of(step.output_shape()); }

Answer count_up(const Step& step) {
  const bool grows = step.depends_on_tokens("start") || step.depends_on_tokens("end") || step.depends_on_tokens("step");
  return grows ? Answer(kMixes) : Answer(TokenAxis());
}

// Dimensions are aligned at the last.
Answer broadcast(const Step& step) {
  TokenAxis result;
  for (uint32_t i = 0; i < step.num_inputs(); ++i) {
    if (!step.axis(i).exists()) continue;
    const TokenAxis moved = step.axis(i).at(step.axis(i).dim + step.output_rank() - step.rank(i));
    if (result.exists() && !(result == moved)) return kMixes;
    result = moved;
  }
  // A row for all tokens that is repeated for each.
  return result.exists() ? Answer(result) : axis_of(step.output_shape());
}

Answer view(const Step& step) {
  const TokenAxis from = step.axis(0);
  if (!from.exists()) return axis_of(step.output_shape());
  const int64_t after = from.after * stride_of(step.shape(0), from.dim);
  const Dims& shape = step.output_shape();
  for (int dim = 0; dim < step.output_rank(); ++dim) {
    if (shape[static_cast<uint32_t>(dim)]->tokens() == 0) continue;
    const int64_t stride = stride_of(shape, dim);
    if (stride == 0 || after % stride != 0 || after == 0) return kMixes;
    const int64_t own = after / stride, size = shape[static_cast<uint32_t>(dim)]->tokens();
    return size % own == 0 ? Answer(TokenAxis{dim, size / own, own}) : kMixes;
  }
  return kMixes;
}

Answer permute(const Step& step) {
  const TokenAxis from = step.axis(0);
  const Dims* dims = step.dims("dims");
  if (!from.exists() || dims == nullptr) return from;
  for (uint32_t i = 0; i < dims->size(); ++i) {
    if (dims->Get(i)->constant() == from.dim) return from.at(static_cast<int>(i));
  }
  return kMixes;
}

Answer unsqueeze(const Step& step) {
  const TokenAxis from = step.axis(0);
  return from.exists() && step.integer("dim", 0) <= from.dim ? from.at(from.dim + 1) : from;
}

// Removes the dimensions that the attribute names, of which the tokens' may be none.
Answer remove(const Step& step, std::string_view name) {
  const TokenAxis from = step.axis(0);
  if (!from.exists()) return from;
  int removed = 0;
  const Dims* dims = step.dims(name);
  for (uint32_t i = 0; dims != nullptr && i < dims->size(); ++i) {
    if (dims->Get(i)->constant() == from.dim) return kMixes;
    removed += dims->Get(i)->constant() < from.dim;
  }
  return from.at(from.dim - removed);
}

Answer squeeze(const Step& step) { return remove(step, "dims"); }
Answer select(const Step& step) { return remove(step, "dim"); }

Answer along(const Step& step) {
  if (!step.same_for_all_tokens(1)) return kMixes;
  return step.axis(0).exists() && step.axis(0).dim == step.integer("dim", -1) ? Answer(kMixes) : Answer(step.axis(0));
}

Answer reduce(const Step& step) {
  const std::string_view name = step.dims("dims") != nullptr ? "dims" : "dim";
  const Answer removed = remove(step, name);
  return !removed.has_value() || step.integer("keepdim", 0) == 0 ? removed : Answer(step.axis(0));
}

Answer slice(const Step& step) {
  const TokenAxis from = step.axis(0);
  if (!from.exists() || step.integer("dim", -1) != from.dim) return from;
  const Dims *start = step.dims("start"), *end = step.dims("end");
  if (start == nullptr || end == nullptr) return kMixes;
  const bool from_first = start->Get(0)->tokens() == 0 && start->Get(0)->constant() == 0;
  const bool to_last = end->Get(0)->tokens() == from.before * from.after && end->Get(0)->constant() == 0;
  const bool all = from_first && to_last && step.integer("step", 1) == 1;
  return all ? Answer(from) : kMixes;
}

// All inputs alike.
Answer same(const Step& step) {
  for (uint32_t i = 1; i < step.num_inputs(); ++i) {
    if (!(step.axis(i) == step.axis(0))) return kMixes;
  }
  return step.axis(0);
}

Answer join(const Step& step) {
  const Answer all = same(step);
  return all.has_value() && all->exists() && all->dim == step.integer("dim", -1) ? Answer(kMixes) : all;
}

Answer pad(const Step& step) {
  const TokenAxis from = step.axis(0);
  const Dims* pad = step.dims("pad");
  const int64_t first = 2 * int64_t{step.rank(0) - 1 - from.dim};  // pairs begin with the last dimension
  for (int64_t i = first; from.exists() && pad != nullptr && i < first + 2 && i < pad->size(); ++i) {
    const fb::Dim& size = *pad->Get(static_cast<uint32_t>(i));
    if (size.tokens() != 0 || size.constant() != 0) return kMixes;
  }
  return from;
}

Answer triangle(const Step& step) {
  return step.axis(0).exists() && step.axis(0).dim >= step.rank(0) - 2 ? Answer(kMixes) : Answer(step.axis(0));
}

Answer repeat(const Step& step) {
  TokenAxis axis = step.axis(0);
  if (axis.exists() && step.integer("dim", -1) == axis.dim) axis.after *= step.integer("repeats", 1);
  return axis;
}

// Rows of x that index names, both along `dim`.
Answer index_select(const Step& step) {
  const auto dim = static_cast<int>(step.integer("dim", -1));
  const TokenAxis x = step.axis(0), index = step.axis(1);
  if (!index.exists()) return x.exists() && x.dim == dim ? Answer(kMixes) : Answer(x);
  return x.exists() ? Answer(kMixes) : Answer(index.at(dim));
}

Answer gather(const Step& step) {
  const auto dim = static_cast<int>(step.integer("dim", -1));
  const TokenAxis x = step.axis(0), index = step.axis(1);
  if (!x.exists()) return index;
  return x == index && x.dim != dim ? Answer(x) : kMixes;
}

Answer embed(const Step& step) { return step.same_for_all_tokens(1) ? Answer(step.axis(0)) : kMixes; }

// Products of rows: x [.., K], and what else there is for each row has its shape.
Answer rows(const Step& step) {
  const TokenAxis x = step.axis(0);
  for (uint32_t i = 1; i < step.num_inputs(); ++i) {
    if (step.axis(i).exists() && !(step.axis(i) == x)) return kMixes;
  }
  return x.exists() && x.dim == step.rank(0) - 1 ? Answer(kMixes) : Answer(x);
}

Answer multiply(const Step& step) {
  const TokenAxis a = step.axis(0), b = step.axis(1);
  const int rank = step.rank(0);
  if (a.exists() && b.exists()) return a == b && a.dim < rank - 2 ? Answer(a) : kMixes;
  if (a.exists()) return a.dim == rank - 2 ? Answer(a) : kMixes;
  if (b.exists()) return b.dim == rank - 1 ? Answer(b) : kMixes;
  return a;
}

Answer moe_experts(const Step& step) {
  const bool alike = step.axis(0).dim == 0 && step.axis(1) == step.axis(0) && step.axis(2) == step.axis(0);
  return alike ? Answer(step.axis(0)) : kMixes;
}

// Inputs at these dimensions, tokens one behind the other, none further; the outputs' is dimension 1.
Answer tokens_at(const Step& step, std::initializer_list<int> dims) {
  uint32_t input = 0;
  for (const int dim : dims) {
    const TokenAxis axis = step.axis(input++);
    if (axis.exists() && !(axis == TokenAxis{dim})) return kMixes;
  }
  return step.axis(0).exists() && step.same_for_all_tokens(input) ? Answer(TokenAxis{1}) : kMixes;
}

Answer rope_table(const Step& step) { return tokens_at(step, {1}); }
Answer rope(const Step& step) { return tokens_at(step, {2, 1, 1}).has_value() ? Answer(step.axis(0)) : kMixes; }
Answer attention(const Step& step) { return tokens_at(step, {2, 2, 2, 1}); }
Answer short_conv(const Step& step) { return tokens_at(step, {1}); }

using Rule = Answer (*)(const Step&);

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = [] {
    std::unordered_map<std::string_view, Rule> table{{"aten.view", view},
                                                     {"aten.permute", permute},
                                                     {"aten.unsqueeze", unsqueeze},
                                                     {"aten.squeeze", squeeze},
                                                     {"aten.expand", broadcast},
                                                     {"aten.slice", slice},
                                                     {"aten.select", select},
                                                     {"aten.clone", same},
                                                     {"aten._to_copy", same},
                                                     {"aten.cat", join},
                                                     {"aten.full", create},
                                                     {"aten.arange", count_up},
                                                     {"aten.constant_pad_nd", pad},
                                                     {"aten.tril", triangle},
                                                     {"aten.triu", triangle},
                                                     {"aten.where", broadcast},
                                                     {"aten.index_select", index_select},
                                                     {"aten.gather", gather},
                                                     {"aten.scatter", join},
                                                     {"aten.repeat_interleave", repeat},
                                                     {"aten.sum", reduce},
                                                     {"aten.mean", reduce},
                                                     {"aten.amax", reduce},
                                                     {"aten.amin", reduce},
                                                     {"aten.prod", reduce},
                                                     {"aten.any", reduce},
                                                     {"aten.all", reduce},
                                                     {"aten.argmax", reduce},
                                                     {"aten.max", reduce},
                                                     {"aten.min", reduce},
                                                     {"aten.cumsum", along},
                                                     {"aten.softmax", along},
                                                     {"aten.log_softmax", along},
                                                     {"aten.topk", along},
                                                     {"aten.sort", along},
                                                     {"aten.bmm", multiply},
                                                     {"mote.linear", rows},
                                                     {"mote.gated_linear", rows},
                                                     {"mote.rms_norm", rows},
                                                     {"mote.layer_norm", rows},
                                                     {"mote.embedding", embed},
                                                     {"mote.rope_table", rope_table},
                                                     {"mote.rope", rope},
                                                     {"mote.attention", attention},
                                                     {"mote.short_conv", short_conv},
                                                     {"mote.moe_experts", moe_experts}};
    for (const std::string_view name :
         {"neg",         "abs",         "exp",         "expm1",        "log",         "log1p",      "log2",
          "sqrt",        "rsqrt",       "reciprocal",  "sin",          "cos",         "tanh",       "sigmoid",
          "silu",        "relu",        "erf",         "floor",        "ceil",        "round",      "sign",
          "softplus",    "logical_not", "bitwise_not", "isnan",        "square",      "gelu",       "clamp",
          "leaky_relu",  "elu",         "add",         "sub",          "mul",         "div",        "pow",
          "maximum",     "minimum",     "remainder",   "floor_divide", "fmod",        "eq",         "ne",
          "lt",          "le",          "gt",          "ge",           "logical_and", "logical_or", "logical_xor",
          "bitwise_and", "bitwise_or"}) {
      for (const Op* op : all_ops()) {
        if (op->name.starts_with("aten.") && op->name.substr(5) == name) table.emplace(op->name, broadcast);
      }
    }
    return table;
  }();
  return all;
}

Status refuse(const Bound& bound, const fb::Method& method, uint32_t index) {
  const fb::Instruction& instruction = *method.instructions()->Get(index);
  const bool is_delegate = text_of(*instruction.op()) == kDelegateOp;
  const char* why =
      is_delegate ? "is run by a backend, which computes one sequence at a time: load the model for the backend cpu"
                  : "makes a token's row depend on those of other tokens";
  return {Code::kUnsupportedOp,
          format("%s: cannot compute several sequences in one step: %s: instructions[%u] (%s, %s) %s",
                 bound.file().name().c_str(), method.name()->c_str(), index, instruction.op()->c_str(),
                 instruction.origin()->c_str(), why)};
}

}  // namespace

Status check_token_rows(const Bound& bound, uint32_t index) {
  const fb::Method& method = bound.method(index);
  std::vector<TokenAxis> axes(method.values()->size());
  for (const int32_t input : *method.inputs()) {
    const Answer axis = axis_of(*method.values()->Get(static_cast<uint32_t>(input))->shape());
    MOTE_REQUIRE(axis.has_value(), Code::kUnsupportedOp,
                 "%s: cannot compute several sequences in one step: %s: input values[%d] has no row for each token",
                 bound.file().name().c_str(), method.name()->c_str(), input);
    axes[static_cast<size_t>(input)] = *axis;
  }
  for (uint32_t i = 0; i < method.instructions()->size(); ++i) {
    const fb::Instruction& instruction = *method.instructions()->Get(i);
    const auto rule = rules().find(text_of(*instruction.op()));
    const Answer axis = rule == rules().end() ? kMixes : rule->second(Step(method, instruction, axes));
    if (!axis.has_value()) return refuse(bound, method, i);
    for (const int32_t output : *instruction.outputs()) {
      if (!fits(*axis, *method.values()->Get(static_cast<uint32_t>(output))->shape())) return refuse(bound, method, i);
      axes[static_cast<size_t>(output)] = *axis;
    }
  }
  return {};
}

}  // namespace mote
