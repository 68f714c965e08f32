#include "backends/vulkan/weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "backends/vulkan/words.h"
#include "base/log.h"
#include "kernels/formats.h"

namespace mote::vulkan {
namespace {

constexpr uint64_t kPieceAlignment = 256;              // at least what any device asks of an offset
constexpr uint64_t kLeastImport = uint64_t{64} << 10;  // bytes of a weight: drivers allow some thousand allocations
constexpr uint64_t kLeastPage = 4096;
constexpr uint64_t kMaxSumsBytes = uint64_t{256} << 20;  // of a file

// What a file of sums holds of a weight comes after this.
struct SumsHeader {
  uint32_t weight = 0, bytes = 0;
};

// Rows that are stored together, and their bytes.
struct Unit {
  int64_t rows = 1;
  uint64_t bytes = 0;
};

// Integers and conditions are 32 bits wide on the device.
bool is_converted(const Tensor& tensor) {
  return tensor.bits == 0 && (tensor.dtype == DType::kInt64 || tensor.dtype == DType::kBool);
}

Unit unit_of(const Tensor& tensor) {
  if (is_converted(tensor)) return {1, static_cast<uint64_t>(4 * tensor.num_elements())};
  if (tensor.rank == 0) return {1, static_cast<uint64_t>(dtype_bytes(tensor.dtype))};
  if (tensor.rank == 3) {
    const int64_t rows = tensor.size(1);
    return {tensor.bits == 0 ? rows : (rows + kTileRows - 1) / kTileRows * kTileRows,
            static_cast<uint64_t>(matrix_bytes(tensor))};
  }
  const int64_t columns = tensor.num_elements() / std::max<int64_t>(tensor.size(0), 1);
  if (tensor.bits != 0) return {kTileRows, static_cast<uint64_t>(layout_of(tensor).block_bytes(columns))};
  return {1, static_cast<uint64_t>(columns * dtype_bytes(tensor.dtype))};
}

bool is_stack(const Tensor& tensor) { return tensor.rank == 3 && !is_converted(tensor); }

// Rows as they are stored; of a stack, of all its matrices.
int64_t rows_of(const Tensor& tensor) {
  if (tensor.rank == 0 || is_converted(tensor)) return 1;
  return tensor.size(0) * (is_stack(tensor) ? unit_of(tensor).rows : 1);
}

uint64_t bytes_of_rows(const Tensor& tensor) {
  const Unit unit = unit_of(tensor);
  return static_cast<uint64_t>((rows_of(tensor) + unit.rows - 1) / unit.rows) * unit.bytes;
}

uint64_t row_sums_bytes(const Tensor& tensor) {
  return static_cast<uint64_t>((rows_of(tensor) + kTileRows - 1) / kTileRows) * kTileRows * 4;
}

std::vector<int32_t> words_of(const Tensor& tensor) {
  std::vector<int32_t> words(static_cast<size_t>(tensor.num_elements()));
  to_words(tensor, words.data());
  return words;
}

}  // namespace

Result<const DeviceWeight*> DeviceWeights::add(const DelegateWeight& weight, bool needs_row_sums) {
  const auto [entry, is_new] = weights_.try_emplace(weight.index);
  DeviceWeight& made = entry->second;
  if (is_new) {
    const Status status = upload(weight.tensor, &made);
    if (!status.ok()) {
      weights_.erase(entry);
      return Status(status.code(), std::string(weight.name) + ": " + status.message());
    }
  }
  if (needs_row_sums && made.row_sums.handle() == VK_NULL_HANDLE) MOTE_RETURN_IF_ERROR(add_sums(weight.index, &made));
  return &made;
}

uint64_t DeviceWeights::bytes_of(const DelegateWeight& weight, bool needs_row_sums) const {
  const uint64_t copied = pages_of(weight.tensor).empty() ? bytes_of_rows(weight.tensor) : 0;
  return copied + (needs_row_sums ? row_sums_bytes(weight.tensor) : 0);
}

std::span<const std::byte> DeviceWeights::pages_of(const Tensor& tensor) const {
  const uint64_t alignment = context_->imports_at(), bytes = bytes_of_rows(tensor);
  if (alignment == 0 || bytes < kLeastImport || is_converted(tensor)) return {};
  const auto first = reinterpret_cast<uintptr_t>(tensor.data);
  const uintptr_t begin = first / alignment * alignment, end = (first + bytes + alignment - 1) / alignment * alignment;
  for (const std::span<const std::byte> pages : mapped_pages_) {
    const auto mapped = reinterpret_cast<uintptr_t>(pages.data());
    // The system maps whole pages, which are no larger than what devices ask for.
    const uintptr_t mapped_end = (mapped + pages.size() + kLeastPage - 1) / kLeastPage * kLeastPage;
    if (begin >= mapped && end <= mapped_end)
      return {pages.data() + (begin - mapped), static_cast<size_t>(end - begin)};
  }
  return {};
}

// first_offset: of the buffer, in which rows lie one after the other   alignment: of the pieces
Status DeviceWeights::divide(const Tensor& tensor, uint64_t first_offset, uint64_t alignment,
                             DeviceWeight* weight) const {
  weight->pieces.clear();
  const Unit unit = unit_of(tensor);
  const int64_t rows = rows_of(tensor), units = (rows + unit.rows - 1) / unit.rows;
  const uint64_t limit = context_->limits().maxStorageBufferRange;
  // So many units, or a multiple of them, end where a piece may begin.
  const auto step = static_cast<int64_t>(alignment / std::gcd(alignment, std::max<uint64_t>(unit.bytes, 1)));
  int64_t in_piece = static_cast<int64_t>(limit / std::max<uint64_t>(unit.bytes, 1));
  if (in_piece < units) in_piece = in_piece / step * step;
  MOTE_REQUIRE(in_piece > 0, Code::kUnsupportedBackend, "%llu bytes of neighbouring rows: %s binds at most %llu",
               static_cast<unsigned long long>(unit.bytes * static_cast<uint64_t>(step)),
               context_->device_name().c_str(), static_cast<unsigned long long>(limit));
  for (int64_t first = 0; first < units; first += in_piece) {
    const int64_t count = std::min(in_piece, units - first), first_row = first * unit.rows;
    weight->pieces.push_back({first_row, std::min(rows - first_row, count * unit.rows),
                              first_offset + static_cast<uint64_t>(first) * unit.bytes,
                              static_cast<uint64_t>(count) * unit.bytes});
  }
  return {};
}

Status DeviceWeights::upload(const Tensor& tensor, DeviceWeight* weight) {
  weight->tensor = tensor;
  weight->stack_rows = is_stack(tensor) ? unit_of(tensor).rows : 0;
  return import(tensor, weight) ? Status() : copy(tensor, weight);
}

// False: it must be copied.
bool DeviceWeights::import(const Tensor& tensor, DeviceWeight* weight) {
  const std::span<const std::byte> pages = pages_of(tensor);
  if (pages.empty()) return false;
  const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(tensor.data) - pages.data());
  const uint64_t alignment = std::max<uint64_t>(context_->limits().minStorageBufferOffsetAlignment, 4);
  if (offset % alignment != 0 || !divide(tensor, offset, alignment, weight).ok()) return false;
  Result<gpu::GpuBuffer> buffer = gpu::GpuBuffer::import(context_, pages);
  if (!buffer.ok()) {
    MOTE_LOG_LINE(kInfo, "vulkan: weights are copied: %s", buffer.status().message().c_str());
    return false;
  }
  weight->buffer = *std::move(buffer);
  weight->is_imported = true;
  imported_bytes_ += bytes_of_rows(tensor);
  return true;
}

Status DeviceWeights::copy(const Tensor& tensor, DeviceWeight* weight) {
  MOTE_RETURN_IF_ERROR(divide(tensor, 0, kPieceAlignment, weight));
  const uint64_t bytes = bytes_of_rows(tensor);
  MOTE_ASSIGN(weight->buffer, gpu::GpuBuffer::make(context_, bytes, gpu::Place::device));
  bytes_ += weight->buffer.bytes();
  std::vector<int32_t> words;
  if (is_converted(tensor)) words = words_of(tensor);
  const void* data = words.empty() ? tensor.data : words.data();
  return context_->write(weight->buffer, 0, {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)});
}

void DeviceWeights::read_sums(KeptFile file) {
  sums_file_ = std::move(file);
  if (sums_file_.path.empty()) return;
  Result<std::vector<std::byte>> read = sums_file_.read(kMaxSumsBytes);
  if (!read.ok()) {
    if (read.status().code() == Code::kFileNotFound) return;
    MOTE_LOG_LINE(kInfo, "vulkan: sums of rows are computed anew: %s", read.status().message().c_str());
    return;
  }
  kept_sums_ = *std::move(read);
  SumsHeader header;
  for (std::span<const std::byte> left = kept_sums_; left.size() >= sizeof(header);) {
    std::memcpy(&header, left.data(), sizeof(header));
    left = left.subspan(sizeof(header));
    if (header.bytes > left.size()) break;
    read_sums_[header.weight] = left.first(header.bytes);
    left = left.subspan(header.bytes);
  }
}

void DeviceWeights::keep_sums() {
  read_sums_.clear();
  kept_sums_ = {};
  if (num_summed_ == 0) return;
  MOTE_LOG_LINE(kInfo, "vulkan: sums of rows were computed of %zu weights", std::exchange(num_summed_, 0));
  if (sums_file_.path.empty()) return;
  std::vector<std::byte> all;
  Status status;
  for (const auto& [index, weight] : weights_) {
    const SumsHeader header{index, static_cast<uint32_t>(weight.row_sums.bytes())};
    if (weight.row_sums.handle() == VK_NULL_HANDLE || !status.ok()) continue;
    const size_t at = all.size();
    all.resize(at + sizeof(header) + header.bytes);
    std::memcpy(all.data() + at, &header, sizeof(header));
    status = context_->read(weight.row_sums, 0, std::span(all).subspan(at + sizeof(header)));
  }
  if (status.ok() && all.size() <= kMaxSumsBytes) status = sums_file_.write(all);
  if (!status.ok()) MOTE_LOG_LINE(kInfo, "vulkan: sums of rows are not kept: %s", status.message().c_str());
}

Status DeviceWeights::add_sums(uint32_t index, DeviceWeight* weight) {
  MOTE_ASSIGN(weight->row_sums, gpu::GpuBuffer::make(context_, row_sums_bytes(weight->tensor), gpu::Place::device));
  bytes_ += weight->row_sums.bytes();
  const auto found = read_sums_.find(index);
  if (found != read_sums_.end() && found->second.size() == weight->row_sums.bytes())
    return context_->write(weight->row_sums, 0, found->second);
  ++num_summed_;
  return sum_rows(weight);
}

Status DeviceWeights::sum_rows(DeviceWeight* weight) const {
  const Tensor& tensor = weight->tensor;
  const uint32_t constants[] = {tensor.bits, static_cast<uint32_t>(tensor.group_size)};
  constexpr size_t kBuffers = 2;
  MOTE_ASSIGN(const Pipeline pipeline, pipelines_.find(Shader::row_sums, constants, kBuffers));
  const size_t count = weight->pieces.size();
  MOTE_ASSIGN(DescriptorSets sets, DescriptorSets::make(context_, count, kBuffers * count));
  const gpu::VulkanApi& api = context_->api();
  return context_->run_once([&](VkCommandBuffer commands) -> Status {
    api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    for (const WeightPiece& piece : weight->pieces) {
      const BoundRange ranges[kBuffers] = {{weight->buffer.handle(), piece.offset, piece.bytes},
                                           {weight->row_sums.handle(), 0, weight->row_sums.bytes()}};
      MOTE_ASSIGN(const VkDescriptorSet set, sets.add(pipeline, ranges));
      api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0, nullptr);
      const auto in_piece = static_cast<uint32_t>((piece.rows + kTileRows - 1) / kTileRows);
      const uint32_t push[] = {static_cast<uint32_t>(tensor.size(-1)), in_piece,
                               static_cast<uint32_t>(piece.first_row)};
      api.CmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), push);
      api.CmdDispatch(commands, (in_piece * kTileRows + 63) / 64, 1, 1);
    }
    return {};
  });
}

}  // namespace mote::vulkan
