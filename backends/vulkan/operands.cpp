#include "backends/vulkan/operands.h"

#include <algorithm>

namespace mote::vulkan {

Status Operands::invalid(const char* pattern, ...) const {
  va_list arguments;
  va_start(arguments, pattern);
  const std::string text = format_list(pattern, arguments);
  va_end(arguments);
  return Status(Code::kInvalidProgram,
                format("%s.nodes[%zu] (%s): with T = %lld: %s", graph_.place.c_str(), node_index_,
                       fb::EnumNameOp(node_->op), static_cast<long long>(tokens_), text.c_str()));
}

int64_t Operands::elements(const GraphValue& value) const {
  if (value.kind == fb::ValueKind::weight) return weights_[value.weight]->tensor.num_elements();
  const int64_t width = value.content == fb::Content::bytes ? 1 : 4;
  return value.bytes.at(tokens_) / width;
}

Result<View> Operands::view(const char* name, const GraphView& from, fb::Content content) const {
  const GraphValue& value = value_of(from);
  if (value.content != content) {
    return invalid("%s: holds %s: must hold %s", name, fb::EnumNameContent(value.content),
                   fb::EnumNameContent(content));
  }
  if (value.kind == fb::ValueKind::weight && weights_[value.weight]->pieces.size() > 1) {
    return invalid("%s: is larger than what the GPU binds at once", name);
  }
  View made{static_cast<uint32_t>(from.value), from.offset.at(tokens_), {}, {}};
  Size last = Size(made.offset), count = 1;
  for (size_t i = 0; i < from.sizes.size(); ++i) {
    made.sizes.push_back(from.sizes[i].at(tokens_));
    made.strides.push_back(from.strides[i].at(tokens_));
    if (made.sizes.back() < 1) return invalid("%s: is empty", name);
    last = last + Size(made.sizes.back() - 1) * Size(made.strides.back());
    count = count * Size(made.sizes.back());
  }
  if (!last.at_most(std::min(elements(value), kMaxIndex) - 1) || !count.at_most(kMaxIndex)) {
    return invalid("%s: reaches beyond its value of %lld elements", name, static_cast<long long>(elements(value)));
  }
  return made;
}

Result<View> Operands::words(const char* name, const GraphView& from) const {
  const fb::Content content = value_of(from).content;
  const bool fits = content == fb::Content::float32 || content == fb::Content::int64 || content == fb::Content::boolean;
  if (!fits) return invalid("%s: holds %s: must hold elements", name, fb::EnumNameContent(content));
  return view(name, from, content);
}

Result<View> Operands::floats(const char* name, const GraphView& from) const {
  return view(name, from, fb::Content::float32);
}

Result<View> Operands::whole(const char* name, const GraphView& from, int64_t count) const {
  if (value_of(from).content != fb::Content::float32) return invalid("%s: must hold float32", name);
  return whole_words(name, from, count);
}

Result<View> Operands::whole_words(const char* name, const GraphView& from, int64_t count) const {
  MOTE_ASSIGN(View made, words(name, from));
  if (!made.is_contiguous() || made.offset != 0 || (count != 0 && made.count() != count)) {
    return invalid("%s: must be %lld elements in order", name, static_cast<long long>(count));
  }
  return made;
}

Result<Bound> Operands::parameter(const char* name, const GraphView& from, int64_t count) const {
  if (from.value < 0) return Bound{};
  MOTE_RETURN_IF_ERROR(whole(name, from, count).status());
  return bound(static_cast<uint32_t>(from.value));
}

Result<View> Operands::integers(const char* name, const GraphView& from) const {
  MOTE_ASSIGN(View made, view(name, from, fb::Content::int64));
  if (!made.is_contiguous() || made.offset != 0) return invalid("%s: must be all of a value, in order", name);
  return made;
}

Result<RowsView> Operands::rows(const char* name, const GraphView& from) const {
  MOTE_ASSIGN(View made, floats(name, from));
  if (made.sizes.size() != 3 || (made.strides[2] != 1 && made.sizes[2] != 1)) {
    return invalid("%s: must be rows of neighbours in two dimensions", name);
  }
  const RowsView result{made, made.sizes[0], made.sizes[1], made.sizes[2]};
  return result;
}

Status Operands::needs_bytes(const char* name, const GraphView& from, Size bytes) const {
  const GraphValue& value = value_of(from);
  if (value.content != fb::Content::bytes || !bytes.at_most(value.bytes.at(tokens_))) {
    return invalid("%s: has not the %lld bytes that are needed", name, static_cast<long long>(bytes.value()));
  }
  return {};
}

Status Operands::integer_below(size_t index, int64_t limit) const {
  if (node_->integers[index] < 0 || node_->integers[index] >= limit) {
    return invalid("integers[%zu] = %lld: must be 0..%lld", index, static_cast<long long>(node_->integers[index]),
                   static_cast<long long>(limit - 1));
  }
  return {};
}

const DeviceWeight* Operands::weight_of(const GraphView& from) const {
  const GraphValue& value = value_of(from);
  return value.kind == fb::ValueKind::weight ? weights_[value.weight] : nullptr;
}

Bound Operands::bound(uint32_t value) const {
  const GraphValue& found = graph_.values[value];
  if (found.kind == fb::ValueKind::weight) return {Bind::weight, found.weight, 0};
  return {Bind::value, value, 0};
}

}  // namespace mote::vulkan
