#include "kernels/ops/linear/packed_weights.h"

#include <new>

#include "base/size.h"
#include "kernels/ops/linear/matrix.h"

namespace mote {

namespace {

Status out_of_memory(Size needed, const WeightPacking& packing) {
  return Status(
      Code::kOutOfMemory,
      format("a kernel packs a weight as %.*s, for which the system has no %lld bytes: unset MOTE_KERNEL",
             static_cast<int>(packing.format.size()), packing.format.data(), static_cast<long long>(needed.value())));
}

}  // namespace

Result<const PackedWeight*> PackedWeights::pack(const Tensor& weight, const WeightPacking& packing) try {
  const Matrix matrix = matrix_of(weight, 0);
  const int64_t groups = matrix.columns / matrix.group_size, tile_block_bytes = matrix.block_bytes();
  int64_t num_blocks = matrix.num_blocks();
  for (int dim = 0; dim < weight.rank - 2; ++dim) num_blocks *= weight.size(dim);
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = weights_.try_emplace(Key{matrix.data, num_blocks, matrix.columns, &packing});
  PackedWeight& packed = entry->second;
  if (!is_new) return &packed;
  packed.tiles_ = matrix.data;
  packed.tile_block_bytes_ = tile_block_bytes;
  packed.block_bytes_ = static_cast<int64_t>(packing.block_bytes(matrix.group_size, groups));
  const Size needed = Size(packed.block_bytes_) * num_blocks;
  if (needed.valid()) packed.blocks_ = allocate_aligned(needed.unsigned_value());
  if (packed.blocks_ == nullptr) {
    weights_.erase(entry);
    return out_of_memory(needed, packing);
  }
  for (int64_t i = 0; i < num_blocks; ++i) {
    packing.pack(matrix.data + i * tile_block_bytes, matrix.group_size, groups,
                 packed.blocks_.get() + i * packed.block_bytes_);
  }
  bytes_ += needed.unsigned_value();
  return &packed;
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "the system has no memory for packed weights"); }

uint64_t PackedWeights::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace mote
