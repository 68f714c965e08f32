#include "backends/xnnpack/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "backends/xnnpack/unpack.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"

namespace mote::xnnpack {
namespace {

constexpr size_t kNotFound = SIZE_MAX;

bool is_kernel_of(const GraphNode& node, uint32_t value) {
  return node.op == fb::Op::fully_connected && node.inputs[1] == value;
}

std::string value_key(const DelegatePart& part, const GraphValue& value) {
  if (value.kind == fb::ValueKind::constant) {
    std::string key = "constant";
    for (const LinearSize& size : value.shape) key += format(" %lld", static_cast<long long>(size.constant));
    return key + ":" +
           std::string(reinterpret_cast<const char*>(value.numbers.data()), value.numbers.size() * sizeof(float));
  }
  return format("weight %u form %u rows %lld+%lld offset %a", part.weights[value.weight].index,
                static_cast<unsigned>(value.form), static_cast<long long>(value.first_row),
                static_cast<long long>(value.shape[0].constant), static_cast<double>(value.offset));
}

std::string kernel_key(const DelegatePart& part, const Graph& graph, const GraphNode& node) {
  std::string key = value_key(part, graph.values[node.inputs[1]]);
  key += format(" input %u bias ", static_cast<unsigned>(graph.values[node.inputs[0]].dtype));
  return node.inputs.size() == 3 ? key + value_key(part, graph.values[node.inputs[2]]) : key;
}

bool is_vector(fb::WeightForm form) { return form == fb::WeightForm::float32 || form == fb::WeightForm::row_scales; }

Size num_elements(const GraphValue& value) {
  Size count = 1;
  for (const LinearSize& size : value.shape) count = count * size.constant;
  return count;
}

// More than XNNPACK packs a kernel of [rows, columns] into: its tiles have up to 256 rows and columns, and each row has
// some numbers beside its codes, each block a scale. It does not check what a cache gives it.
Size max_packed_bytes(const GraphValue& value, int64_t group_size) {
  constexpr int64_t kTile = 256, kNumbersOfRow = 64, kBytesOfBlock = 4;
  const Size rows = (Size(value.shape[0].constant) + kTile).align_up(kTile);
  const Size columns = Size(value.shape.size() > 1 ? value.shape[1].constant : 1) + kTile;
  const bool is_float = value.kind == fb::ValueKind::constant || value.form == fb::WeightForm::float32 ||
                        value.form == fb::WeightForm::float16;
  const Size blocks = group_size > 0 ? Size(columns.value() / group_size + 1) : Size(0);
  return rows * (columns * (is_float ? 4 : 1) + blocks * kBytesOfBlock + kNumbersOfRow);
}

}  // namespace

Result<Pages> Pages::make(size_t bytes) {
  std::byte* data = reserve_pages(std::max<size_t>(bytes, 1));
  MOTE_REQUIRE(data != nullptr, Code::kOutOfMemory, "no memory for %zu bytes of weights", bytes);
  return Pages(data, std::max<size_t>(bytes, 1));
}

Pages::Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Pages::~Pages() {
  if (data_ != nullptr) release_pages(data_, bytes_);
}

void Pages::drop() { drop_pages(data_, bytes_); }

PackedWeights::PackedWeights()
    : provider_{this,
                look_up,
                reserve_space,
                insert,
                [](void* self) { return static_cast<PackedWeights*>(self)->is_finished_; },
                [](void* self, size_t index) -> void* {
                  // XNNPACK asks for a pointer of this type, and reads.
                  return const_cast<std::byte*>(static_cast<PackedWeights*>(self)->spaces_[index].data);
                },
                [](void*) { return XnnStatus::kSuccess; },
                nullptr} {}

Result<std::vector<StaticTensor>> PackedWeights::add(const DelegatePart& part, const Graph& graph) {
  std::vector<StaticTensor> tensors(graph.values.size());
  const auto add_value = [&](uint32_t index, const Key& key, bool is_kernel) -> Status {
    const GraphValue& value = graph.values[index];
    Result<StaticTensor> tensor = find_or_make(part, value, key, is_kernel);
    if (!tensor.ok()) {
      return Status(tensor.status().code(),
                    format("%s.values[%u]: %s", part.place.c_str(), index, tensor.status().message().c_str()));
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
                   "%s.values[%u]: is the weight of several nodes: each needs a value of its own", part.place.c_str(),
                   input);
      MOTE_RETURN_IF_ERROR(add_value(input, key, is_kernel));
    }
  }
  return tensors;
}

Result<StaticTensor> PackedWeights::find_or_make(const DelegatePart& part, const GraphValue& value, const Key& key,
                                                 bool is_kernel) {
  const Key full_key = (is_kernel ? "kernel " : "") + key;
  if (const auto found = entries_.find(full_key); found != entries_.end()) return found->second.tensor;
  Entry entry;
  entry.is_kernel = is_kernel;
  const bool is_weight = value.kind == fb::ValueKind::weight;
  entry.max_packed_bytes =
      max_packed_bytes(value, is_weight ? part.weights[value.weight].tensor.group_size : 0).unsigned_value();
  entry.is_packed = is_kernel && cache_ && cache_->has(full_key);
  if (is_kernel && cache_ && !entry.is_packed) {
    cache_failure_ = "it lacks some of the weights";
    return Status(Code::kFileChanged, cache_failure_);
  }
  const bool is_kept = is_weight && !is_kernel && is_vector(value.form);
  MOTE_RETURN_IF_ERROR(is_kept ? make_vector(part, value, full_key, &entry) : make(part, value, &entry));
  auto& kept = *entries_.emplace(full_key, std::move(entry)).first;
  entry_at_.emplace(kept.second.tensor.data, &kept);
  return kept.second.tensor;
}

Result<std::byte*> PackedWeights::allocate(Entry* entry, Size bytes) {
  const Size padded = bytes + static_cast<int64_t>(kExtraBytes);
  MOTE_REQUIRE(padded.valid(), Code::kOutOfMemory, "too many bytes");
  MOTE_ASSIGN(Pages pages, Pages::make(static_cast<size_t>(padded.unsigned_value())));
  if (!entry->is_kernel) private_bytes_ += pages.bytes();
  entry->pages.push_back(std::move(pages));
  return entry->pages.back().data();
}

// In tiles the scales of rows lie far apart: with a cache no page of the model is read for them.
Status PackedWeights::make_vector(const DelegatePart& part, const GraphValue& value, const Key& key, Entry* entry) {
  const Size bytes = num_elements(value) * 4;
  if (cache_) {
    const auto found = cache_->find({key}, (bytes + static_cast<int64_t>(kExtraBytes)).unsigned_value());
    if (found.size() == bytes.unsigned_value()) {
      entry->tensor.data = found.data();
      file_backed_bytes_ += found.size();
      return {};
    }
  }
  MOTE_RETURN_IF_ERROR(make(part, value, entry));
  (void)write({key}, {entry->pages.front().data(), static_cast<size_t>(bytes.unsigned_value())});
  return {};
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
  const bool is_blocks = value.form == fb::WeightForm::int4_blocks,
             is_int4 = is_blocks || value.form == fb::WeightForm::int4_rows;
  const bool is_half = value.form == fb::WeightForm::float16;
  MOTE_ASSIGN(std::byte * data, allocate(entry, is_vector(value.form) ? count * 4
                                                : is_half             ? count * 2
                                                : is_int4             ? Size(count.value() / 2)
                                                                      : count));
  entry->tensor.data = data;
  if (value.form == fb::WeightForm::float32) {
    if (entry->is_packed) return {};
    unpack_dense(tensor, value.first_row, rows, value.offset, reinterpret_cast<float*>(data));
    return {};
  }
  if (is_half) {
    if (!entry->is_packed) unpack_half(tensor, value.first_row, rows, reinterpret_cast<uint16_t*>(data));
    return {};
  }
  if (value.form == fb::WeightForm::row_scales)
    return unpack_row_scales(tensor, value.first_row, rows, false, reinterpret_cast<float*>(data));
  if (is_blocks) {
    entry->tensor.block_size = tensor.group_size;
    if (entry->is_packed) return {};
    MOTE_ASSIGN(std::byte * scales, allocate(entry, Size(count.value() / tensor.group_size) * 2));
    entry->tensor.block_scales = reinterpret_cast<uint16_t*>(scales);
    return unpack_int4_blocks(tensor, value.first_row, rows, reinterpret_cast<uint8_t*>(data),
                              reinterpret_cast<uint16_t*>(scales));
  }
  MOTE_ASSIGN(std::byte * scales, allocate(entry, Size(rows) * 4));
  auto* row_scales = reinterpret_cast<float*>(scales);
  entry->tensor.row_scales = row_scales;
  if (entry->is_packed) {
    std::fill_n(row_scales, rows, 1.0f);  // they are packed too, but looked at
    return {};
  }
  MOTE_RETURN_IF_ERROR(unpack_row_scales(tensor, value.first_row, rows, true, row_scales));
  if (value.form == fb::WeightForm::int8_high) {
    for (int64_t i = 0; i < rows; ++i) row_scales[i] = std::min(row_scales[i] * 256, 0x1p127f);
  }
  if (is_int4) return unpack_int4_rows(tensor, value.first_row, rows, reinterpret_cast<uint8_t*>(data));
  return unpack_int8(tensor, value.form, value.first_row, rows, reinterpret_cast<int8_t*>(data));
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
  write_spaces();
}

// A failure ends the writing; what was written stays in the file.
std::optional<uint64_t> PackedWeights::write(const PackedName& name, std::span<const std::byte> bytes) {
  if (!writer_ || !is_written_whole_) return std::nullopt;
  const Result<uint64_t> offset = writer_->append(name, bytes);
  if (offset.ok()) return *offset;
  is_written_whole_ = false;
  MOTE_LOG_LINE(kInfo, "xnnpack: packed weights are not kept: %s", offset.status().message().c_str());
  return std::nullopt;
}

void PackedWeights::write_spaces() {
  for (Space& space : spaces_) {
    if (space.offset || !space.name) continue;
    space.offset = write(*space.name, {space.data, static_cast<size_t>(space.bytes)});
    if (!space.offset) return;
    space.pages->drop();
    private_bytes_ -= space.bytes;
  }
}

// The pages of the file in place of those that were written to it.
Status PackedWeights::use_written() {
  Result<CacheMapping> mapping = writer_->map();
  if (!mapping.ok()) {
    cache_failure_ = mapping.status().message();
    return mapping.status();
  }
  written_.emplace(*std::move(mapping));
  for (Space& space : spaces_) {
    if (!space.offset) continue;
    space.data = written_->file().data() + *space.offset;
    space.pages.reset();
    file_backed_bytes_ += space.bytes;
  }
  if (is_written_whole_) {
    const Status committed = writer_->commit();
    if (!committed.ok()) MOTE_LOG_LINE(kInfo, "xnnpack: packed weights are not kept: %s", committed.message().c_str());
  }
  writer_.reset();
  return {};
}

Status PackedWeights::finish() {
  is_finished_ = true;
  MOTE_REQUIRE(!has_failed_, Code::kOutOfMemory, "no memory for packed weights");
  return writer_ ? use_written() : Status();
}

Status PackedWeights::check_readable() const {
  const bool has_lost = (cache_ && cache_->has_lost()) || (written_ && written_->has_lost());
  MOTE_REQUIRE(
      !has_lost, Code::kFileChanged,
      "the file of packed weights became shorter, or its disk failed, while it was used; load the model again");
  return {};
}

size_t PackedWeights::look_up(void* self, const WeightsCacheKey* key) {
  auto& weights = *static_cast<PackedWeights*>(self);
  const PackedKey packed_key{key->seed, key->kernel, key->bias};
  if (const auto found = weights.packed_.find(packed_key); found != weights.packed_.end()) return found->second;
  if (!weights.cache_ || weights.is_finished_) return kNotFound;
  try {
    return weights.look_up_in_cache(packed_key);
  } catch (const std::bad_alloc&) {
    weights.has_failed_ = true;
    return kNotFound;
  }
}

size_t PackedWeights::look_up_in_cache(const PackedKey& key) {
  const auto entry = entry_at_.find(key.kernel);
  if (entry == entry_at_.end()) return kNotFound;
  const auto& [name, kernel] = *entry->second;
  const std::span<const std::byte> found = cache_->find({name, key.seed}, kernel.max_packed_bytes);
  if (found.data() == nullptr) return kNotFound;
  spaces_.push_back({.data = found.data(), .bytes = found.size()});
  file_backed_bytes_ += found.size();
  packed_.emplace(key, spaces_.size() - 1);
  return spaces_.size() - 1;
}

void* PackedWeights::reserve_space(void* self, size_t bytes) {
  auto& weights = *static_cast<PackedWeights*>(self);
  if (weights.is_finished_) return nullptr;
  try {
    if (weights.cache_) {
      weights.cache_failure_ = "it lacks what this library reads";
      return nullptr;  // what would be packed was not unpacked
    }
    Result<Pages> pages = Pages::make(bytes);
    if (!pages.ok()) return nullptr;
    std::byte* data = pages->data();
    weights.spaces_.push_back({.data = data, .pages = *std::move(pages), .bytes = bytes});
    weights.private_bytes_ += bytes;
    return data;
  } catch (const std::bad_alloc&) { return nullptr; }
}

size_t PackedWeights::insert(void* self, const WeightsCacheKey* key, void* data, size_t) {
  auto& weights = *static_cast<PackedWeights*>(self);
  const PackedKey packed_key{key->seed, key->kernel, key->bias};
  if (const auto found = weights.packed_.find(packed_key); found != weights.packed_.end()) return found->second;
  for (size_t i = weights.spaces_.size(); i-- > 0;) {
    Space& space = weights.spaces_[i];
    if (space.data != data) continue;
    try {
      weights.packed_.emplace(packed_key, i);
      const auto entry = weights.entry_at_.find(key->kernel);
      if (weights.writer_ && entry != weights.entry_at_.end() &&
          space.bytes <= entry->second->second.max_packed_bytes) {
        space.name = PackedName{entry->second->first, key->seed};
      }
    } catch (const std::bad_alloc&) { weights.has_failed_ = true; }
    return i;
  }
  weights.has_failed_ = true;
  return kNotFound;
}

}  // namespace mote::xnnpack
