// Size is a count of bytes or elements whose arithmetic cannot wrap. A number from a file becomes a length only through
// a Size.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace mote {

// A non-negative count below 2^63, or invalid. Once an operation leaves that range the result stays invalid, so a
// whole formula is written first and checked once at the end.
class Size {
 public:
  constexpr Size() = default;
  template <std::integral T>
  constexpr Size(T value)  // NOLINT(google-explicit-constructor)
      : value_(is_representable(value) ? static_cast<int64_t>(value) : kInvalid) {}

  constexpr bool valid() const { return value_ >= 0; }
  constexpr bool at_most(Size limit) const { return valid() && limit.valid() && value_ <= limit.value_; }
  constexpr bool is_multiple_of(int64_t alignment) const { return valid() && alignment > 0 && value_ % alignment == 0; }

  // The count, if valid(); else -1, which no caller takes for a length.
  constexpr int64_t value() const { return value_; }
  constexpr uint64_t unsigned_value() const { return valid() ? static_cast<uint64_t>(value_) : 0; }

  constexpr Size align_up(int64_t alignment) const {
    if (!valid() || alignment <= 0) return invalid();
    const int64_t remainder = value_ % alignment;
    return remainder == 0 ? *this : *this + Size(alignment - remainder);
  }

  friend constexpr Size operator+(Size a, Size b) {
    if (!a.valid() || !b.valid() || a.value_ > kLargest - b.value_) return invalid();
    return Size(a.value_ + b.value_);
  }
  friend constexpr Size operator*(Size a, Size b) {
    if (!a.valid() || !b.valid() || (b.value_ != 0 && a.value_ > kLargest / b.value_)) return invalid();
    return Size(a.value_ * b.value_);
  }
  friend constexpr bool operator==(Size a, Size b) { return a.valid() && b.valid() && a.value_ == b.value_; }

 private:
  static constexpr int64_t kInvalid = -1;
  static constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

  static constexpr Size invalid() {
    Size size;
    size.value_ = kInvalid;
    return size;
  }
  template <std::integral T>
  static constexpr bool is_representable(T value) {
    if constexpr (std::signed_integral<T>) {
      return value >= 0;
    } else {
      return static_cast<uint64_t>(value) <= static_cast<uint64_t>(kLargest);
    }
  }

  int64_t value_ = 0;
};

// sum = a * b + c over signed integers; false when a step leaves int64.
constexpr bool checked_multiply_add(int64_t a, int64_t b, int64_t c, int64_t* sum) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, sum);
}

}  // namespace mote
