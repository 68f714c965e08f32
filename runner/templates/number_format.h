// Python's format specifications: [[fill]align][sign][#][0][width][,][.precision][type].
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/templates/runtime.h"

namespace mote::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  bool no_negative_zero = false;
  int64_t width = 0;
  char grouping = '\0';
  int64_t precision = -1;
  char type = '\0';
};

// Errors: throws Error for what Python does not take.
FormatSpec parse_format_spec(std::string_view spec, const Value& value);
// format(value, spec)
Text format_value(Runtime& runtime, const Value& value, const FormatSpec& spec);

// Digits of |value|.
std::string digits_of(int64_t value, int base, bool upper);
// |value| with `precision` as C's printf does it for e, f and g, with Python's inf and nan.
std::string float_digits(double value, char type, int64_t precision, bool alternate);

// Returns `width` and charges it to the budget. Errors: throws Error above the limit.
int64_t checked_width(Runtime& runtime, int64_t width);

}  // namespace mote::jinja
