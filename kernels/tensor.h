// What a kernel sees of a tensor. Kernels never own memory and never know what a model is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mote {

inline constexpr int kMaxRank = 8;
inline constexpr int kTileRows = 16;

// Same values as DType in llm_export/program/schema.fbs.
enum class DType : uint8_t { kFloat32 = 0, kFloat16, kBFloat16, kInt64, kInt32, kInt8, kUint8, kBool };

constexpr int64_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kFloat16:
    case DType::kBFloat16: return 2;
    case DType::kInt64: return 8;
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool: return 1;
  }
  return 0;
}

const char* dtype_name(DType dtype);

// What tiles add to scale * code: nothing, a minimum that a group has, or a group's zero point times its scale.
// Same values as WeightOffset in llm_export/program/schema.fbs.
enum class WeightOffset : uint8_t { kNone = 0, kMinimum, kZero };

// The scales of tiles (docs/file-format.md). As it stands here: multipliers of row scales.
struct TileScales {
  int32_t columns = 0;  // of a row that share a float16 scale; 0: there are none
  WeightOffset offset = WeightOffset::kNone;
  bool of_rows = true;               // whether rows have float32 scales
  const int8_t* codebook = nullptr;  // [16], what the codes of 4 bits stand for; nullptr: themselves

  bool operator==(const TileScales&) const = default;
};

// A strided tensor. Strides count elements. `bits` != 0: quantised tiles of 16 rows x group_size columns
// (docs/file-format.md); then `dtype` is the multipliers' and strides mean nothing.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  uint8_t bits = 0;
  int32_t group_size = 0;
  TileScales scales;
  int rank = 0;
  std::array<int64_t, kMaxRank> sizes{};
  std::array<int64_t, kMaxRank> strides{};

  int64_t size(int dim) const { return sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)]; }
  int64_t stride(int dim) const { return strides[static_cast<size_t>(dim < 0 ? dim + rank : dim)]; }
  int64_t num_elements() const;
  bool is_contiguous() const;
  void set_contiguous_strides();
  template <typename T> T* as() const { return static_cast<T*>(data); }
};

}  // namespace mote
