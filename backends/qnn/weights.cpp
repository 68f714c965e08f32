#include "backends/qnn/weights.h"

#include <cmath>
#include <cstring>

#include "kernels/support/float_bits.h"
#include "kernels/weight_row.h"

namespace mote::qnn {
namespace {

// Calls visit(column, multiplier * code) for each column.
template <typename Visit> void each_product(const WeightRow& row, const Visit& visit) {
  for (int64_t group = 0; group < row.groups; ++group) {
    const std::byte* tile = row.tile(group);
    const int multiplier = row.multiplier(group);
    for (int64_t i = 0; i < row.group_size; ++i) {
      const int code = code_at(tile, row.bits, row.group_size, row.in_block, i) - code_offset(row.bits);
      visit(group * row.group_size + i, multiplier * code);
    }
  }
}

class Halves {
 public:
  explicit Halves(size_t count) : bytes_(count * sizeof(uint16_t)) {}
  void set(size_t index, float value) {
    const uint16_t half = float32_to_float16(value);
    std::memcpy(bytes_.data() + index * sizeof(half), &half, sizeof(half));
  }
  StaticTensor take() { return {DataType::kFloat16, std::move(bytes_), {}}; }

 private:
  std::vector<std::byte> bytes_;
};

StaticTensor plain(const Tensor& tensor, float offset) {
  const int64_t count = tensor.num_elements();
  Halves halves(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    halves.set(static_cast<size_t>(i), float_at(tensor.data, tensor.dtype, i) + offset);
  return halves.take();
}

// [N, K] as [K, N]
StaticTensor turned(const Tensor& tensor) {
  const auto n = static_cast<size_t>(tensor.size(0)), k = static_cast<size_t>(tensor.size(1));
  Halves halves(n * k);
  for (size_t row = 0; row < n; ++row) {
    if (tensor.bits == 0) {
      for (size_t i = 0; i < k; ++i)
        halves.set(i * n + row, float_at(tensor.data, tensor.dtype, static_cast<int64_t>(row * k + i)));
      continue;
    }
    const WeightRow tiles(tensor, static_cast<int64_t>(row));
    const float scale = tiles.scale();
    each_product(tiles, [&](int64_t column, int product) {
      halves.set(static_cast<size_t>(column) * n + row, scale * static_cast<float>(product));
    });
  }
  return halves.take();
}

Result<StaticTensor> bytes_of_rows(const Tensor& tensor) {
  const auto n = static_cast<size_t>(tensor.size(0)), k = static_cast<size_t>(tensor.size(1));
  StaticTensor result{DataType::kSignedFixed8, std::vector<std::byte>(n * k), std::vector<ScaleOffset>(n)};
  bool fits = true;
  for (size_t row = 0; row < n; ++row) {
    const WeightRow tiles(tensor, static_cast<int64_t>(row));
    const float scale = tiles.scale();
    fits = fits && std::isfinite(scale) && scale >= 0;
    // QNN wants positive scales; what has none is zeros.
    const bool is_zero = !tiles.has_scale();
    result.scales[row] = {is_zero ? 1.0f : scale, 0};
    each_product(tiles, [&](int64_t column, int product) {
      fits = fits && product >= -128 && product <= 127;
      result.bytes[static_cast<size_t>(column) * n + row] = static_cast<std::byte>(is_zero ? 0 : product);
    });
  }
  MOTE_REQUIRE(fits, Code::kInvalidProgram, "its rows are no signed bytes with one positive scale");
  return result;
}

}  // namespace

uint64_t static_bytes(const fb::ValueT& value) {
  const bool is_rows = value.kind == fb::ValueKind::weight && value.form == fb::WeightForm::rows;
  return elements(value.shape) * (is_rows ? 1 : 2);
}

Result<StaticTensor> static_tensor(const fb::ValueT& value, const DelegatePart& part) {
  if (value.kind == fb::ValueKind::constant) {
    Halves halves(value.numbers.size());
    for (size_t i = 0; i < value.numbers.size(); ++i) halves.set(i, value.numbers[i]);
    return halves.take();
  }
  const DelegateWeight& weight = part.weights[static_cast<size_t>(value.index)];
  if (value.form == fb::WeightForm::plain) return plain(weight.tensor, value.offset);
  if (value.form == fb::WeightForm::matrix) return turned(weight.tensor);
  Result<StaticTensor> rows = bytes_of_rows(weight.tensor);
  if (!rows.ok()) return Status(rows.status().code(), std::string(weight.name) + ": " + rows.status().message());
  return rows;
}

}  // namespace mote::qnn
