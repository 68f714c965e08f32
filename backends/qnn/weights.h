// Weights of the file as tensors of QNN.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/qnn/api.h"
#include "backends/qnn/graph.h"

namespace mote::qnn {

struct StaticTensor {
  DataType data_type = DataType::kFloat16;
  std::vector<std::byte> bytes;
  std::vector<ScaleOffset> scales = {};    // where they are signed bytes: of columns, or one for all
  std::vector<uint8_t> block_scales = {};  // [columns, groups], where they are blocks
};

// Bytes that a weight or constant takes in a context.
uint64_t static_bytes(const fb::ValueT& value);

// Of a weight or constant that was verified. Errors: kInvalidProgram for a number that its form cannot hold, without a
// place.
Result<StaticTensor> static_tensor(const fb::ValueT& value, const DelegatePart& part);

}  // namespace mote::qnn
