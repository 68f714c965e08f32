#include "runner/program/invocation.h"

#include <algorithm>
#include <array>

#include "runner/program/validation.h"

namespace mote {
namespace {

static_assert(sizeof(double) == 8 && alignof(double) <= 8, "numbers are read in place");

// The most elements of an expanded view. It has no memory of its own, so nothing else bounds how long a kernel works on
// it.
constexpr int64_t kMaxViewElements = int64_t{1} << 32;

// How long the flat lists of a method's operands are.
struct Counts {
  size_t inputs = 0;
  size_t outputs = 0;
  size_t attributes = 0;
  size_t integers = 0;
};

Counts count_operands(const fb::Method& method) {
  Counts counts;
  for (const fb::Instruction* instruction : *method.instructions()) {
    counts.inputs += instruction->inputs()->size();
    counts.outputs += instruction->outputs()->size();
    counts.attributes += instruction->attributes()->size();
    for (const fb::Attribute* attribute : *instruction->attributes()) {
      if (attribute->dims() != nullptr) counts.integers += attribute->dims()->size();
    }
  }
  return counts;
}

// Bytes from a tensor's first element to the end of its last; invalid for negative strides or on overflow.
Size extent_bytes(const Tensor& tensor) {
  Size last = 0;
  bool empty = false;
  for (int dim = 0; dim < tensor.rank; ++dim) {
    empty = empty || tensor.size(dim) == 0;
    last = last + Size(tensor.size(dim) == 0 ? 0 : tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return empty && last.valid() ? Size(0) : (last + 1) * dtype_bytes(tensor.dtype);
}

bool has_shape(const Tensor& tensor, const Tensor& declared) {
  return tensor.dtype == declared.dtype && tensor.bits == declared.bits && tensor.rank == declared.rank &&
         tensor.data == declared.data && tensor.sizes == declared.sizes;
}

}  // namespace

Size arena_bytes(const fb::Method& method, int64_t tokens) {
  return Size(method.per_token_bytes()) * tokens + method.fixed_bytes();
}

Invocation::Invocation(const Bound& bound, uint32_t method)
    : bound_(bound),
      method_(bound.method(method)),
      ops_(bound.ops(method)),
      delegate_calls_(bound.delegate_calls(method)) {
  // The flat lists must never move once calls point into them.
  const Counts counts = count_operands(method_);
  tensors_.resize(method_.values()->size());
  storage_.resize(tensors_.size());
  inputs_.reserve(counts.inputs);
  outputs_.reserve(counts.outputs);
  attributes_.reserve(counts.attributes);
  integers_.reserve(counts.integers);
  calls_.reserve(method_.instructions()->size());
  for (const fb::Instruction* instruction : *method_.instructions()) {
    calls_.emplace_back();
    gather_operands(*instruction);
    gather_attributes(*instruction);
    calls_.back().state_shapes = bound.state_shapes();
    calls_.back().packed_weights = &bound.packed_weights();
  }
  find_sources();
}

void Invocation::find_sources() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    const bool makes_output = calls_[i].outputs.size() == 1 && calls_[i].outputs[0] == &output(0);
    if (ops_[i]->finds_maxima && calls_[i].outputs[0] == &output(0)) maxima_source_ = i;
    if (makes_output && !delegate_calls_.empty() && delegate_calls_[i].has_value()) delegate_source_ = i;
  }
  const bool is_last = delegate_source_.has_value() && *delegate_source_ + 1 == calls_.size();  // nobody else reads it
  if (!is_last) delegate_source_.reset();
}

int64_t Invocation::count_maxima() const {
  if (!maxima_source_.has_value()) return 0;
  const Tensor& tensor = output(0);
  const int64_t width = tensor.size(-1);
  return width == 0 ? 0 : tensor.num_elements() / width * num_maxima(width);
}

void Invocation::gather_operands(const fb::Instruction& instruction) {
  const size_t first_input = inputs_.size();
  for (const int32_t value : *instruction.inputs()) {
    inputs_.push_back(value < 0 ? nullptr : &tensors_[static_cast<size_t>(value)]);
  }
  const size_t first_output = outputs_.size();
  for (const int32_t value : *instruction.outputs()) outputs_.push_back(&tensors_[static_cast<size_t>(value)]);
  calls_.back().inputs = {inputs_.data() + first_input, inputs_.size() - first_input};
  calls_.back().outputs = {outputs_.data() + first_output, outputs_.size() - first_output};
}

void Invocation::gather_attributes(const fb::Instruction& instruction) {
  const size_t first = attributes_.size();
  for (const fb::Attribute* source : *instruction.attributes()) {
    Attribute attribute;
    attribute.name = text_of(*source->name());
    if (source->text() != nullptr) attribute.text = text_of(*source->text());
    if (source->numbers() != nullptr) attribute.numbers = {source->numbers()->data(), source->numbers()->size()};
    if (source->dims() != nullptr) {
      attribute.integers = {integers_.data() + integers_.size(), source->dims()->size()};
      integers_.resize(integers_.size() + source->dims()->size());
    }
    attributes_.push_back(attribute);
  }
  calls_.back().attributes = {attributes_.data() + first, attributes_.size() - first};
}

void Invocation::evaluate_attributes(int64_t tokens) {
  auto target = integers_.begin();
  for (const fb::Instruction* instruction : *method_.instructions()) {
    for (const fb::Attribute* attribute : *instruction->attributes()) {
      if (attribute->dims() == nullptr) continue;
      for (const fb::Dim* dim : *attribute->dims()) *target++ = evaluate(*dim, tokens);
    }
  }
}

Status Invocation::evaluate_values(int64_t tokens, std::byte* arena) {
  const Size per_token_arena = Size(method_.per_token_bytes()) * tokens;
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    const fb::Value& value = *method_.values()->Get(i);
    Tensor& tensor = tensors_[i];
    if (value.kind() == fb::ValueKind::weight) {
      // Kernels take one Tensor type; no op may output a weight, so nothing writes to the mapping.
      tensor = bound_.verified().weight_tensor(static_cast<uint32_t>(value.weight()));
      storage_[i] = {0, bound_.program().weights()->Get(static_cast<uint32_t>(value.weight()))->bytes()};
      continue;
    }
    tensor = Tensor();
    tensor.dtype = static_cast<DType>(value.dtype());
    tensor.rank = static_cast<int>(value.shape()->size());
    for (uint32_t dim = 0; dim < value.shape()->size(); ++dim)
      tensor.sizes[dim] = evaluate(*value.shape()->Get(dim), tokens);
    tensor.set_contiguous_strides();
    if (value.alias_of() == -1) {
      const bool per_token = value.arena() == fb::Arena::per_token;
      const Size reserved = per_token ? Size(value.bytes()) * tokens : Size(value.bytes());
      const Size start = per_token ? Size(value.offset()) * tokens : per_token_arena + value.offset();
      storage_[i] = {0, extent_bytes(tensor)};
      const bool fits = storage_[i].bytes.at_most(reserved) && (start + reserved).at_most(arena_bytes(method_, tokens));
      MOTE_REQUIRE(fits, Code::kInvalidProgram, "%s: %s: values[%u] does not fit its place in the arena for T = %lld",
                   bound_.file().name().c_str(), method_.name()->c_str(), i, static_cast<long long>(tokens));
      if (arena != nullptr) tensor.data = arena + start.unsigned_value();
    }
  }
  return {};
}

std::string Invocation::place(size_t instruction) const {
  const fb::Instruction& source = *method_.instructions()->Get(static_cast<uint32_t>(instruction));
  return format("%s: %s: instructions[%zu] (%s, %s)", bound_.file().name().c_str(), method_.name()->c_str(),
                instruction, source.op()->c_str(), source.origin()->c_str());
}

Status Invocation::check_call(size_t index, int64_t tokens, int num_threads, Delegates* delegates) {
  Call& call = calls_[index];
  const Op& op = *ops_[index];
  call.view_offset_bytes = 0;
  const Tensor first = *call.outputs[0];
  if (const Status status = op.check(call); !status.ok()) {
    const bool is_file = status.code() != Code::kUnsupportedOp && status.code() != Code::kOutOfMemory;
    return Status(is_file ? Code::kInvalidProgram : status.code(),
                  place(index) + format(" for T = %lld: ", static_cast<long long>(tokens)) + status.message());
  }
  MOTE_REQUIRE(has_shape(*call.outputs[0], first), Code::kInternal, "%s: the op changed the shape of its output",
               place(index).c_str());
  if (op.is_view) return place_view(index);
  if (delegates != nullptr && !delegate_calls_.empty() && delegate_calls_[index].has_value()) {
    const Result<size_t> needed = delegates->prepare(*delegate_calls_[index], call, tokens);
    if (!needed.ok()) return Status(needed.status().code(), place(index) + ": " + needed.status().message());
    scratch_bytes_ = std::max(scratch_bytes_, *needed);
  }
  if (op.scratch_bytes != nullptr) scratch_bytes_ = std::max(scratch_bytes_, op.scratch_bytes(call, num_threads));
  return {};
}

Status Invocation::place_view(size_t index) {
  Call& call = calls_[index];
  const Tensor& source = *call.inputs[0];
  Tensor& view = *call.outputs[0];
  const Storage& from = storage_[static_cast<size_t>(&source - tensors_.data())];
  Storage& to = storage_[static_cast<size_t>(&view - tensors_.data())];
  to = {from.offset_bytes + call.view_offset_bytes, from.bytes};
  const bool aligned = Size(call.view_offset_bytes).is_multiple_of(dtype_bytes(view.dtype));
  MOTE_REQUIRE(aligned && (to.offset_bytes + extent_bytes(view)).at_most(to.bytes), Code::kInvalidProgram,
               "%s: the view reaches outside of the %lld bytes that it shares", place(index).c_str(),
               static_cast<long long>(to.bytes.value()));
  MOTE_REQUIRE(view.num_elements() <= kMaxViewElements, Code::kInvalidProgram,
               "%s: the view has %lld elements: must have at most 2^32", place(index).c_str(),
               static_cast<long long>(view.num_elements()));
  if (source.data != nullptr) view.data = static_cast<std::byte*>(source.data) + call.view_offset_bytes;
  return {};
}

Status Invocation::check_outputs() const {
  for (const int32_t output : *method_.outputs()) {
    MOTE_REQUIRE(tensors_[static_cast<size_t>(output)].is_contiguous(), Code::kInvalidProgram,
                 "%s: %s: the output (values[%d]) is a strided view: an aten.clone must make it contiguous",
                 bound_.file().name().c_str(), method_.name()->c_str(), output);
  }
  return {};
}

Status Invocation::evaluate_all(int64_t tokens, std::byte* arena, int num_threads, Delegates* delegates) {
  evaluate_attributes(tokens);
  MOTE_RETURN_IF_ERROR(evaluate_values(tokens, arena));
  scratch_bytes_ = 0;
  for (size_t i = 0; i < calls_.size(); ++i) MOTE_RETURN_IF_ERROR(check_call(i, tokens, num_threads, delegates));
  return check_outputs();
}

Status Invocation::prepare(int64_t tokens, std::byte* arena, int num_threads, Delegates* delegates) {
  tokens_ = 0;
  const int64_t max = std::min<int64_t>(method_.max_tokens(), kMaxTokens);
  MOTE_REQUIRE(tokens >= method_.min_tokens() && tokens <= max, Code::kInvalidArgument,
               "%s: %s: tokens = %lld: must be %d..%lld", bound_.file().name().c_str(), method_.name()->c_str(),
               static_cast<long long>(tokens), method_.min_tokens(), static_cast<long long>(max));
  const Status status = evaluate_all(tokens, arena, num_threads, delegates);
  if (status.ok()) tokens_ = tokens;
  return status;
}

}  // namespace mote
