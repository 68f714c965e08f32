// Integers and conditions as the device holds them: 32 bits each, what does not fit as the nearest that does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/tensor.h"

namespace mote::vulkan {

inline int32_t to_word(int64_t value) {
  using Limits = std::numeric_limits<int32_t>;
  return static_cast<int32_t>(std::clamp<int64_t>(value, Limits::min(), Limits::max()));
}

// from: int64 or bool, contiguous
inline void to_words(const Tensor& from, int32_t* words) {
  const int64_t count = from.num_elements();
  if (from.dtype == DType::kInt64) {
    std::transform(from.as<int64_t>(), from.as<int64_t>() + count, words, to_word);
  } else {
    const auto* conditions = static_cast<const uint8_t*>(from.data);
    std::transform(conditions, conditions + count, words, [](uint8_t condition) { return condition != 0 ? 1 : 0; });
  }
}

inline void from_words(const int32_t* words, Tensor* to) {
  const int64_t count = to->num_elements();
  if (to->dtype == DType::kInt64) {
    std::copy_n(words, count, to->as<int64_t>());
  } else {
    std::transform(words, words + count, static_cast<uint8_t*>(to->data),
                   [](int32_t word) { return static_cast<uint8_t>(word != 0); });
  }
}

}  // namespace mote::vulkan
