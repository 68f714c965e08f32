#include "base/decimal.h"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <type_traits>

namespace mote {
namespace {

// 1.25e3: digits 125, exponent 3
struct Decimal {
  std::string digits;
  int exponent = 0;
};

Decimal rounded(double value, int num_digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*e", num_digits - 1, value);
  const size_t e = std::string_view(text).find('e');
  Decimal result;
  std::copy_if(text, text + e, std::back_inserter(result.digits), [](char c) { return c >= '0' && c <= '9'; });
  result.exponent = std::atoi(text + e + 1);
  return result;
}

template <typename T>
bool reads_back(const Decimal& decimal, T value) {
  const int last_exponent = decimal.exponent - static_cast<int>(decimal.digits.size()) + 1;
  const std::string text = decimal.digits + "e" + std::to_string(last_exponent);
  if constexpr (std::is_same_v<T, float>)
    return std::strtof(text.c_str(), nullptr) == value;
  else
    return std::strtod(text.c_str(), nullptr) == value;
}

template <typename T>
Decimal shortest(T value) {
  for (int num_digits = 1;; ++num_digits) {
    Decimal decimal = rounded(static_cast<double>(value), num_digits);
    if (num_digits == std::numeric_limits<T>::max_digits10 || reads_back(decimal, value)) return decimal;
    // Above a power of two, numbers are twice as far apart as below it: the nearest text may be too far below, the next
    // one not too far above.
    if (decimal.digits.back() == '9') continue;
    ++decimal.digits.back();
    if (reads_back(decimal, value)) return decimal;
  }
}

template <typename T>
std::string text_of(T value) {
  if (std::isnan(value)) return "nan";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "inf";
  if (value == 0) return sign + "0";
  auto [digits, exponent] = shortest(std::fabs(value));
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    if (count > 1) digits.insert(1, ".");
    char power[16];
    std::snprintf(power, sizeof power, "e%+03d", exponent);
    return sign + digits + power;
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return sign + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0');
  return sign + digits.insert(static_cast<size_t>(exponent + 1), ".");
}

}  // namespace

std::optional<double> read_decimal(std::string_view text) {
  const std::string_view unsigned_text = text.substr(text.starts_with('-') ? 1 : 0);
  // strtod takes spaces, another sign, hexadecimal digits, the language's point and nan(...) besides.
  const bool is_word = text.npos == unsigned_text.find_first_of("0123456789.,+( \t\n\v\f\r");
  const bool is_number = text.npos == unsigned_text.find_first_not_of("0123456789.eE+-") &&
                         !unsigned_text.starts_with('+') && !unsigned_text.starts_with('-');
  if (!is_word && !is_number) return std::nullopt;
  std::string all(text);
  if (const size_t point = all.find('.'); point != all.npos) all.replace(point, 1, std::localeconv()->decimal_point);
  char* end = nullptr;
  const double value = std::strtod(all.c_str(), &end);
  if (all.empty() || end != all.c_str() + all.size()) return std::nullopt;
  return value;
}

std::string shortest_text(double value) { return text_of(value); }
std::string shortest_text(float value) { return text_of(value); }

}  // namespace mote
