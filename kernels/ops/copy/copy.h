// What the copying ops share. They move elements by size and never look at them.
#pragma once

#include "kernels/support/contract.h"
#include "kernels/support/strided_loop.h"
#include "kernels/support/token_axes.h"

namespace mote {

// y (contiguous) = x (any strides), of the same dtype and sizes.
void copy_strided(const Tensor& x, const Tensor& y, ThreadPool& threads);

// A number as one element of `dtype`. Refuses what an integer dtype does not hold.
Result<uint64_t> element_of(double value, DType dtype);

// body.template operator()<T>() with an unsigned T of the element's size.
template <typename Body>
void with_element_type(DType dtype, const Body& body) {
  switch (dtype_bytes(dtype)) {
    case 8: body.template operator()<uint64_t>(); break;
    case 4: body.template operator()<uint32_t>(); break;
    case 2: body.template operator()<uint16_t>(); break;
    default: body.template operator()<uint8_t>(); break;
  }
}

// The rule for rows where inputs that are alike are joined or written into each other along the attribute `dim`.
OutputAxis joined_axis(const SymbolicCall& call);

// Dense, of any dtype.
inline Status expect_dense(const Tensor& tensor, const char* name) {
  return expect_dtype(tensor, name, {tensor.dtype});
}

}  // namespace mote
