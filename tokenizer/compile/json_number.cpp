#include "tokenizer/compile/json_number.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

namespace mote::tokenizer {
namespace {

constexpr int kMaxPower = 308;

std::array<double, kMaxPower + 1> powers_of_ten() {
  std::array<double, kMaxPower + 1> powers{};
  for (int i = 0; i <= kMaxPower; ++i)
    powers[static_cast<size_t>(i)] = std::strtod(("1e" + std::to_string(i)).c_str(), nullptr);
  return powers;
}

bool is_digit(std::string_view text) { return !text.empty() && text.front() >= '0' && text.front() <= '9'; }

// The digits that fit into 64 bits; those behind them are dropped.
class Significand {
 public:
  // Whether the digit was taken.
  bool take(char c) {
    const auto digit = static_cast<uint64_t>(c - '0');
    full_ = full_ || value_ > (std::numeric_limits<uint64_t>::max() - digit) / 10;
    if (!full_) value_ = 10 * value_ + digit;
    return !full_;
  }
  void start_fraction() { full_ = false; }
  double value() const { return static_cast<double>(value_); }

 private:
  uint64_t value_ = 0;
  bool full_ = false;
};

int64_t read_exponent(std::string_view text) {
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  int64_t exponent = 0;
  for (; is_digit(text); text.remove_prefix(1)) {
    if (exponent < std::numeric_limits<int32_t>::max()) exponent = 10 * exponent + (text.front() - '0');
  }
  return negative ? -exponent : exponent;
}

double scaled(double value, int64_t exponent) {
  static const std::array<double, kMaxPower + 1> kPowers = powers_of_ten();
  while (exponent < -kMaxPower && value != 0.0) {
    value /= kPowers[kMaxPower];
    exponent += kMaxPower;
  }
  if (value == 0.0) return value;
  if (exponent > kMaxPower) return std::numeric_limits<double>::infinity();
  return exponent >= 0 ? value * kPowers[static_cast<size_t>(exponent)]
                       : value / kPowers[static_cast<size_t>(-exponent)];
}

}  // namespace

double json_number(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  Significand significand;
  int64_t exponent = 0;
  for (; is_digit(text); text.remove_prefix(1)) exponent += significand.take(text.front()) ? 0 : 1;
  if (!text.empty() && text.front() == '.') {
    significand.start_fraction();
    for (text.remove_prefix(1); is_digit(text); text.remove_prefix(1))
      exponent -= significand.take(text.front()) ? 1 : 0;
  }
  if (text.size() > 1 && (text.front() == 'e' || text.front() == 'E')) exponent += read_exponent(text.substr(1));
  const double value = scaled(significand.value(), exponent);
  return negative ? -value : value;
}

}  // namespace mote::tokenizer
