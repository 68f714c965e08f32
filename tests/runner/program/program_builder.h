// Builds .mote files by hand for tests: values get a place in the arena each, so any order of instructions is valid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32.h"
#include "base/size.h"
#include "kernels/tensor.h"
#include "schema_generated.h"

namespace mote::test {

using Shape = std::vector<fb::Dim>;
using Bytes = std::vector<std::byte>;

inline fb::Dim constant(int64_t size) { return {0, size}; }
inline fb::Dim tokens(int64_t factor = 1) { return {factor, 0}; }

inline std::unique_ptr<fb::AttributeT> dims_attribute(const std::string& name, Shape dims) {
  auto attribute = std::make_unique<fb::AttributeT>();
  attribute->name = name;
  attribute->dims = std::move(dims);
  return attribute;
}
inline std::unique_ptr<fb::AttributeT> integer_attribute(const std::string& name, int64_t value) {
  return dims_attribute(name, {constant(value)});
}
inline std::unique_ptr<fb::AttributeT> number_attribute(const std::string& name, double value) {
  auto attribute = std::make_unique<fb::AttributeT>();
  attribute->name = name;
  attribute->numbers = {value};
  return attribute;
}
inline std::unique_ptr<fb::AttributeT> text_attribute(const std::string& name, const std::string& text) {
  auto attribute = std::make_unique<fb::AttributeT>();
  attribute->name = name;
  attribute->text = text;
  return attribute;
}

// Appends values and instructions to one method; every call returns the index of the value that it added.
class MethodBuilder {
 public:
  explicit MethodBuilder(fb::MethodT& method) : method_(method) {}

  int32_t input(const std::string& name, fb::DType dtype, Shape shape) {
    const int32_t index = planned(fb::ValueKind::input, dtype, std::move(shape));
    method_.inputs.push_back(index);
    method_.input_names.push_back(name);
    return index;
  }

  int32_t weight(const fb::ProgramT& program, int32_t weight_index) {
    const fb::WeightT& weight = *program.weights[static_cast<size_t>(weight_index)];
    auto value = std::make_unique<fb::ValueT>();
    value->kind = fb::ValueKind::weight;
    value->dtype = weight.dtype;
    for (const int64_t size : weight.shape) value->shape.push_back(constant(size));
    value->weight = weight_index;
    return add(std::move(value));
  }

  int32_t activation(Shape shape, fb::DType dtype = fb::DType::float32) {
    return planned(fb::ValueKind::activation, dtype, std::move(shape));
  }

  int32_t view_of(int32_t base, Shape shape) {
    auto value = std::make_unique<fb::ValueT>();
    value->dtype = method_.values[static_cast<size_t>(base)]->dtype;
    value->shape = std::move(shape);
    value->alias_of = base;
    return add(std::move(value));
  }

  template <typename... Attributes>
  int32_t emit(const std::string& op, std::vector<int32_t> inputs, int32_t output, Attributes... attributes) {
    emit_all(op, std::move(inputs), {output}, std::move(attributes)...);
    return output;
  }

  template <typename... Attributes>
  void emit_all(const std::string& op, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
                Attributes... attributes) {
    auto instruction = std::make_unique<fb::InstructionT>();
    instruction->op = op;
    instruction->inputs = std::move(inputs);
    instruction->outputs = std::move(outputs);
    instruction->origin = "model.layers.0";
    (instruction->attributes.push_back(std::move(attributes)), ...);
    method_.instructions.push_back(std::move(instruction));
  }

 private:
  int32_t add(std::unique_ptr<fb::ValueT> value) {
    method_.values.push_back(std::move(value));
    return static_cast<int32_t>(method_.values.size()) - 1;
  }

  // Reserves bytes for the value alone. Per-token places hold up to `tokens` + constant elements a token.
  int32_t planned(fb::ValueKind kind, fb::DType dtype, Shape shape) {
    auto value = std::make_unique<fb::ValueT>();
    Size bytes = dtype_bytes(static_cast<DType>(dtype));
    bool per_token = false;
    for (const fb::Dim& dim : shape) {
      per_token = per_token || dim.tokens() != 0;
      bytes = bytes * (dim.tokens() + dim.constant());
    }
    uint64_t& arena_bytes = per_token ? method_.per_token_bytes : method_.fixed_bytes;
    value->kind = kind;
    value->dtype = dtype;
    value->shape = std::move(shape);
    value->arena = per_token ? fb::Arena::per_token : fb::Arena::fixed;
    value->offset = arena_bytes;
    value->bytes = bytes.align_up(64).unsigned_value();
    arena_bytes += value->bytes;
    return add(std::move(value));
  }

  fb::MethodT& method_;
};

// A program and the bytes of its weights segment.
class ProgramBuilder {
 public:
  fb::ProgramT program;
  Bytes weights;
  Bytes delegates;
  std::string tokenizer;  // empty: no such segment; so with `delegates`
  std::string chat_template;

  ProgramBuilder() {
    program.provenance = std::make_unique<fb::ProvenanceT>();
    program.provenance->model_id = "test/tiny";
    program.generation_config = "{}";
    program.max_position_embeddings = 64;
  }

  MethodBuilder method(const std::string& name, int32_t max_tokens = INT32_MAX) {
    program.methods.push_back(std::make_unique<fb::MethodT>());
    program.methods.back()->name = name;
    program.methods.back()->max_tokens = max_tokens;
    return MethodBuilder(*program.methods.back());
  }

  template <typename T>
  int32_t dense_weight(const std::string& name, fb::DType dtype, std::vector<int64_t> shape,
                       const std::vector<T>& elements) {
    auto weight = std::make_unique<fb::WeightT>();
    weight->name = name;
    weight->dtype = dtype;
    weight->shape = std::move(shape);
    return add_weight(std::move(weight), elements.data(), elements.size() * sizeof(T));
  }

  // Tiles as docs/file-format.md lays them out; `tiles` has exactly the bytes that shape, bits and group imply.
  int32_t quantized_weight(const std::string& name, std::vector<int64_t> shape, uint8_t bits, int32_t group_size,
                           const Bytes& tiles) {
    auto weight = std::make_unique<fb::WeightT>();
    weight->name = name;
    weight->dtype = fb::DType::int8;
    weight->bits = bits;
    weight->group_size = group_size;
    weight->shape = std::move(shape);
    return add_weight(std::move(weight), tiles.data(), tiles.size());
  }

  int32_t kv_cache(int32_t num_heads, int32_t head_dim, int32_t window = 0) {
    auto state = std::make_unique<fb::StateT>();
    state->name = "model.layers." + std::to_string(program.states.size());
    state->num_heads = num_heads;
    state->head_dim = head_dim;
    state->value_head_dim = head_dim;
    state->window = window;
    program.states.push_back(std::move(state));
    return static_cast<int32_t>(program.states.size()) - 1;
  }

  int32_t recurrent_state(std::vector<int64_t> shape) {
    auto state = std::make_unique<fb::StateT>();
    state->name = "model.layers." + std::to_string(program.states.size());
    state->kind = fb::StateKind::recurrent;
    state->shape = std::move(shape);
    program.states.push_back(std::move(state));
    return static_cast<int32_t>(program.states.size()) - 1;
  }

  int32_t delegate(const std::string& backend, std::vector<int32_t> weight_indices, const Bytes& blob) {
    delegates.resize(Size(delegates.size()).align_up(64).unsigned_value());
    auto delegate = std::make_unique<fb::DelegateT>();
    delegate->backend = backend;
    delegate->weights = std::move(weight_indices);
    delegate->offset = delegates.size();
    delegate->bytes = blob.size();
    delegates.insert(delegates.end(), blob.begin(), blob.end());
    program.delegates.push_back(std::move(delegate));
    return static_cast<int32_t>(program.delegates.size()) - 1;
  }

  // The whole file; sets program.segments.
  Bytes build();

 private:
  int32_t add_weight(std::unique_ptr<fb::WeightT> weight, const void* data, size_t num_bytes) {
    weights.resize(Size(weights.size()).align_up(64).unsigned_value());
    weight->offset = weights.size();
    weight->bytes = num_bytes;
    const auto* bytes = static_cast<const std::byte*>(data);
    weights.insert(weights.end(), bytes, bytes + num_bytes);
    program.weights.push_back(std::move(weight));
    return static_cast<int32_t>(program.weights.size()) - 1;
  }
};

inline Bytes pack(const fb::ProgramT& program) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);  // so that the size does not depend on the offsets inside
  fb::FinishProgramBuffer(builder, fb::Program::Pack(builder, &program));
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return Bytes(data, data + builder.GetSize());
}

template <typename T>
void put(Bytes& file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof(value));
}
template <typename T>
T get(const Bytes& file, size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(value));
  return value;
}

// A header for the flatbuffer that lies at byte 64 of `file`, as the file now is.
inline void write_header(Bytes& file, size_t program_bytes) {
  std::memcpy(file.data(), "MOTE\r\n\x1a\n", 8);
  put<uint32_t>(file, 8, 5);
  put<uint32_t>(file, 12, 64);
  put<uint64_t>(file, 16, program_bytes);
  put<uint64_t>(file, 24, file.size());
  put<uint32_t>(file, 32, crc32(std::span<const std::byte>(file).subspan(64, program_bytes)));
  std::memset(file.data() + 36, 0, 28);
}

// Replaces the program of a file whose segments stay where they are; false if there is no room before the first one.
inline bool replace_program(Bytes& file, const Bytes& program, size_t first_segment) {
  if (64 + program.size() > first_segment || first_segment > file.size()) return false;
  std::memset(file.data() + 64, 0, first_segment - 64);
  std::memcpy(file.data() + 64, program.data(), program.size());
  write_header(file, program.size());
  return true;
}

// Lays the segments out behind the program, with at least `room` spare bytes for edits that make it longer, and makes
// the file. program.segments has one entry a segment; offsets and sizes are set here.
inline Bytes lay_out(fb::ProgramT& program, const std::vector<Bytes>& segments, size_t room) {
  size_t end = Size(64 + pack(program).size() + room).align_up(65536).unsigned_value();
  const size_t first_segment = end;
  for (size_t i = 0; i < segments.size(); ++i) {
    program.segments[i]->offset = Size(end).align_up(65536).unsigned_value();
    program.segments[i]->bytes = segments[i].size();
    end = program.segments[i]->offset + segments[i].size();
  }
  Bytes file(end);
  for (size_t i = 0; i < segments.size(); ++i) {
    std::copy(segments[i].begin(), segments[i].end(),
              file.begin() + static_cast<std::ptrdiff_t>(program.segments[i]->offset));
  }
  replace_program(file, pack(program), first_segment);
  return file;
}

inline Bytes ProgramBuilder::build() {
  const auto as_bytes = [](const std::string& text) {
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    return Bytes(data, data + text.size());
  };
  std::vector<Bytes> segments;
  program.segments.clear();
  const auto add = [&](fb::SegmentKind kind, Bytes bytes) {
    program.segments.push_back(std::make_unique<fb::SegmentT>());
    program.segments.back()->kind = kind;
    program.segments.back()->crc32 = crc32(bytes);
    segments.push_back(std::move(bytes));
  };
  add(fb::SegmentKind::weights, weights);
  if (!tokenizer.empty()) add(fb::SegmentKind::tokenizer, as_bytes(tokenizer));
  if (!chat_template.empty()) add(fb::SegmentKind::chat_template, as_bytes(chat_template));
  if (!delegates.empty()) add(fb::SegmentKind::delegates, delegates);
  return lay_out(program, segments, 65536);
}

}  // namespace mote::test
