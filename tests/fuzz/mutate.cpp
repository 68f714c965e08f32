#include "tests/fuzz/mutate.h"

#include <iterator>

namespace mote::test {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kRoom = 1 << 16;

constexpr uint64_t kEdges[] = {0,
                               1,
                               2,
                               3,
                               7,
                               8,
                               9,
                               63,
                               64,
                               65,
                               255,
                               256,
                               4095,
                               4096,
                               4097,
                               0x7fff,
                               0x8000,
                               0xffff,
                               0x10000,
                               0x7ffffffe,
                               0x7fffffff,
                               0x80000000,
                               0xfffffffe,
                               0xffffffff,
                               0x100000000,
                               1ull << 40,
                               (1ull << 40) + 1,
                               1ull << 48,
                               0x7fffffffffffffc0,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0xfffffffffffffffe,
                               0xffffffffffffffff};

uint64_t edge(Random& random) { return kEdges[below(random, std::size(kEdges))]; }

// An edge value, a neighbour of the old one, its negative, or anything.
template <typename T>
void change(T& number, Random& random) {
  const auto old = static_cast<uint64_t>(number);
  switch (below(random, 5)) {
    case 0: number = static_cast<T>(edge(random)); break;
    case 1: number = static_cast<T>(old + below(random, 9) - 4); break;
    case 2: number = static_cast<T>(old ^ (uint64_t{1} << below(random, 8 * sizeof(T)))); break;
    case 3: number = static_cast<T>(0 - old); break;
    default: number = static_cast<T>(below(random, 40)); break;
  }
}

// Changes, adds, removes or repeats an element.
template <typename Vector, typename Change>
void change_vector(Vector& vector, Random& random, Change change_element) {
  using Element = typename Vector::value_type;
  const size_t action = below(random, 6);
  if (action == 0) vector.push_back(vector.empty() ? Element() : vector[below(random, vector.size())]);
  if (vector.empty()) return;
  if (action == 1) vector.pop_back();
  if (action == 2) std::swap(vector[below(random, vector.size())], vector[below(random, vector.size())]);
  if (action > 2) change_element(vector[below(random, vector.size())]);
}

template <typename T>
T* pick(const std::vector<std::unique_ptr<T>>& tables, Random& random) {
  return tables.empty() ? nullptr : tables[below(random, tables.size())].get();
}

void change_dims(std::vector<fb::Dim>& dims, Random& random) {
  change_vector(dims, random, [&](fb::Dim& dim) {
    int64_t tokens_factor = dim.tokens();
    int64_t constant_part = dim.constant();
    change(below(random, 2) == 0 ? tokens_factor : constant_part, random);
    dim = fb::Dim(tokens_factor, constant_part);
  });
}

template <typename T>
void change_enum(T& value, Random& random) {
  auto number = static_cast<uint8_t>(value);
  change(number, random);
  value = static_cast<T>(number);
}

void change_value(fb::ValueT& value, Random& random) {
  switch (below(random, 8)) {
    case 0: change_enum(value.kind, random); break;
    case 1: change_enum(value.dtype, random); break;
    case 2: change_dims(value.shape, random); break;
    case 3: change(value.weight, random); break;
    case 4: change(value.alias_of, random); break;
    case 5: change_enum(value.arena, random); break;
    case 6: change(value.offset, random); break;
    default: change(value.bytes, random); break;
  }
}

void change_attribute(fb::AttributeT& attribute, Random& random) {
  switch (below(random, 4)) {
    case 0: attribute.name = attribute.name + "x"; break;
    case 1: attribute.text = below(random, 2) == 0 ? "" : "gelu"; break;
    case 2:
      change_vector(attribute.numbers, random,
                    [&](double& number) { number = static_cast<double>(edge(random)) - 1e3; });
      break;
    default: change_dims(attribute.dims, random); break;
  }
}

void change_instruction(const fb::MethodT& method, fb::InstructionT& instruction, Random& random) {
  const auto change_index = [&](int32_t& index) {
    if (below(random, 3) != 0 && !method.values.empty()) {
      index = static_cast<int32_t>(below(random, method.values.size()));
    } else {
      change(index, random);
    }
  };
  switch (below(random, 5)) {
    case 0: change_vector(instruction.outputs, random, change_index); break;
    case 1: instruction.op = pick(method.instructions, random)->op; break;
    case 2:
    case 3: change_vector(instruction.inputs, random, change_index); break;
    default:
      if (fb::AttributeT* attribute = pick(instruction.attributes, random)) change_attribute(*attribute, random);
  }
}

void change_method(fb::MethodT& method, Random& random) {
  const auto change_index = [&](int32_t& index) { change(index, random); };
  switch (below(random, 13)) {
    case 12: method.target = method.target.empty() ? "fake" : ""; break;
    case 0: change(method.per_token_bytes, random); break;
    case 1: change(method.fixed_bytes, random); break;
    case 2: change(method.min_tokens, random); break;
    case 3: change(method.max_tokens, random); break;
    case 4: change_vector(method.inputs, random, change_index); break;
    case 5: change_vector(method.outputs, random, change_index); break;
    case 6:
      if (method.instructions.size() > 1)
        std::swap(method.instructions[0], method.instructions[below(random, method.instructions.size())]);
      break;
    case 7:
      if (!method.instructions.empty()) method.instructions.pop_back();
      break;
    case 8:
    case 9:
      if (fb::ValueT* value = pick(method.values, random)) change_value(*value, random);
      break;
    default:
      if (fb::InstructionT* instruction = pick(method.instructions, random))
        change_instruction(method, *instruction, random);
  }
}

void change_weight(fb::WeightT& weight, Random& random) {
  switch (below(random, 10)) {
    case 0: change_enum(weight.dtype, random); break;
    case 6: change(weight.scale_columns, random); break;
    case 7: change_enum(weight.low, random); break;
    case 8: weight.row_scales = !weight.row_scales; break;
    case 9: weight.codebook.assign(below(random, 2) == 0 ? 16 : below(random, 40), 1); break;
    case 1: change(weight.bits, random); break;
    case 2: change(weight.group_size, random); break;
    case 3: change_vector(weight.shape, random, [&](int64_t& size) { change(size, random); }); break;
    case 4: change(weight.offset, random); break;
    default: change(weight.bytes, random); break;
  }
}

void change_state(fb::StateT& state, Random& random) {
  switch (below(random, 8)) {
    case 0: change_enum(state.kind, random); break;
    case 1: change(state.num_heads, random); break;
    case 2: change(state.head_dim, random); break;
    case 3: change(state.value_head_dim, random); break;
    case 4: change(state.window, random); break;
    case 5: change(state.num_sink_positions, random); break;
    case 6: change(state.stride, random); break;
    default: change_vector(state.shape, random, [&](int64_t& size) { change(size, random); }); break;
  }
}

void change_segment(fb::SegmentT& segment, Random& random) {
  switch (below(random, 3)) {
    case 0: change_enum(segment.kind, random); break;
    case 1: change(segment.offset, random); break;
    default: change(segment.bytes, random); break;
  }
}

void change_delegate(fb::DelegateT& delegate, Random& random) {
  switch (below(random, 4)) {
    case 0: delegate.backend = delegate.backend + "x"; break;
    case 1: change_vector(delegate.weights, random, [&](int32_t& index) { change(index, random); }); break;
    case 2: change(delegate.offset, random); break;
    default: change(delegate.bytes, random); break;
  }
}

void change_program(fb::ProgramT& program, Random& random) {
  if (program.asset != nullptr && below(random, 4) == 0) change_asset(*program.asset, random);
  switch (below(random, 18)) {
    case 0:
      if (fb::WeightT* weight = pick(program.weights, random)) change_weight(*weight, random);
      break;
    case 1:
      if (fb::WeightT* weight = pick(program.weights, random)) change_weight(*weight, random);
      break;
    case 2:
      if (fb::StateT* state = pick(program.states, random)) change_state(*state, random);
      break;
    case 3:
      if (fb::SegmentT* segment = pick(program.segments, random)) change_segment(*segment, random);
      break;
    case 4: change(program.vocab_size, random); break;
    case 5: change(program.max_position_embeddings, random); break;
    case 6: change_vector(program.eos_token_ids, random, [&](int32_t& id) { change(id, random); }); break;
    case 7:
    case 8:
      if (fb::DelegateT* delegate = pick(program.delegates, random)) change_delegate(*delegate, random);
      break;
    default:
      if (fb::MethodT* method = pick(program.methods, random)) change_method(*method, random);
  }
}

template <typename T>
void put_edge(Bytes& file, size_t at, Random& random) {
  at -= at % sizeof(T);
  if (at + sizeof(T) <= file.size()) put(file, at, static_cast<T>(edge(random)));
}

void zero_run(Bytes& file, size_t at, Random& random) {
  const size_t length = std::min(1 + below(random, 64), file.size() - at);
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(at), length, std::byte{0});
}

void splice(Bytes& file, size_t at, Random& random) {
  const size_t from = below(random, file.size());
  const size_t length = std::min({1 + below(random, 64), file.size() - at, file.size() - from});
  const Bytes piece(file.begin() + static_cast<std::ptrdiff_t>(from),
                    file.begin() + static_cast<std::ptrdiff_t>(from + length));
  std::copy(piece.begin(), piece.end(), file.begin() + static_cast<std::ptrdiff_t>(at));
}

void damage(Bytes& file, size_t at, Random& random) {
  switch (below(random, 7)) {
    case 0:
    case 1: file[at] ^= static_cast<std::byte>(1u << below(random, 8)); break;
    case 2: file[at] = static_cast<std::byte>(random()); break;
    case 3: put_edge<uint32_t>(file, at, random); break;
    case 4: put_edge<uint64_t>(file, at, random); break;
    case 5: zero_run(file, at, random); break;
    default: splice(file, at, random); break;
  }
}

}  // namespace

void change_asset(fb::AssetT& asset, Random& random) {
  fb::AssetWeightT* weight = pick(asset.weights, random);
  if (weight == nullptr || below(random, 8) == 0) return change(asset.bytes, random);
  const auto change_offset = [&](uint64_t& offset) { change(offset, random); };
  switch (below(random, 5)) {
    case 0: change_enum(weight->layout, random); break;
    case 1: change_vector(weight->pieces, random, change_offset); break;
    case 2: change_vector(weight->multipliers, random, change_offset); break;
    case 3: change_vector(weight->scales, random, change_offset); break;
    default: change(weight->rest, random); break;
  }
}

size_t below(Random& random, size_t count) { return static_cast<size_t>(random() % count); }

Bytes mutate_bytes(Bytes file, Random& random) {
  if (file.size() <= kHeaderBytes) return file;
  const uint64_t program_bytes = std::min<uint64_t>(get<uint64_t>(file, 16), file.size() - kHeaderBytes);
  if (below(random, 8) == 0) {
    file.resize(below(random, file.size()));
  } else {
    const size_t reach = below(random, 4) == 0 ? file.size() : kHeaderBytes + static_cast<size_t>(program_bytes);
    for (size_t count = 1 + below(random, 4); count > 0; --count) damage(file, below(random, reach), random);
  }
  const bool has_program = file.size() >= kHeaderBytes + program_bytes;
  if (has_program && below(random, 2) == 0) write_header(file, static_cast<size_t>(program_bytes));
  return file;
}

std::optional<Fields> Fields::of(const Bytes& file) {
  if (file.size() <= kHeaderBytes) return std::nullopt;
  const auto* buffer = reinterpret_cast<const uint8_t*>(file.data()) + kHeaderBytes;
  flatbuffers::Verifier verifier(buffer, file.size() - kHeaderBytes);
  if (!fb::VerifyProgramBuffer(verifier)) return std::nullopt;
  const std::unique_ptr<fb::ProgramT> program = fb::UnPackProgram(buffer);
  std::vector<Bytes> segments;
  for (const auto& segment : program->segments) {
    if (segment->offset > file.size() || segment->bytes > file.size() - segment->offset) return std::nullopt;
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(segment->offset);
    segments.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(segment->bytes));
  }
  if (segments.empty()) return std::nullopt;
  Fields fields;
  fields.file_ = lay_out(*program, segments, kRoom);
  fields.program_ = pack(*program);
  fields.first_segment_ = static_cast<size_t>(program->segments[0]->offset);
  return fields;
}

Bytes Fields::mutate(Random& random) const {
  const std::unique_ptr<fb::ProgramT> program = fb::UnPackProgram(program_.data());
  for (size_t count = 1 + below(random, 3); count > 0; --count) change_program(*program, random);
  Bytes file = file_;
  replace_program(file, pack(*program), first_segment_);
  return file;
}

}  // namespace mote::test
