#include "runner/program/token_rows.h"

#include <vector>

#include "runner/program/delegates.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

void append(const flatbuffers::Vector<const fb::Dim*>& from, std::vector<Dim>& to) {
  for (const fb::Dim* dim : from) to.push_back({dim->constant(), dim->tokens()});
}

// Does a value of this shape have its tokens there, and in no other dimension?
bool fits(const TokenAxis& axis, std::span<const Dim> shape) {
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    const Dim& size = shape[static_cast<size_t>(dim)];
    if (size.tokens != (dim == axis.dim ? axis.before * axis.after : 0)) return false;
    if (dim == axis.dim && size.constant != 0) return false;
  }
  return axis.dim < static_cast<int>(shape.size());
}

// A method while T is open: where the tokens of its values lie, followed through its instructions.
class Rows {
 public:
  explicit Rows(const fb::Method& method) : values_(method.values()->size()) {
    for (uint32_t i = 0; i < method.values()->size(); ++i) append(*method.values()->Get(i)->shape(), values_[i].shape);
  }

  // Says that the value is an input. -> false: it has no row for each token.
  bool begin(int32_t input) {
    Value& value = at(input);
    const OutputAxis axis = axis_of(value.shape);
    value.axis = axis.value_or(TokenAxis());
    return axis.has_value();
  }
  // -> false: the instruction makes a token's row depend on those of other tokens.
  bool pass(const fb::Instruction& instruction, const Op& op) {
    if (op.token_axis == nullptr) return false;
    const OutputAxis axis = op.token_axis(call_of(instruction));
    if (!axis.has_value()) return false;
    for (const int32_t output : *instruction.outputs()) {
      if (!fits(*axis, at(output).shape)) return false;
      at(output).axis = *axis;
    }
    return true;
  }

 private:
  struct Value {
    std::vector<Dim> shape;
    TokenAxis axis;
  };

  Value& at(int32_t value) { return values_[static_cast<size_t>(value)]; }

  // Valid until the next.
  SymbolicCall call_of(const fb::Instruction& instruction) {
    inputs_.clear();
    for (const int32_t input : *instruction.inputs()) {
      inputs_.push_back(input < 0 ? SymbolicCall::Input() : SymbolicCall::Input{at(input).shape, at(input).axis});
    }
    size_t num_dims = 0;
    for (const fb::Attribute* attribute : *instruction.attributes()) {
      if (attribute->dims() != nullptr) num_dims += attribute->dims()->size();
    }
    attributes_.clear();
    dims_.clear();
    dims_.reserve(num_dims);  // so that the spans stay
    for (const fb::Attribute* attribute : *instruction.attributes()) {
      if (attribute->dims() == nullptr) continue;
      const size_t first = dims_.size();
      append(*attribute->dims(), dims_);
      attributes_.push_back({text_of(*attribute->name()), std::span(dims_).subspan(first)});
    }
    return {inputs_, at(instruction.outputs()->Get(0)).shape, attributes_};
  }

  std::vector<Value> values_;
  std::vector<SymbolicCall::Input> inputs_;
  std::vector<SymbolicCall::Attribute> attributes_;
  std::vector<Dim> dims_;  // of the attributes
};

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
  Rows rows(method);
  for (const int32_t input : *method.inputs()) {
    MOTE_REQUIRE(rows.begin(input), Code::kUnsupportedOp,
                 "%s: cannot compute several sequences in one step: %s: input values[%d] has no row for each token",
                 bound.file().name().c_str(), method.name()->c_str(), input);
  }
  for (uint32_t i = 0; i < method.instructions()->size(); ++i) {
    if (!rows.pass(*method.instructions()->Get(i), *bound.ops(index)[i])) return refuse(bound, method, i);
  }
  return {};
}

}  // namespace mote
