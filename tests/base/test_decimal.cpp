#include "base/decimal.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace mote {
namespace {

TEST(Decimal, reads_what_numbers_are_written_like) {
  EXPECT_EQ(read_decimal("0"), 0.0);
  EXPECT_EQ(read_decimal("-1.5"), -1.5);
  EXPECT_EQ(read_decimal(".5"), 0.5);
  EXPECT_EQ(read_decimal("2."), 2.0);
  EXPECT_EQ(read_decimal("25e-1"), 2.5);
  EXPECT_EQ(read_decimal("1E+3"), 1000.0);
  EXPECT_EQ(read_decimal("0.1000000000000000000001"), 0.1);
  EXPECT_EQ(read_decimal("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(read_decimal("-Infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(read_decimal("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read_decimal("1e-999"), 0.0);
  EXPECT_TRUE(std::isnan(read_decimal("NaN").value_or(0)));
}

TEST(Decimal, refuses_what_is_none) {
  for (const char* text : {"",   "-", "+1",    "--1", "-+1",    " 1",       "1 ",  "1,5",   "0x10", "0x1p3", "1e",
                           "e1", ".", "1.2.3", "1_0", "nan(1)", "infinite", "one", "--inf", "+inf", " inf"})
    EXPECT_FALSE(read_decimal(text).has_value()) << text;
  EXPECT_FALSE(read_decimal(std::string_view("1\0", 2)).has_value());
}

TEST(Decimal, writes_the_shortest_text) {
  EXPECT_EQ(shortest_text(0.0), "0");
  EXPECT_EQ(shortest_text(-0.0), "-0");
  EXPECT_EQ(shortest_text(0.1), "0.1");
  EXPECT_EQ(shortest_text(0.1F), "0.1");
  EXPECT_EQ(shortest_text(static_cast<double>(0.1F)), "0.10000000149011612");
  EXPECT_EQ(shortest_text(-1234.5), "-1234.5");
  EXPECT_EQ(shortest_text(100000.0), "100000");
  EXPECT_EQ(shortest_text(1e15), "1000000000000000");
  EXPECT_EQ(shortest_text(1e16), "1e+16");
  EXPECT_EQ(shortest_text(1.25e100), "1.25e+100");
  EXPECT_EQ(shortest_text(0.0001), "0.0001");
  EXPECT_EQ(shortest_text(0.00001), "1e-05");
  EXPECT_EQ(shortest_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(shortest_text(-std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(shortest_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

// The digits that the C++ library writes.
template <typename T>
std::string digits_of(T value) {
  char text[64];
  std::string digits(text, std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr);
  digits.resize(digits.find('e'));
  std::erase(digits, '.');
  return digits;
}

template <typename T>
void expect_shortest(T value) {
  const std::string text = shortest_text(value);
  EXPECT_EQ(static_cast<T>(*read_decimal(text)), value) << text;
  std::string digits = text.substr(0, text.find('e'));
  std::erase(digits, '.');
  digits.erase(0, digits.find_first_not_of('0'));
  digits.erase(digits.find_last_not_of('0') + 1);
  EXPECT_EQ(digits, digits_of(value)) << text;
}

TEST(Decimal, random_numbers_and_all_powers_of_two_are_shortest_and_read_back) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random() >> 1;
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value) && value != 0) expect_shortest(value);
    const auto low = static_cast<uint32_t>(bits) >> 1;
    float single = 0;
    std::memcpy(&single, &low, sizeof single);
    if (std::isfinite(single) && single != 0) expect_shortest(single);
  }
  for (int exponent = -1074; exponent < 1024; ++exponent) expect_shortest(std::ldexp(1.0, exponent));
  for (int exponent = -149; exponent < 128; ++exponent) expect_shortest(std::ldexp(1.0F, exponent));
}

}  // namespace
}  // namespace mote
