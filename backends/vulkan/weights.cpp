#include "backends/vulkan/weights.h"

#include <algorithm>

#include "backends/vulkan/words.h"
#include "kernels/formats.h"

namespace mote::vulkan {
namespace {

constexpr uint64_t kPieceAlignment = 256;  // at least what any device asks of an offset

uint64_t align(uint64_t bytes) { return (bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment; }

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
  if (needs_row_sums && made.row_sums.handle() == VK_NULL_HANDLE) MOTE_RETURN_IF_ERROR(sum_rows(&made));
  return &made;
}

Status DeviceWeights::upload(const Tensor& tensor, DeviceWeight* weight) {
  weight->tensor = tensor;
  const Unit unit = unit_of(tensor);
  const bool is_stack = tensor.rank == 3 && !is_converted(tensor);
  weight->stack_rows = is_stack ? unit.rows : 0;
  const int64_t rows = tensor.rank == 0 || is_converted(tensor) ? 1 : tensor.size(0) * (is_stack ? unit.rows : 1);
  const int64_t units = (rows + unit.rows - 1) / unit.rows;
  const uint64_t limit = context_->limits().maxStorageBufferRange;
  MOTE_REQUIRE(unit.bytes <= limit, Code::kUnsupportedBackend, "%llu bytes of neighbouring rows: %s binds at most %llu",
               static_cast<unsigned long long>(unit.bytes), context_->device_name().c_str(),
               static_cast<unsigned long long>(limit));
  const int64_t in_piece = std::max<int64_t>(1, static_cast<int64_t>(limit / std::max<uint64_t>(unit.bytes, 1)));
  uint64_t bytes = 0;
  for (int64_t first = 0; first < units; first += in_piece) {
    const int64_t count = std::min(in_piece, units - first);
    const int64_t first_row = first * unit.rows;
    weight->pieces.push_back(
        {first_row, std::min(rows - first_row, count * unit.rows), bytes, static_cast<uint64_t>(count) * unit.bytes});
    bytes = align(bytes + weight->pieces.back().bytes);
  }
  MOTE_ASSIGN(weight->buffer, gpu::GpuBuffer::make(context_, bytes, gpu::Place::device));
  bytes_ += bytes;
  std::vector<int32_t> words;
  if (is_converted(tensor)) words = words_of(tensor);
  const auto* data = static_cast<const std::byte*>(words.empty() ? tensor.data : words.data());
  for (const WeightPiece& piece : weight->pieces) {
    const std::span from(data + static_cast<uint64_t>(piece.first_row / unit.rows) * unit.bytes, piece.bytes);
    MOTE_RETURN_IF_ERROR(context_->write(weight->buffer, piece.offset, from));
  }
  return {};
}

Status DeviceWeights::sum_rows(DeviceWeight* weight) {
  const Tensor& tensor = weight->tensor;
  const WeightPiece& last = weight->pieces.back();
  const int64_t blocks = (last.first_row + last.rows + kTileRows - 1) / kTileRows;
  MOTE_ASSIGN(weight->row_sums,
              gpu::GpuBuffer::make(context_, static_cast<uint64_t>(blocks) * kTileRows * 4, gpu::Place::device));
  bytes_ += weight->row_sums.bytes();
  const uint32_t constants[] = {tensor.bits, static_cast<uint32_t>(tensor.group_size)};
  MOTE_ASSIGN(const VkPipeline pipeline, pipelines_.find(Shader::row_sums, constants));
  MOTE_ASSIGN(DescriptorSets sets, DescriptorSets::make(context_, pipelines_, weight->pieces.size()));
  const gpu::VulkanApi& api = context_->api();
  return context_->run_once([&](VkCommandBuffer commands) -> Status {
    api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    for (const WeightPiece& piece : weight->pieces) {
      const BoundRange ranges[] = {{weight->buffer.handle(), piece.offset, piece.bytes},
                                   {weight->row_sums.handle(), 0, weight->row_sums.bytes()}};
      MOTE_ASSIGN(const VkDescriptorSet set, sets.add(ranges));
      api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1, &set, 0, nullptr);
      const auto in_piece = static_cast<uint32_t>((piece.rows + kTileRows - 1) / kTileRows);
      const uint32_t push[] = {static_cast<uint32_t>(tensor.size(-1)), in_piece,
                               static_cast<uint32_t>(piece.first_row)};
      api.CmdPushConstants(commands, pipelines_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), push);
      api.CmdDispatch(commands, (in_piece * kTileRows + 63) / 64, 1, 1);
    }
    return {};
  });
}

}  // namespace mote::vulkan
