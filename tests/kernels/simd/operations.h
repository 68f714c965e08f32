// Every operation of kernels/simd as a function over memory, so that one test calls what was compiled for each CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mote::test {

inline constexpr size_t kVectorBytes = 64;

enum class Domain {
  kFloats,
  kRoundable,
  kIntegers,
  kBytes
};  // what the inputs may be: any, |x| <= 2^22, any, -128..127

struct SimdOperation {
  std::string_view name;
  Domain domain;
  bool gives_floats;  // else bits
  void (*run)(const std::byte* a, const std::byte* b, const std::byte* c, const std::byte* d, std::byte* y);
};

struct SimdOperations {
  static constexpr std::string_view kRole = "test.simd";
  const SimdOperation* list;
  size_t count;
};

}  // namespace mote::test
