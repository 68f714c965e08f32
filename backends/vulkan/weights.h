// Weights of a file on the GPU: each once, however many parts and sessions read it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/pipelines.h"
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
  int64_t stack_rows = 0;   // of a stack of matrices: rows of one as they are stored, pieces have whole ones
  gpu::GpuBuffer row_sums;  // int32 for each row, where a product reads the weight
};

class DeviceWeights {
 public:
  DeviceWeights(std::shared_ptr<const gpu::GpuContext> context, Pipelines& pipelines)
      : context_(std::move(context)), pipelines_(pipelines) {}

  // Uploads it unless that was done. Errors: kOutOfMemory, or what the driver says.
  Result<const DeviceWeight*> add(const DelegateWeight& weight, bool needs_row_sums);
  uint64_t bytes() const { return bytes_; }

 private:
  Status upload(const Tensor& tensor, DeviceWeight* weight);
  Status sum_rows(DeviceWeight* weight);

  std::shared_ptr<const gpu::GpuContext> context_;
  Pipelines& pipelines_;
  std::map<uint32_t, DeviceWeight> weights_;  // by index in the file
  uint64_t bytes_ = 0;
};

}  // namespace mote::vulkan
