#include "backends/qnn/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/support/float_bits.h"
#include "kernels/weight_row.h"

namespace mote::qnn {
namespace {

constexpr int kLeastExponent = -14;    // of float16
constexpr float kMostScales = 256.0f;  // of the columns of a row together, which makes its length a float16
constexpr int kMaxMultiplier = (1 << kBlockScaleBits) - 1;

// Calls visit(column, code) for the columns of a group.
template <typename Visit> void each_code(const WeightRow& row, int64_t group, const Visit& visit) {
  const std::byte* tile = row.tile(group);
  for (int64_t i = 0; i < row.group_size; ++i)
    visit(static_cast<size_t>(group * row.group_size + i),
          code_at(tile, row.bits, row.group_size, row.in_block, i) - code_offset(row.bits));
}

// Calls visit(column, multiplier * code) for each column.
template <typename Visit> void each_product(const WeightRow& row, const Visit& visit) {
  for (int64_t group = 0; group < row.groups; ++group) {
    const int multiplier = row.multiplier(group);
    each_code(row, group, [&](size_t column, int code) { visit(column, multiplier * code); });
  }
}

class Halves {
 public:
  explicit Halves(size_t count) : bytes_(count * sizeof(uint16_t)) {}
  void set(size_t index, float value) {
    const uint16_t half = float32_to_float16(value);
    std::memcpy(bytes_.data() + index * sizeof(half), &half, sizeof(half));
  }
  StaticTensor take() { return {DataType::kFloat16, std::move(bytes_)}; }

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

// Calls visit(matrix, number of the first element) for each matrix [N, K] of a stack, or for the one that it is.
template <typename Visit> void each_matrix(const Tensor& tensor, const Visit& visit) {
  if (tensor.rank == 2) return visit(tensor, size_t{0});
  const int64_t n = tensor.size(1), k = tensor.size(2);
  Tensor matrix = tensor;
  matrix.rank = 2;
  matrix.sizes = {n, k};
  matrix.strides = {k, 1};
  const int64_t bytes = matrix_bytes(matrix);
  for (int64_t i = 0; i < tensor.size(0); ++i) {
    matrix.data = const_cast<std::byte*>(tensor.as<const std::byte>()) + i * bytes;
    visit(matrix, static_cast<size_t>(i * n * k));
  }
}

// [N, K] as [K, N], each of a stack
StaticTensor turned(const Tensor& tensor) {
  Halves halves(static_cast<size_t>(tensor.num_elements()));
  each_matrix(tensor, [&](const Tensor& matrix, size_t first) {
    const auto n = static_cast<size_t>(matrix.size(0)), k = static_cast<size_t>(matrix.size(1));
    for (size_t row = 0; row < n; ++row) {
      if (matrix.bits == 0) {
        for (size_t i = 0; i < k; ++i)
          halves.set(first + i * n + row, float_at(matrix.data, matrix.dtype, static_cast<int64_t>(row * k + i)));
        continue;
      }
      const WeightRow tiles(matrix, static_cast<int64_t>(row));
      const float scale = tiles.scale();
      each_product(tiles, [&](size_t column, int product) {
        halves.set(first + column * n + row, scale * static_cast<float>(product));
      });
    }
  });
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
    each_product(tiles, [&](size_t column, int product) {
      fits = fits && product >= -128 && product <= 127;
      result.bytes[column * n + row] = static_cast<std::byte>(is_zero ? 0 : product);
    });
  }
  MOTE_REQUIRE(fits, Code::kInvalidProgram, "its rows are no signed bytes with one positive scale");
  return result;
}

// The power of two that no row of a stack has a larger scale than.
float scale_of_all(const Tensor& tensor) {
  float most = 0;
  each_matrix(tensor, [&](const Tensor& matrix, size_t) {
    for (int64_t row = 0; row < matrix.size(0); ++row) most = std::max(most, WeightRow(matrix, row).scale());
  });
  int exponent = 0;
  std::frexp(most, &exponent);
  return std::ldexp(1.0f, std::clamp(exponent, kLeastExponent, -kLeastExponent));
}

Result<StaticTensor> codes_of(const Tensor& tensor) {
  const float scale = scale_of_all(tensor);
  StaticTensor result{
      DataType::kSignedFixed8, std::vector<std::byte>(static_cast<size_t>(tensor.num_elements())), {{scale, 0}}};
  bool fits = true;
  each_matrix(tensor, [&](const Tensor& matrix, size_t first) {
    for (int64_t row = 0; row < matrix.size(0); ++row) {
      const WeightRow tiles(matrix, row);
      fits = fits && tiles.scale() >= 0 && tiles.scale() <= scale;
      each_product(tiles, [&](size_t column, int product) {
        fits = fits && product >= -128 && product <= 127;
        result.bytes[first + column * static_cast<size_t>(matrix.size(0)) + static_cast<size_t>(row)] =
            static_cast<std::byte>(product);
      });
    }
  });
  MOTE_REQUIRE(fits, Code::kInvalidProgram, "its rows are no signed bytes with one positive scale");
  return result;
}

StaticTensor code_scales_of(const Tensor& tensor) {
  const float scale = scale_of_all(tensor);
  Halves halves(static_cast<size_t>(tensor.size(0) * tensor.size(1)));
  size_t next = 0;
  each_matrix(tensor, [&](const Tensor& matrix, size_t) {
    for (int64_t row = 0; row < matrix.size(0); ++row) halves.set(next++, WeightRow(matrix, row).scale() / scale);
  });
  return halves.take();
}

// For each row the power of two that its length, the root of its squares' sum, is below: float16 multiplies with it
// exactly.
std::vector<float> row_lengths(const Tensor& tensor) {
  std::vector<float> lengths(static_cast<size_t>(tensor.size(0)));
  for (size_t row = 0; row < lengths.size(); ++row) {
    const WeightRow tiles(tensor, static_cast<int64_t>(row));
    double sum = 0;
    each_product(tiles, [&](size_t, int product) { sum += static_cast<double>(product) * product; });
    int exponent = 0;
    std::frexp(tiles.scale() * std::sqrt(sum), &exponent);
    lengths[row] = std::ldexp(1.0f, std::max(exponent, kLeastExponent));
  }
  return lengths;
}

StaticTensor halves_of(const std::vector<float>& numbers) {
  Halves halves(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) halves.set(i, numbers[i]);
  return halves.take();
}

// Codes, a byte each, of which QNN keeps 4 bits. A row is divided by its length.
Result<StaticTensor> blocks_of(const Tensor& tensor) {
  const auto n = static_cast<size_t>(tensor.size(0)), k = static_cast<size_t>(tensor.size(1));
  const std::vector<float> lengths = row_lengths(tensor);
  StaticTensor result{DataType::kSignedFixed8, std::vector<std::byte>(n * k), std::vector<ScaleOffset>(n)};
  bool fits = true;
  for (size_t row = 0; row < n; ++row) {
    const WeightRow tiles(tensor, static_cast<int64_t>(row));
    fits = fits && tiles.scale() >= 0 && tiles.scale() * static_cast<float>(k) < kMostScales;
    const bool is_zero = !tiles.has_scale();
    result.scales[row] = {is_zero ? 1.0f : tiles.scale() / lengths[row], 0};
    for (int64_t group = 0; group < tiles.groups; ++group) {
      const int multiplier = tiles.multiplier(group);
      fits = fits && multiplier >= 0 && multiplier <= kMaxMultiplier;
      // QNN wants positive scales of blocks too.
      const bool is_empty = is_zero || multiplier == 0;
      result.block_scales.push_back(static_cast<uint8_t>(is_empty ? 1 : multiplier));
      if (is_empty) continue;
      each_code(tiles, group,
                [&](size_t column, int code) { result.bytes[column * n + row] = static_cast<std::byte>(code); });
    }
  }
  MOTE_REQUIRE(fits, Code::kInvalidProgram, "its groups have multipliers that are not 0 to %d, or its rows no scale",
               kMaxMultiplier);
  return result;
}

}  // namespace

uint64_t static_bytes(const fb::ValueT& value) {
  const uint64_t count = elements(value.shape);
  if (value.kind != fb::ValueKind::weight) return 2 * count;
  if (value.form == fb::WeightForm::blocks) return (count + 1) / 2;
  return value.form == fb::WeightForm::rows || value.form == fb::WeightForm::codes ? count : 2 * count;
}

Result<StaticTensor> static_tensor(const fb::ValueT& value, const DelegatePart& part) {
  if (value.kind == fb::ValueKind::constant) return halves_of(value.numbers);
  const DelegateWeight& weight = part.weights[static_cast<size_t>(value.index)];
  if (value.form == fb::WeightForm::plain) return plain(weight.tensor, value.offset);
  if (value.form == fb::WeightForm::matrix || value.form == fb::WeightForm::stack) return turned(weight.tensor);
  if (value.form == fb::WeightForm::code_scales) return code_scales_of(weight.tensor);
  if (value.form == fb::WeightForm::lengths) return halves_of(row_lengths(weight.tensor));
  Result<StaticTensor> made = value.form == fb::WeightForm::rows    ? bytes_of_rows(weight.tensor)
                              : value.form == fb::WeightForm::codes ? codes_of(weight.tensor)
                                                                    : blocks_of(weight.tensor);
  if (!made.ok()) return Status(made.status().code(), std::string(weight.name) + ": " + made.status().message());
  return made;
}

}  // namespace mote::qnn
