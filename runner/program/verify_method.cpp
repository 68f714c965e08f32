#include <algorithm>
#include <set>

#include "kernels/tensor.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

constexpr uint32_t kMaxValues = 1 << 20;
constexpr uint32_t kMaxOperands = 1024;  // of one instruction
constexpr uint32_t kMaxAttributes = 32;  // of one instruction
constexpr uint32_t kMaxIntegers = 32;    // of one attribute
constexpr int64_t kMaxOperandsInMethod = 1 << 22;
constexpr int64_t kMaxAttributesInMethod = 1 << 20;

// Walks one method in the order of its instructions and records what it learns of each value.
class MethodVerifier {
 public:
  MethodVerifier(const Path& path, const fb::Program& program, const fb::Method& method)
      : path_(path), program_(program), method_(method) {}

  Status verify() {
    MOTE_RETURN_IF_ERROR(check_header());
    const auto num_values = method_.values()->size();
    base_.resize(num_values);
    live_.resize(num_values);
    for (uint32_t i = 0; i < num_values; ++i) MOTE_RETURN_IF_ERROR(check_value(i));
    MOTE_RETURN_IF_ERROR(check_inputs());
    for (uint32_t i = 0; i < method_.instructions()->size(); ++i) MOTE_RETURN_IF_ERROR(check_instruction(i));
    MOTE_RETURN_IF_ERROR(check_outputs());
    return verify_memory(path_, method_, live_);
  }

 private:
  Status check_header();
  Status check_value(uint32_t index);
  Status check_shape(const Path& path, const fb::Value& value);
  Status check_weight_value(const Path& path, const fb::Value& value);
  Status check_alias(const Path& path, uint32_t index, const fb::Value& value);
  Status check_storage(const Path& path, const fb::Value& value);
  Status check_inputs();
  Status check_outputs();
  Status check_instruction(uint32_t index);
  Status check_operands(const Path& path, int32_t position, const fb::Instruction& instruction);
  Status check_attribute(const Path& path, const fb::Attribute& attribute);
  Status define(const Path& path, const fb::Instruction& instruction, int32_t position, int32_t value);

  bool is_value(int32_t index) const { return index >= 0 && static_cast<uint32_t>(index) < method_.values()->size(); }
  const fb::Value& value(int32_t index) const { return *method_.values()->Get(static_cast<uint32_t>(index)); }
  LiveRange& storage(int32_t index) { return live_[base_[static_cast<size_t>(index)]]; }
  bool is_defined(int32_t index) const {
    return value(index).kind() == fb::ValueKind::weight || defined_[static_cast<size_t>(index)];
  }

  const Path& path_;
  const fb::Program& program_;
  const fb::Method& method_;
  TokenRange range_;
  int64_t num_operands_ = 0;
  int64_t num_attributes_ = 0;
  std::vector<uint32_t> base_;   // [values], the value whose storage it uses, itself if it is no view
  std::vector<LiveRange> live_;  // [values], of storage: entries of views stay empty
  std::vector<bool> defined_;    // [values]
};

Status MethodVerifier::check_header() {
  MOTE_RETURN_IF_ERROR(check_text(Path{&path_, "name", -1}, *method_.name(), kMaxNameBytes));
  if (method_.target() != nullptr) {
    const Path path{&path_, "target", -1};
    MOTE_RETURN_IF_ERROR(check_text(path, *method_.target(), kMaxNameBytes));
    if (method_.target()->size() == 0)
      return invalid(path, "is empty: must be \"cpu\", the names of backends joined by \"+\", or absent");
  }
  const int64_t min = method_.min_tokens();
  const int64_t max = method_.max_tokens();
  if (min < 1 || min > kMaxTokens)
    return invalid(Path{&path_, "min_tokens", -1}, "= %lld: must be 1..2^20", static_cast<long long>(min));
  if (max < min)
    return invalid(Path{&path_, "max_tokens", -1}, "= %lld: must be at least min_tokens", static_cast<long long>(max));
  range_ = {min, std::min(max, kMaxTokens)};
  const Size per_token = method_.per_token_bytes();
  const Size fixed = method_.fixed_bytes();
  if (!per_token.is_multiple_of(kArenaAlignment) || !fixed.is_multiple_of(kArenaAlignment) ||
      !(per_token * range_.max + fixed).at_most(kMaxArenaBytes)) {
    return invalid(
        path_, "per_token_bytes = %llu, fixed_bytes = %llu: must be multiples of 64 and below 2^50 at the largest T",
        static_cast<unsigned long long>(method_.per_token_bytes()),
        static_cast<unsigned long long>(method_.fixed_bytes()));
  }
  const uint32_t values = method_.values()->size();
  const uint32_t instructions = method_.instructions()->size();
  if (values > kMaxValues) return invalid(path_, "has %u values: must have at most %u", values, kMaxValues);
  if (instructions > values)
    return invalid(path_, "has %u instructions for %u values: each must define one", instructions, values);
  defined_.resize(values);
  return {};
}

Status MethodVerifier::check_value(uint32_t index) {
  const fb::Value& checked = *method_.values()->Get(index);
  const Path path{&path_, "values", index};
  if (checked.kind() > fb::ValueKind::MAX)
    return invalid(path, "kind = %d: must be 0..2", static_cast<int>(checked.kind()));
  if (checked.dtype() > fb::DType::MAX)
    return invalid(path, "dtype = %d: must be 0..7", static_cast<int>(checked.dtype()));
  if (checked.arena() > fb::Arena::MAX)
    return invalid(path, "arena = %d: must be 0 or 1", static_cast<int>(checked.arena()));
  MOTE_RETURN_IF_ERROR(check_shape(path, checked));
  base_[index] = index;
  if (checked.kind() == fb::ValueKind::weight) return check_weight_value(path, checked);
  if (checked.weight() != -1) return invalid(path, "weight = %d: must be -1 unless kind is weight", checked.weight());
  if (checked.alias_of() != -1) return check_alias(path, index, checked);
  return check_storage(path, checked);
}

Status MethodVerifier::check_shape(const Path& path, const fb::Value& checked) {
  const auto& shape = *checked.shape();
  if (shape.size() > kMaxRank) return invalid(path, "shape has %u dimensions: must have at most 8", shape.size());
  MOTE_RETURN_IF_ERROR(check_aligned(Path{&path, "shape", -1}, shape));
  for (uint32_t i = 0; i < shape.size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_dim(Path{&path, "shape", i}, *shape.Get(i), range_, 0, kMaxElements));
  }
  for (const int64_t tokens : {range_.min, range_.max}) {
    Size elements = 1;  // an empty dimension counts as 1, so that strides cannot overflow either
    for (const fb::Dim* dim : shape) elements = elements * std::max<int64_t>(evaluate(*dim, tokens), 1);
    if (!elements.at_most(kMaxElements)) {
      return invalid(path, "shape has more than 2^40 elements for T = %lld", static_cast<long long>(tokens));
    }
  }
  return {};
}

Status MethodVerifier::check_weight_value(const Path& path, const fb::Value& checked) {
  const auto& weights = *program_.weights();
  if (checked.weight() < 0 || static_cast<uint32_t>(checked.weight()) >= weights.size()) {
    return invalid(Path{&path, "weight", -1}, "= %d: must be 0..%d", checked.weight(),
                   static_cast<int>(weights.size()) - 1);
  }
  if (checked.alias_of() != -1) return invalid(path, "alias_of = %d: must be -1 for a weight", checked.alias_of());
  const fb::Weight& weight = *weights[static_cast<uint32_t>(checked.weight())];
  if (checked.dtype() != weight.dtype()) {
    return invalid(Path{&path, "dtype", -1}, "= %s: weight %s has %s", fb::EnumNameDType(checked.dtype()),
                   weight.name()->c_str(), fb::EnumNameDType(weight.dtype()));
  }
  bool same = checked.shape()->size() == weight.shape()->size();
  for (uint32_t i = 0; same && i < weight.shape()->size(); ++i) {
    const fb::Dim& dim = *checked.shape()->Get(i);
    same = dim.tokens() == 0 && dim.constant() == weight.shape()->Get(i);
  }
  if (!same) return invalid(path, "shape: must be that of weight %s", weight.name()->c_str());
  return {};
}

Status MethodVerifier::check_alias(const Path& path, uint32_t index, const fb::Value& checked) {
  const int32_t target = checked.alias_of();
  if (target < 0 || static_cast<uint32_t>(target) >= index) {
    return invalid(Path{&path, "alias_of", -1}, "= %d: must be -1 or a value before this one", target);
  }
  if (checked.kind() != fb::ValueKind::activation)
    return invalid(path, "alias_of = %d: must be -1 for an input", target);
  base_[index] = base_[static_cast<size_t>(target)];
  const fb::Value& base = *method_.values()->Get(base_[index]);
  if (base.kind() == fb::ValueKind::weight &&
      program_.weights()->Get(static_cast<uint32_t>(base.weight()))->bits() != 0) {
    return invalid(Path{&path, "alias_of", -1}, "= %d: quantised weights have no views", target);
  }
  if (checked.dtype() != base.dtype()) {
    return invalid(Path{&path, "dtype", -1}, "= %s: a view has its input's, %s", fb::EnumNameDType(checked.dtype()),
                   fb::EnumNameDType(base.dtype()));
  }
  return {};
}

Status MethodVerifier::check_storage(const Path& path, const fb::Value& checked) {
  const Size offset = checked.offset();
  const Size bytes = checked.bytes();
  if (!offset.is_multiple_of(kArenaAlignment)) {
    return invalid(Path{&path, "offset", -1}, "= %llu: must be a multiple of 64",
                   static_cast<unsigned long long>(checked.offset()));
  }
  if (!bytes.is_multiple_of(kArenaAlignment)) {
    return invalid(Path{&path, "bytes", -1}, "= %llu: must be a multiple of 64",
                   static_cast<unsigned long long>(checked.bytes()));
  }
  const bool per_token = checked.arena() == fb::Arena::per_token;
  const uint64_t arena_bytes = per_token ? method_.per_token_bytes() : method_.fixed_bytes();
  if (!(offset + bytes).at_most(arena_bytes)) {
    return invalid(path, "= %llu + %llu bytes: must lie in its arena (%s_bytes = %llu)",
                   static_cast<unsigned long long>(checked.offset()), static_cast<unsigned long long>(checked.bytes()),
                   fb::EnumNameArena(checked.arena()), static_cast<unsigned long long>(arena_bytes));
  }
  for (const int64_t tokens : {range_.min, range_.max}) {
    Size needed = dtype_bytes(static_cast<DType>(checked.dtype()));
    for (const fb::Dim* dim : *checked.shape()) needed = needed * evaluate(*dim, tokens);
    const Size reserved = per_token ? bytes * tokens : bytes;
    if (needed.at_most(reserved)) continue;
    return invalid(Path{&path, "bytes", -1}, "= %llu: the value needs %lld bytes for T = %lld, the plan reserves %lld",
                   static_cast<unsigned long long>(checked.bytes()), static_cast<long long>(needed.value()),
                   static_cast<long long>(tokens), static_cast<long long>(reserved.value()));
  }
  return {};
}

Status MethodVerifier::check_inputs() {
  const auto& inputs = *method_.inputs();
  if (inputs.size() != method_.input_names()->size()) {
    return invalid(path_, "has %u inputs and %u input_names: must have as many", inputs.size(),
                   method_.input_names()->size());
  }
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const Path path{&path_, "inputs", i};
    MOTE_RETURN_IF_ERROR(check_text(Path{&path_, "input_names", i}, *method_.input_names()->Get(i), kMaxNameBytes));
    if (!is_value(inputs[i]) || value(inputs[i]).kind() != fb::ValueKind::input) {
      return invalid(path, "= %d: must be the index of a value of kind input", inputs[i]);
    }
    if (defined_[static_cast<size_t>(inputs[i])]) return invalid(path, "= %d: is an input twice", inputs[i]);
    defined_[static_cast<size_t>(inputs[i])] = true;
    live_[static_cast<size_t>(inputs[i])] = {0, 0};
  }
  for (uint32_t i = 0; i < method_.values()->size(); ++i) {
    if (method_.values()->Get(i)->kind() == fb::ValueKind::input && !defined_[i]) {
      return invalid(Path{&path_, "values", i}, "kind = input: must be listed in the method's inputs");
    }
  }
  return {};
}

Status MethodVerifier::check_outputs() {
  const auto& outputs = *method_.outputs();
  const auto end = static_cast<int32_t>(method_.instructions()->size()) + 1;
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Path path{&path_, "outputs", i};
    if (!is_value(outputs[i]) || value(outputs[i]).kind() != fb::ValueKind::activation) {
      return invalid(path, "= %d: must be the index of a value of kind activation", outputs[i]);
    }
    if (!is_defined(outputs[i])) return invalid(path, "= %d: no instruction computes this value", outputs[i]);
    storage(outputs[i]).last = end;
  }
  return {};
}

Status MethodVerifier::check_instruction(uint32_t index) {
  const fb::Instruction& instruction = *method_.instructions()->Get(index);
  const Path path{&path_, "instructions", index};
  MOTE_RETURN_IF_ERROR(check_text(Path{&path, "op", -1}, *instruction.op(), kMaxNameBytes));
  MOTE_RETURN_IF_ERROR(check_text(Path{&path, "origin", -1}, *instruction.origin(), kMaxLongNameBytes));
  MOTE_RETURN_IF_ERROR(check_operands(path, static_cast<int32_t>(index) + 1, instruction));
  const auto& attributes = *instruction.attributes();
  num_attributes_ += attributes.size();
  if (attributes.size() > kMaxAttributes || num_attributes_ > kMaxAttributesInMethod) {
    return invalid(path, "has %u attributes: must have at most %u, all instructions together 2^20", attributes.size(),
                   kMaxAttributes);
  }
  for (uint32_t i = 0; i < attributes.size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_attribute(Path{&path, "attributes", i}, *attributes[i]));
  }
  return {};
}

Status MethodVerifier::check_operands(const Path& path, int32_t position, const fb::Instruction& instruction) {
  const auto& inputs = *instruction.inputs();
  const auto& outputs = *instruction.outputs();
  num_operands_ += int64_t{inputs.size()} + outputs.size();
  if (outputs.size() < 1 || outputs.size() > kMaxOperands || inputs.size() > kMaxOperands ||
      num_operands_ > kMaxOperandsInMethod) {
    return invalid(path, "has %u inputs and %u outputs: must have 0..%u and 1..%u, all instructions together 2^22",
                   inputs.size(), outputs.size(), kMaxOperands, kMaxOperands);
  }
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == -1) continue;
    const Path input{&path, "inputs", i};
    if (!is_value(inputs[i])) {
      return invalid(input, "= %d: must be -1 or 0..%d", inputs[i], static_cast<int>(method_.values()->size()) - 1);
    }
    if (!is_defined(inputs[i]))
      return invalid(input, "= %d: no instruction before this one computes this value", inputs[i]);
    storage(inputs[i]).last = position;
  }
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    MOTE_RETURN_IF_ERROR(define(Path{&path, "outputs", i}, instruction, position, outputs[i]));
  }
  return {};
}

Status MethodVerifier::define(const Path& path, const fb::Instruction& instruction, int32_t position, int32_t index) {
  if (!is_value(index) || value(index).kind() != fb::ValueKind::activation) {
    return invalid(path, "= %d: must be the index of a value of kind activation", index);
  }
  if (is_defined(index)) return invalid(path, "= %d: another output already defines this value", index);
  defined_[static_cast<size_t>(index)] = true;
  const int32_t target = value(index).alias_of();
  if (target == -1) {
    storage(index) = {position, position};
    return {};
  }
  const int32_t viewed = instruction.inputs()->size() >= 1 ? instruction.inputs()->Get(0) : -1;
  const bool shares = viewed >= 0 && base_[static_cast<size_t>(viewed)] == base_[static_cast<size_t>(index)];
  if (!shares || instruction.outputs()->size() != 1) {
    return invalid(path, "= %d: alias_of = %d: must be the storage of inputs[0], and this the only output", index,
                   target);
  }
  storage(index).last = position;
  return {};
}

Status MethodVerifier::check_attribute(const Path& path, const fb::Attribute& attribute) {
  MOTE_RETURN_IF_ERROR(check_text(Path{&path, "name", -1}, *attribute.name(), kMaxNameBytes));
  const int present = (attribute.dims() != nullptr) + (attribute.numbers() != nullptr) + (attribute.text() != nullptr);
  if (present != 1) return invalid(path, "has %d of dims, numbers and text: must have exactly one", present);
  if (attribute.text() != nullptr) return check_text(Path{&path, "text", -1}, *attribute.text(), kMaxNameBytes);
  if (attribute.numbers() != nullptr) return check_aligned(Path{&path, "numbers", -1}, *attribute.numbers());
  const auto& dims = *attribute.dims();
  MOTE_RETURN_IF_ERROR(check_aligned(Path{&path, "dims", -1}, dims));
  if (dims.size() > kMaxIntegers) return invalid(path, "has %u dims: must have at most %u", dims.size(), kMaxIntegers);
  for (uint32_t i = 0; i < dims.size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_dim(Path{&path, "dims", i}, *dims.Get(i), range_, -kMaxAttribute, kMaxAttribute));
  }
  if (text_of(*attribute.name()) != "state") return {};
  const auto num_states = static_cast<int64_t>(program_.states()->size());
  if (dims.size() != 1 || dims.Get(0)->tokens() != 0) return invalid(path, "state: must be one constant");
  return check_dim(Path{&path, "dims", 0}, *dims.Get(0), range_, 0, num_states - 1);
}

// Whether a value is of this type and shape, for calls of any length.
bool has_type(const fb::Method& method, int32_t value, fb::DType dtype, std::initializer_list<fb::Dim> expected) {
  const fb::Value& found = *method.values()->Get(static_cast<uint32_t>(value));
  if (found.dtype() != dtype || found.shape()->size() != expected.size()) return false;
  for (const int64_t tokens : {int64_t{method.min_tokens()}, std::min<int64_t>(method.max_tokens(), kMaxTokens)}) {
    uint32_t i = 0;
    for (const fb::Dim& dim : expected) {
      if (evaluate(*found.shape()->Get(i++), tokens) != evaluate(dim, tokens)) return false;
    }
  }
  return true;
}

// What a method gives for a call: float32 [1, rows, width].
struct Output {
  const char* name;
  fb::Dim rows;
  int64_t width;
};

Status check_output(const Path& path, const fb::Method& method, uint32_t index, const Output& given) {
  if (has_type(method, method.outputs()->Get(index), fb::DType::float32, {{0, 1}, given.rows, {0, given.width}}))
    return {};
  return invalid(Path{&path, "outputs", index}, "must be %s, float32 [1, %s, %lld]", given.name,
                 given.rows.tokens() == 1 ? "T" : "1", static_cast<long long>(given.width));
}

// The hidden states that a method gives beside its logits where its target has a head; width 0: there is none.
struct HiddenStates {
  int64_t width = 0;
  fb::Dim rows{1, 0};
};

// Inputs and outputs of a method.
Status check_contract(const Path& path, const fb::Method& method, const Output& given, const HiddenStates& hidden) {
  static constexpr const char* kInputNames[] = {"input_ids", "position_ids", "hidden_states"};
  const bool is_head = head_depth(method).has_value();
  const TokenRange range{method.min_tokens(), std::min<int64_t>(method.max_tokens(), kMaxTokens)};
  const bool may_be_fixed = text_of(*method.name()) != "decode";
  if (range.min != 1 && !(may_be_fixed && range.min == range.max)) {
    return invalid(Path{&path, "min_tokens", -1}, "= %lld: must be 1%s", static_cast<long long>(range.min),
                   may_be_fixed ? ", or max_tokens where calls have one length" : "");
  }
  const uint32_t num_inputs = is_head ? 3 : 2, num_outputs = hidden.width > 0 ? 2 : 1;
  if (method.inputs()->size() != num_inputs || method.outputs()->size() != num_outputs) {
    return invalid(path, "has %u inputs and %u outputs: must have input_ids, position_ids%s and %s%s",
                   method.inputs()->size(), method.outputs()->size(), is_head ? ", hidden_states" : "", given.name,
                   hidden.width > 0 ? ", hidden states" : "");
  }
  for (uint32_t i = 0; i < num_inputs; ++i) {
    const flatbuffers::String& name = *method.input_names()->Get(i);
    if (text_of(name) != kInputNames[i])
      return invalid(Path{&path, "input_names", i}, "= %s: must be %s", name.c_str(), kInputNames[i]);
    if (i == 2) {
      if (!has_type(method, method.inputs()->Get(i), fb::DType::float32, {{0, 1}, {1, 0}, {0, hidden.width}}))
        return invalid(Path{&path, "inputs", i}, "(%s): must be float32 [1, T, width]", name.c_str());
    } else if (!has_type(method, method.inputs()->Get(i), fb::DType::int64, {{0, 1}, {1, 0}})) {
      return invalid(Path{&path, "inputs", i}, "(%s): must be int64 [1, T]", name.c_str());
    }
  }
  MOTE_RETURN_IF_ERROR(check_output(path, method, 0, given));
  if (hidden.width == 0) return {};
  return check_output(path, method, 1, {"hidden states", hidden.rows, hidden.width});
}

bool is_fixed(const fb::Method& method) { return method.min_tokens() == method.max_tokens(); }

// The width of what `embed` gives, which no other part of the file says.
int64_t embedding_width(const fb::Method& method) {
  if (method.outputs()->size() != 1) return 1;
  const auto& shape = *method.values()->Get(static_cast<uint32_t>(method.outputs()->Get(0)))->shape();
  return shape.size() == 3 ? std::max<int64_t>(1, shape.Get(2)->constant()) : 1;
}

// The head of a depth in a target, or nullptr.
const fb::Method* find_head(const fb::Program& program, std::string_view target, size_t depth) {
  for (const fb::Method* method : *program.methods()) {
    if (target_of(*method) == target && head_depth(*method) == depth) return method;
  }
  return nullptr;
}

// The width of the hidden states that the heads of a target read; 0: it has none.
int64_t head_width(const fb::Program& program, std::string_view target) {
  if (const fb::Method* method = find_head(program, target, 0); method != nullptr) {
    if (method->inputs()->size() != 3) return 1;  // which its own check refuses
    const auto& shape = *method->values()->Get(static_cast<uint32_t>(method->inputs()->Get(2)))->shape();
    return shape.size() == 3 ? std::max<int64_t>(1, shape.Get(2)->constant()) : 1;
  }
  return 0;
}

// A head reads what the one before gives: its hidden states of every position.
Status verify_head(const Path& path, const fb::Program& program, const fb::Method& method, size_t depth,
                   int64_t width) {
  const char* name = method.name()->c_str();
  const std::string_view target = target_of(method);
  if (depth > 0 && find_head(program, target, depth - 1) == nullptr)
    return invalid(path, "%s: must follow %s, which the target %s lacks", name, kHeadMethods[depth - 1].data(),
                   std::string(target).c_str());
  const bool is_last = find_head(program, target, depth + 1) == nullptr;
  const HiddenStates hidden{width, is_last ? fb::Dim{0, 1} : fb::Dim{1, 0}};
  MOTE_RETURN_IF_ERROR(check_contract(path, method, {"logits", {0, 1}, program.vocab_size()}, hidden));
  MOTE_RETURN_IF_ERROR(verify_head_states(path, program, method, is_last && depth == 0));
  return is_fixed(method) ? invalid(path, "%s: must take calls of any length", name) : Status();
}

// Checks a method if the runner calls one of its name. -> true: it does
Result<bool> verify_called(const Path& path, const fb::Program& program, const fb::Method& method) {
  const std::string_view name = text_of(*method.name());
  const int64_t width = head_width(program, target_of(method));
  if (const std::optional<size_t> depth = head_depth(method); depth.has_value()) {
    MOTE_RETURN_IF_ERROR(verify_head(path, program, method, *depth, width));
    return true;
  }
  if (name == kEmbed) {
    MOTE_RETURN_IF_ERROR(check_contract(path, method, {"hidden states", {1, 0}, embedding_width(method)}, {}));
    if (is_fixed(method)) return invalid(path, "embed: must take calls of any length");
    return true;
  }
  if (std::ranges::find(kGenerating, name) == std::end(kGenerating)) return false;
  const fb::Dim rows = name == "verify" ? fb::Dim{1, 0} : fb::Dim{0, 1};
  MOTE_RETURN_IF_ERROR(check_contract(path, method, {"logits", rows, program.vocab_size()}, {width}));
  return true;
}

// Checks that a target has the methods that the runner calls: those that generate, embed, or all.
Status verify_target(const Path& file, const fb::Program& program, std::string_view target) {
  const auto& methods = *program.methods();
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < methods.size(); ++i) {
    if (target_of(*methods[i]) != target) continue;
    MOTE_ASSIGN(const bool is_called, verify_called(Path{&file, "methods", i}, program, *methods[i]));
    if (is_called) names.insert(text_of(*methods[i]->name()));
  }
  if (names.size() == 1 && names.contains(kEmbed)) return {};
  for (const std::string_view name : kGenerating) {
    if (names.contains(name)) continue;
    return invalid(file, "methods: must have one named %.*s with the target %.*s", static_cast<int>(name.size()),
                   name.data(), static_cast<int>(target.size()), target.data());
  }
  return {};
}

// Methods of one name in one target must each take calls of one length, and no two of them the same.
bool are_distinct(const fb::Method& a, const fb::Method& b) {
  if (text_of(*a.name()) != text_of(*b.name()) || target_of(a) != target_of(b)) return true;
  return is_fixed(a) && is_fixed(b) && a.max_tokens() != b.max_tokens();
}

}  // namespace

Status verify_method(const Path& path, const fb::Program& program, const fb::Method& method) {
  return MethodVerifier(path, program, method).verify();
}

Status verify_method_set(const Path& file, const fb::Program& program) {
  const auto& methods = *program.methods();
  for (uint32_t i = 0; i < methods.size(); ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      if (are_distinct(*methods[i], *methods[j])) continue;
      return invalid(Path{&file, "methods", i}, "name = %s: is the name of another method",
                     methods[i]->name()->c_str());
    }
  }
  const std::vector<std::string_view> targets = targets_of(program);
  if (targets.empty()) return invalid(file, "methods: must have one named prefill");
  for (const std::string_view target : targets) MOTE_RETURN_IF_ERROR(verify_target(file, program, target));
  return {};
}

}  // namespace mote
