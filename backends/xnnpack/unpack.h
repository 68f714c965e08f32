// Turns weights of the file into XNNPACK's layouts.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/tensor.h"
#include "xnnpack_schema_generated.h"

namespace mote::xnnpack {

inline constexpr uint16_t kBFloat16One = 0x3f80;

// Rows first_row .. first_row + num_rows of `tensor`, which the form was verified to fit; all written row-major.

// float32, float16 or bfloat16 as float32, plus offset.
void unpack_dense(const Tensor& tensor, int64_t first_row, int64_t num_rows, float offset, float* to);
// The same as float16.
void unpack_half(const Tensor& tensor, int64_t first_row, int64_t num_rows, uint16_t* to);
// [num_rows]. positive: a scale that XNNPACK refuses becomes 1, where the codes of its row become 0.
// Errors: kInvalidProgram for a negative scale or one that is not finite, if they have to be positive.
Status unpack_row_scales(const Tensor& tensor, int64_t first_row, int64_t num_rows, bool positive, float* to);
// Codes + 8, two a byte, the even column low: [num_rows][K / 2]. scales: bfloat16 [num_rows][K / group], positive.
// Errors: kInvalidProgram for a negative multiplier.
Status unpack_int4_blocks(const Tensor& tensor, int64_t first_row, int64_t num_rows, uint8_t* to, uint16_t* scales);
// The same where every multiplier is 1, or 0 for codes of 0. Errors: kInvalidProgram for another multiplier.
Status unpack_int4_rows(const Tensor& tensor, int64_t first_row, int64_t num_rows, uint8_t* to);
// int8_rows, int8_high or int8_low: [num_rows][K]. Errors: kInvalidProgram for a multiplier above 1 in int8_rows of 5
// to 8 bits.
Status unpack_int8(const Tensor& tensor, fb::WeightForm form, int64_t first_row, int64_t num_rows, int8_t* to);

}  // namespace mote::xnnpack
