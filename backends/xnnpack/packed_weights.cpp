#include "backends/xnnpack/packed_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "backends/xnnpack/unpack.h"
#include "base/size.h"

namespace mote::xnnpack {
namespace {

constexpr size_t kNotFound = SIZE_MAX;

bool is_kernel_of(const GraphNode& node, uint32_t value) { return node.op == fb::Op::fully_connected && node.inputs[1] == value; }

std::string value_key(const DelegatePart& part, const GraphValue& value) {
  if (value.kind == fb::ValueKind::constant) {
    std::string key = "constant";
    for (const LinearSize& size : value.shape) key += format(" %lld", static_cast<long long>(size.constant));
    return key + ":" + std::string(reinterpret_cast<const char*>(value.numbers.data()), value.numbers.size() * sizeof(float));
  }
  return format("weight %u form %u rows %lld+%lld offset %a", part.weights[value.weight].index, static_cast<unsigned>(value.form),
                static_cast<long long>(value.first_row), static_cast<long long>(value.shape[0].constant), static_cast<double>(value.offset));
}

std::string kernel_key(const DelegatePart& part, const Graph& graph, const GraphNode& node) {
  std::string key = value_key(part, graph.values[node.inputs[1]]);
  key += format(" input %u bias ", static_cast<unsigned>(graph.values[node.inputs[0]].dtype));
  return node.inputs.size() == 3 ? key + value_key(part, graph.values[node.inputs[2]]) : key;
}

Size num_elements(const GraphValue& value) {
  Size count = 1;
  for (const LinearSize& size : value.shape) count = count * size.constant;
  return count;
}

}  // namespace

Result<Pages> Pages::make(size_t bytes) {
  void* data = ::mmap(nullptr, std::max<size_t>(bytes, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MOTE_REQUIRE(data != MAP_FAILED, Code::kOutOfMemory, "no memory for %zu bytes of weights", bytes);
  return Pages(static_cast<std::byte*>(data), std::max<size_t>(bytes, 1));
}

Pages::Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Pages::~Pages() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

void Pages::drop() {
  // Mapping anew gives the pages back at once on every system. If it fails they just stay.
  (void)::mmap(data_, bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

PackedWeights::PackedWeights()
    : provider_{this, look_up, reserve_space, insert,
                [](void* self) { return static_cast<PackedWeights*>(self)->is_finished_; },
                [](void* self, size_t index) -> void* { return static_cast<PackedWeights*>(self)->spaces_[index].data(); },
                [](void*) { return XnnStatus::kSuccess; }, nullptr} {}

Result<std::vector<StaticTensor>> PackedWeights::add(const DelegatePart& part, const Graph& graph) {
  std::vector<StaticTensor> tensors(graph.values.size());
  const auto add_value = [&](uint32_t index, const Key& key, bool is_kernel) -> Status {
    const GraphValue& value = graph.values[index];
    Result<StaticTensor> tensor = find_or_make(part, value, key, is_kernel);
    if (!tensor.ok()) {
      return Status(tensor.status().code(), format("%s.values[%u]: %s", part.place.c_str(), index, tensor.status().message().c_str()));
    }
    tensors[index] = *tensor;
    return {};
  };
  for (const GraphNode& node : graph.nodes) {
    for (const uint32_t input : node.inputs) {
      if (!graph.values[input].is_static()) continue;
      const bool is_kernel = is_kernel_of(node, input);
      const Key key = is_kernel ? kernel_key(part, graph, node) : value_key(part, graph.values[input]);
      MOTE_REQUIRE(!is_kernel || tensors[input].data == nullptr, Code::kInvalidProgram,
                   "%s.values[%u]: is the weight of several nodes: each needs a value of its own", part.place.c_str(), input);
      MOTE_RETURN_IF_ERROR(add_value(input, key, is_kernel));
    }
  }
  return tensors;
}

Result<StaticTensor> PackedWeights::find_or_make(const DelegatePart& part, const GraphValue& value, const Key& key, bool is_kernel) {
  const Key full_key = (is_kernel ? "kernel " : "") + key;
  if (const auto found = entries_.find(full_key); found != entries_.end()) return found->second.tensor;
  Entry entry;
  entry.is_kernel = is_kernel;
  MOTE_RETURN_IF_ERROR(make(part, value, &entry));
  return entries_.emplace(full_key, std::move(entry)).first->second.tensor;
}

Result<std::byte*> PackedWeights::allocate(Entry* entry, Size bytes) {
  const Size padded = bytes + static_cast<int64_t>(kExtraBytes);
  MOTE_REQUIRE(padded.valid(), Code::kOutOfMemory, "too many bytes");
  MOTE_ASSIGN(Pages pages, Pages::make(static_cast<size_t>(padded.unsigned_value())));
  if (!entry->is_kernel) private_bytes_ += pages.bytes();
  entry->pages.push_back(std::move(pages));
  return entry->pages.back().data();
}

Status PackedWeights::make(const DelegatePart& part, const GraphValue& value, Entry* entry) {
  const Size count = num_elements(value);
  const int64_t rows = value.shape[0].constant;
  if (value.kind == fb::ValueKind::constant) {
    MOTE_ASSIGN(std::byte * data, allocate(entry, count * 4));
    std::memcpy(data, value.numbers.data(), value.numbers.size() * sizeof(float));
    entry->tensor.data = data;
    return {};
  }
  const Tensor& tensor = part.weights[value.weight].tensor;
  const bool is_vector = value.form == fb::WeightForm::float32 || value.form == fb::WeightForm::row_scales;
  const bool is_int4 = value.form == fb::WeightForm::int4_blocks;
  MOTE_ASSIGN(std::byte * data, allocate(entry, is_vector ? count * 4 : is_int4 ? Size(count.value() / 2) : count));
  entry->tensor.data = data;
  if (value.form == fb::WeightForm::float32) {
    unpack_dense(tensor, value.first_row, rows, value.offset, reinterpret_cast<float*>(data));
    return {};
  }
  if (value.form == fb::WeightForm::row_scales) return unpack_row_scales(tensor, value.first_row, rows, false, reinterpret_cast<float*>(data));
  if (is_int4) {
    MOTE_ASSIGN(std::byte * scales, allocate(entry, Size(count.value() / tensor.group_size) * 2));
    entry->tensor.block_scales = reinterpret_cast<uint16_t*>(scales);
    entry->tensor.block_size = tensor.group_size;
    unpack_int4_blocks(tensor, value.first_row, rows, reinterpret_cast<uint8_t*>(data), reinterpret_cast<uint16_t*>(scales));
    return {};
  }
  MOTE_ASSIGN(std::byte * scales, allocate(entry, Size(rows) * 4));
  auto* row_scales = reinterpret_cast<float*>(scales);
  entry->tensor.row_scales = row_scales;
  MOTE_RETURN_IF_ERROR(unpack_row_scales(tensor, value.first_row, rows, true, row_scales));
  if (value.form == fb::WeightForm::int8_high) {
    for (int64_t i = 0; i < rows; ++i) row_scales[i] = std::min(row_scales[i] * 256, 0x1p127f);
  }
  unpack_int8(tensor, value.form, value.first_row, rows, reinterpret_cast<int8_t*>(data));
  return {};
}

void PackedWeights::finish_part() {
  for (auto& [key, entry] : entries_) {
    if (!entry.is_kernel || entry.is_packed) continue;
    entry.is_packed = true;
    entry.pages.front().drop();
    if (entry.tensor.block_scales == nullptr) continue;
    entry.pages.pop_back();
    entry.tensor.block_scales = nullptr;
  }
}

Status PackedWeights::finish() {
  is_finished_ = true;
  MOTE_REQUIRE(!has_failed_, Code::kOutOfMemory, "no memory for packed weights");
  return {};
}

size_t PackedWeights::look_up(void* self, const WeightsCacheKey* key) {
  const auto& packed = static_cast<PackedWeights*>(self)->packed_;
  const auto found = packed.find({key->seed, key->kernel, key->bias});
  return found == packed.end() ? kNotFound : found->second;
}

void* PackedWeights::reserve_space(void* self, size_t bytes) {
  auto& weights = *static_cast<PackedWeights*>(self);
  if (weights.is_finished_) return nullptr;
  try {
    Result<Pages> pages = Pages::make(bytes);
    if (!pages.ok()) return nullptr;
    weights.spaces_.push_back(*std::move(pages));
    weights.private_bytes_ += bytes;
    return weights.spaces_.back().data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

size_t PackedWeights::insert(void* self, const WeightsCacheKey* key, void* data, size_t) {
  auto& weights = *static_cast<PackedWeights*>(self);
  const PackedKey packed_key{key->seed, key->kernel, key->bias};
  if (const auto found = weights.packed_.find(packed_key); found != weights.packed_.end()) return found->second;
  for (size_t i = weights.spaces_.size(); i-- > 0;) {
    if (weights.spaces_[i].data() != data) continue;
    try {
      weights.packed_.emplace(packed_key, i);
    } catch (const std::bad_alloc&) {
      weights.has_failed_ = true;
    }
    return i;
  }
  weights.has_failed_ = true;
  return kNotFound;
}

}  // namespace mote::xnnpack
