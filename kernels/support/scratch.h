// Working memory of one call, cut into aligned arrays. An op adds up the same arrays in scratch_bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mote {

// Bytes that one array takes. Counts are products of checked sizes, below 2^44.
template <typename T>
constexpr size_t array_bytes(int64_t count) {
  return (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
}

class Scratch {
 public:
  explicit Scratch(std::span<std::byte> memory) : next_(memory.data()) {}

  template <typename T>
  T* take(int64_t count) {
    T* array = reinterpret_cast<T*>(next_);
    next_ += array_bytes<T>(count);
    return array;
  }

 private:
  std::byte* next_;
};

}  // namespace mote
