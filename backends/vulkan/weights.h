// Weights of a file on the GPU: each once, however many parts and sessions read it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/pipelines.h"
#include "base/kept_file.h"
#include "runner/program/delegate.h"

namespace mote::vulkan {

// Whole rows that a shader can see at once: no more bytes than the device binds.
struct WeightPiece {
  int64_t first_row = 0, rows = 0;
  uint64_t offset = 0, bytes = 0;  // in the buffer
};

struct DeviceWeight {
  Tensor tensor;  // sizes and format; its data is not read again
  gpu::GpuBuffer buffer;
  std::vector<WeightPiece> pieces;
  bool is_imported = false;  // its buffer is pages of the file
  int64_t stack_rows = 0;    // of a stack of matrices: rows of one as they are stored, pieces have whole ones
  gpu::GpuBuffer row_sums;   // int32 for each row, where a product reads the weight
};

class DeviceWeights {
 public:
  DeviceWeights(std::shared_ptr<const gpu::GpuContext> context, Pipelines& pipelines)
      : context_(std::move(context)), pipelines_(pipelines) {}

  // The pages of the file, which outlive this: weights in them are read where they are if the device can do that.
  void set_mapped_pages(std::vector<std::span<const std::byte>> pages) { mapped_pages_ = std::move(pages); }
  // Sums of rows that an earlier process kept in this file are read there instead of computed.
  void read_sums(KeptFile file);
  // Writes all sums to that file, unless they are in there. What fails is logged: nothing depends on it.
  void keep_sums();
  // Bytes of the GPU's memory that `add` will take.
  uint64_t bytes_of(const DelegateWeight& weight, bool needs_row_sums) const;
  // Uploads or imports it unless that was done. Errors: kOutOfMemory, or what the driver says.
  Result<const DeviceWeight*> add(const DelegateWeight& weight, bool needs_row_sums);
  uint64_t bytes() const { return bytes_; }
  uint64_t imported_bytes() const { return imported_bytes_; }

 private:
  // Where the weight lies in pages that the device can take over; empty: it must be copied.
  std::span<const std::byte> pages_of(const Tensor& tensor) const;
  Status upload(const Tensor& tensor, DeviceWeight* weight);
  bool import(const Tensor& tensor, DeviceWeight* weight);
  Status copy(const Tensor& tensor, DeviceWeight* weight);
  Status divide(const Tensor& tensor, uint64_t first_offset, uint64_t alignment, DeviceWeight* weight) const;
  Status add_sums(uint32_t index, DeviceWeight* weight);
  Status sum_rows(DeviceWeight* weight) const;

  std::shared_ptr<const gpu::GpuContext> context_;
  Pipelines& pipelines_;
  std::map<uint32_t, DeviceWeight> weights_;  // by index in the file
  std::vector<std::span<const std::byte>> mapped_pages_;
  KeptFile sums_file_;
  std::vector<std::byte> kept_sums_;                          // what the file holds, until sums are kept
  std::map<uint32_t, std::span<const std::byte>> read_sums_;  // in kept_sums_, by weight
  size_t num_summed_ = 0;                                     // weights whose sums were not in the file
  uint64_t bytes_ = 0, imported_bytes_ = 0;
};

}  // namespace mote::vulkan
