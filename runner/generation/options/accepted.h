// Which values an option takes, and how a message says so.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "base/status.h"

namespace mote {

struct Accepted {
  double least = -HUGE_VAL;
  double most = HUGE_VAL;
  bool excludes_least = false;
  const char* note = "";  // what a value stands for, such as "0: off"
};

// For what its type alone decides.
constexpr Accepted anything() { return {}; }
constexpr Accepted noted(const char* note) { return {-HUGE_VAL, HUGE_VAL, false, note}; }
constexpr Accepted any_number(const char* note = "") { return {-HUGE_VAL, HUGE_VAL, false, note}; }
constexpr Accepted at_least(double least, const char* note = "") { return {least, HUGE_VAL, false, note}; }
constexpr Accepted within(double least, double most, const char* note = "") { return {least, most, false, note}; }
constexpr Accepted above(double least, const char* note = "") { return {least, HUGE_VAL, true, note}; }
constexpr Accepted above_up_to(double least, double most, const char* note = "") { return {least, most, true, note}; }

// "an integer, 0 or more (0: off)"
std::string accepted_text(const char* kind, const Accepted& accepted);

// Errors: kInvalidArgument "top_p = 2: must be a number, 0..1 (1: off)". Infinities and what is not a number are never
// accepted.
Status check_accepted(const char* name, double value, const char* kind, const Accepted& accepted);

template <typename T>
Status check_accepted(const char* name, T value, const Accepted& accepted) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    constexpr const char* kKind = std::is_integral_v<T> ? "an integer" : "a number";
    return check_accepted(name, static_cast<double>(value), kKind, accepted);
  } else {
    return {};  // whatever the type has
  }
}

}  // namespace mote

// Of a row the check of its field in `options`, for functions that return a Status.
#define MOTE_OPTION_CHECK(name, type, default_value, accepted, ...) \
  MOTE_RETURN_IF_ERROR(::mote::check_accepted(#name, options.name, accepted));
