// Elements in order, from and to memory that a vendor lays out with strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mote::assets {

// Calls visit(offset in the strided memory, offset among elements in order, bytes) for runs of contiguous elements.
// strides: count elements
template <typename Visit>
void each_run(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t element_bytes,
              const Visit& visit, int64_t strided = 0, int64_t in_order = 0) {
  if (shape.empty()) return visit(strided * element_bytes, in_order * element_bytes, element_bytes);
  if (shape.size() == 1 && strides[0] == 1)
    return visit(strided * element_bytes, in_order * element_bytes, shape[0] * element_bytes);
  int64_t inner = 1;
  for (const int64_t size : shape.subspan(1)) inner *= size;
  for (int64_t i = 0; i < shape[0]; ++i)
    each_run(shape.subspan(1), strides.subspan(1), element_bytes, visit, strided + i * strides[0],
             in_order + i * inner);
}

inline void gather(const void* strided, std::span<const int64_t> shape, std::span<const int64_t> strides,
                   int64_t element_bytes, std::byte* in_order) {
  each_run(shape, strides, element_bytes, [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(in_order + to, static_cast<const std::byte*>(strided) + from, static_cast<size_t>(bytes));
  });
}

inline void scatter(const std::byte* in_order, std::span<const int64_t> shape, std::span<const int64_t> strides,
                    int64_t element_bytes, void* strided) {
  each_run(shape, strides, element_bytes, [&](int64_t to, int64_t from, int64_t bytes) {
    std::memcpy(static_cast<std::byte*>(strided) + to, in_order + from, static_cast<size_t>(bytes));
  });
}

}  // namespace mote::assets
