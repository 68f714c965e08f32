// Numbers between bounds, as texts.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

struct Bound {
  bool is_negative = false;
  std::string whole;     // digits without leading zeros; "0" for none
  std::string fraction;  // digits without trailing zeros
  bool is_exclusive = false;
};

// Reads a number such as "-12.5e-1"; nullopt: it has more than 40 digits.
std::optional<Bound> make_bound(const std::string& number, bool is_exclusive);

// Whether the lower bound a is above b, or excludes the number at which both are.
bool is_tighter_low(const Bound& a, const Bound& b);

// Numbers between `low` and `high`, each of which may be missing; is_integer: whole numbers only.
// Without bounds: up to 18 digits if whole, else up to 16 before and 16 behind the point, and an exponent of 2 digits.
ExpressionId append_number(Rules& rules, bool is_integer, const std::optional<Bound>& low,
                           const std::optional<Bound>& high);

}  // namespace mote::constraints
