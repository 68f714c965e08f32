#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/decimal.h"
#include "runner/templates/characters.h"
#include "runner/templates/describe.h"
#include "runner/templates/filters.h"
#include "runner/templates/number_format.h"
#include "runner/templates/numbers.h"
#include "runner/templates/operators.h"

namespace mote::jinja {
namespace {

std::string_view stripped(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  return text;
}

int64_t whole_of(double value) {
  if (std::fabs(value) >= 0x1p63) fail("integer overflow: the number does not fit 64 bits");
  return static_cast<int64_t>(value);
}

Value integer(Runtime& runtime, const Value& value, const Bound& bound) {
  const Value otherwise = bound.value_or(1, Value::of(0));
  const int64_t base = to_index(bound.value_or(2, Value::of(10)));
  require_defined(runtime, value);
  if (value.is_whole()) return Value::of(value.whole());
  double real = 0;
  if (value.is_text()) {
    runtime.budget().scan_slowly(value.size);
    if (const std::optional<int64_t> found = parse_integer(value.string(), base)) return Value::of(*found);
    const std::optional<double> found = parse_float(value.string());
    if (!found) return otherwise;
    real = *found;
  } else if (value.is(Kind::kFloat)) {
    real = value.real;
    if (std::isinf(real)) fail("cannot convert float infinity to integer");
  } else {
    return otherwise;
  }
  return std::isfinite(real) ? Value::of(whole_of(real)) : otherwise;
}

Value real(Runtime& runtime, const Value& value, const Bound& bound) {
  const Value otherwise = bound.value_or(1, Value::of(0.0));
  require_defined(runtime, value);
  if (value.is_number()) return Value::of(value.number());
  if (!value.is_text()) return otherwise;
  runtime.budget().scan_slowly(value.size);
  const std::optional<double> found = parse_float(value.string());
  return found ? Value::of(*found) : otherwise;
}

Value absolute(Runtime& runtime, const Value& value, const Bound&) {
  if (value.is(Kind::kFloat)) return Value::of(std::fabs(value.real));
  if (!value.is_whole()) MOTE_JINJA_FAIL("bad operand type for abs(): '%s'", type_name(value));
  return value.whole() < 0 ? negative(runtime, value) : Value::of(value.whole());
}

// round(value, precision), ties to even.
Value rounded(const Value& value, int64_t precision) {
  if (value.is(Kind::kFloat)) {
    if (!std::isfinite(value.real) || precision > 323) return value;
    if (precision < -308) return Value::of(std::copysign(0.0, value.real));
    if (precision >= 0) {
      const std::string digits = float_digits(value.real, 'f', precision, false);
      return Value::of(std::copysign(std::strtod(digits.c_str(), nullptr), value.real));
    }
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return Value::of(std::nearbyint(value.real / unit) * unit);
  }
  if (precision >= 0) return Value::of(value.whole());
  if (precision < -18) return Value::of(0);
  int64_t unit = 1;
  for (int64_t i = 0; i < -precision; ++i) unit *= 10;
  const int64_t rest = ((value.whole() % unit) + unit) % unit;
  const int64_t floor = value.whole() - rest;
  const bool up = rest * 2 > unit || (rest * 2 == unit && (floor / unit) % 2 != 0);
  return Value::of(up ? floor + unit : floor);
}

Value round(Runtime& runtime, const Value& value, const Bound& bound) {
  const Value precision = bound.value_or(1, Value::of(0));
  const Value method = bound.value_or(2, Value::of("common"));
  const std::string_view name = method.is_text() ? method.string() : std::string_view();
  if (name != "common" && name != "ceil" && name != "floor") fail("method must be common, ceil or floor");
  if (name == "common") {
    if (!value.is_number()) MOTE_JINJA_FAIL("type %s doesn't define __round__ method", type_name(value));
    return rounded(value, to_index(precision));
  }
  const Value scale = arithmetic(runtime, Operator::kPower, Value::of(10), precision);
  const Value scaled = arithmetic(runtime, Operator::kMultiply, value, scale);
  if (!scaled.is_number()) MOTE_JINJA_FAIL("must be real number, not %s", type_name(scaled));
  Value whole = scaled;
  if (scaled.is(Kind::kFloat))
    whole = Value::of(whole_of(name == "ceil" ? std::ceil(scaled.real) : std::floor(scaled.real)));
  return arithmetic(runtime, Operator::kDivide, whole, scale);
}

constexpr Filter kNumberFilters[] = {
    {"int", {{"do_int", 1, {"value", "default", "base"}}, integer, nullptr}},
    {"float", {{"do_float", 1, {"value", "default"}}, real, nullptr}},
    {"abs", {{"abs", 1, {"x"}}, absolute, nullptr}},
    {"round", {{"do_round", 1, {"value", "precision", "method"}}, round, nullptr}},
};

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text, int64_t base) {
  text = stripped(text);
  bool is_negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    is_negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  int actual = static_cast<int>(base);
  bool has_prefix = false;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int named = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (named != 0 && (base == 0 || base == named)) {
      actual = named;
      text.remove_prefix(2);
      has_prefix = true;
    }
  }
  if (actual == 0) {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != text.npos) return std::nullopt;
    actual = 10;
  }
  std::string digits = is_negative ? "-" : "";
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_separator = text[i] == '_' && i + 1 < text.size() && text[i + 1] != '_' && (i > 0 || has_prefix);
    if (!is_separator) digits += text[i];
  }
  int64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, actual);
  if (parsed.ec == std::errc::result_out_of_range && parsed.ptr == digits.data() + digits.size()) {
    fail("integer overflow: the number does not fit 64 bits");
  }
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  text = stripped(text);
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_separator = text[i] == '_' && i > 0 && i + 1 < text.size() &&
                              is_decimal(static_cast<unsigned char>(text[i - 1])) &&
                              is_decimal(static_cast<unsigned char>(text[i + 1]));
    if (!is_separator) digits += text[i];
  }
  const bool has_plus = digits.starts_with('+') && !digits.starts_with("+-");
  return read_decimal(std::string_view(digits).substr(has_plus ? 1 : 0));
}

std::span<const Filter> number_filters() { return kNumberFilters; }

}  // namespace mote::jinja
