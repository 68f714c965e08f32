#include "backends/xnnpack/unpack.h"

#include <cmath>
#include <cstring>

#include "kernels/formats.h"
#include "kernels/support/float_bits.h"
#include "kernels/weight_row.h"

namespace mote::xnnpack {
namespace {

void write_codes(const WeightRow& row, int64_t group, uint8_t* to) {
  const std::byte* tile = row.tile(group);
  if (row.bits == 4) {
    for (int64_t i = 0; i < row.group_size / 8; ++i) {
      const uint32_t codes = eight_codes(tile, row.in_block, i);
      std::memcpy(to + 4 * i, &codes, sizeof(codes));
    }
    return;
  }
  const int up = 8 - code_offset(row.bits);
  const auto code = [&](int64_t column) { return code_at(tile, row.bits, row.group_size, row.in_block, column) + up; };
  for (int64_t i = 0; i < row.group_size / 2; ++i) to[i] = static_cast<uint8_t>(code(2 * i) | code(2 * i + 1) << 4);
}

// What of a product of at most two bytes goes into which byte: high * 256 + low.
int8_t part_of(int product, fb::WeightForm form) {
  if (form == fb::WeightForm::int8_rows) return static_cast<int8_t>(product);
  const int low = static_cast<int8_t>(product & 0xff);
  return static_cast<int8_t>(form == fb::WeightForm::int8_low ? low : (product - low) / 256);
}

void write_products(const WeightRow& row, int64_t group, fb::WeightForm form, int8_t* to) {
  const std::byte* tile = row.tile(group);
  const int multiplier = row.has_scale() ? row.multiplier(group) : 0, offset = code_offset(row.bits);
  if (row.bits == 4) {
    for (int64_t i = 0; i < row.group_size / 8; ++i) {
      const uint32_t codes = eight_codes(tile, row.in_block, i);
      for (int j = 0; j < 8; ++j) {
        to[8 * i + j] = part_of(multiplier * (static_cast<int>(codes >> 4 * j & 15) - offset), form);
      }
    }
    return;
  }
  for (int64_t column = 0; column < row.group_size; ++column) {
    to[column] = part_of(multiplier * (code_at(tile, row.bits, row.group_size, row.in_block, column) - offset), form);
  }
}

Status check_multiplier(int multiplier, int64_t row, int64_t group) {
  MOTE_REQUIRE(multiplier == 0 || multiplier == 1, Code::kInvalidProgram,
               "multiplier %d of row %lld, group %lld: must be 0 or 1 where rows have one scale", multiplier,
               static_cast<long long>(row), static_cast<long long>(group));
  return {};
}

// 8 stands for a code of 0.
void write_zeros(const WeightRow& row, uint8_t* to) { std::memset(to, 0x88, static_cast<size_t>(row.group_size / 2)); }

uint16_t to_bfloat16(int small) {  // of at most 8 bits: exact
  const auto value = static_cast<float>(small);
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

}  // namespace

void unpack_dense(const Tensor& tensor, int64_t first_row, int64_t num_rows, float offset, float* to) {
  int64_t row_elements = 1;
  for (int i = 1; i < tensor.rank; ++i) row_elements *= tensor.size(i);
  const int64_t first = first_row * row_elements, count = num_rows * row_elements;
  for (int64_t i = 0; i < count; ++i) to[i] = float_at(tensor.data, tensor.dtype, first + i) + offset;
}

void unpack_half(const Tensor& tensor, int64_t first_row, int64_t num_rows, uint16_t* to) {
  const int64_t first = first_row * tensor.size(1), count = num_rows * tensor.size(1);
  for (int64_t i = 0; i < count; ++i) to[i] = float32_to_float16(float_at(tensor.data, tensor.dtype, first + i));
}

Status unpack_row_scales(const Tensor& tensor, int64_t first_row, int64_t num_rows, bool positive, float* to) {
  for (int64_t i = 0; i < num_rows; ++i) {
    const WeightRow row(tensor, first_row + i);
    const float scale = row.scale();
    MOTE_REQUIRE(!positive || (std::isfinite(scale) && scale >= 0), Code::kInvalidProgram,
                 "the scale of row %lld is %g: must be finite and at least 0", static_cast<long long>(first_row + i),
                 static_cast<double>(scale));
    to[i] = positive && !row.has_scale() ? 1.0f : scale;
  }
  return {};
}

Status unpack_int4_blocks(const Tensor& tensor, int64_t first_row, int64_t num_rows, uint8_t* to, uint16_t* scales) {
  for (int64_t i = 0; i < num_rows; ++i) {
    const WeightRow row(tensor, first_row + i);
    for (int64_t group = 0; group < row.groups; ++group, to += row.group_size / 2) {
      const int multiplier = row.multiplier(group);
      MOTE_REQUIRE(multiplier >= 0, Code::kInvalidProgram,
                   "multiplier %d of row %lld, group %lld: must be 0 to %d for int4_blocks", multiplier,
                   static_cast<long long>(first_row + i), static_cast<long long>(group),
                   weight_format(row.bits).max_multiplier);
      *scales++ = multiplier == 0 ? kBFloat16One : to_bfloat16(multiplier);
      if (multiplier == 0)
        write_zeros(row, to);
      else
        write_codes(row, group, to);
    }
  }
  return {};
}

Status unpack_int4_rows(const Tensor& tensor, int64_t first_row, int64_t num_rows, uint8_t* to) {
  for (int64_t i = 0; i < num_rows; ++i) {
    const WeightRow row(tensor, first_row + i);
    for (int64_t group = 0; group < row.groups; ++group, to += row.group_size / 2) {
      const int multiplier = row.multiplier(group);
      MOTE_RETURN_IF_ERROR(check_multiplier(multiplier, first_row + i, group));
      if (multiplier == 0 || !row.has_scale())
        write_zeros(row, to);
      else
        write_codes(row, group, to);
    }
  }
  return {};
}

Status unpack_int8(const Tensor& tensor, fb::WeightForm form, int64_t first_row, int64_t num_rows, int8_t* to) {
  const bool is_code = form == fb::WeightForm::int8_rows && !products_fit_bytes(tensor.bits);
  for (int64_t i = 0; i < num_rows; ++i) {
    const WeightRow row(tensor, first_row + i);
    for (int64_t group = 0; group < row.groups; ++group, to += row.group_size) {
      if (is_code) MOTE_RETURN_IF_ERROR(check_multiplier(row.multiplier(group), first_row + i, group));
      write_products(row, group, form, to);
    }
  }
  return {};
}

}  // namespace mote::xnnpack
