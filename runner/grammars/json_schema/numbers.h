// Numbers between bounds, as texts.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

struct Bound {
  bool is_negative = false;
  std::string whole;     // digits, no zeros in front but one alone
  std::string fraction;  // digits, no zeros at the end
  bool is_exclusive = false;
};

// Reads a number such as "-12.5e-1"; nullopt: it has more than 40 digits.
std::optional<Bound> make_bound(const std::string& number, bool is_exclusive);

// Whether the lower bound a is above b, or excludes the number at which both are.
bool is_tighter_low(const Bound& a, const Bound& b);

// Whole numbers, or with a fraction too, of which each is at least `low` and at most `high` where there are such.
// Without bounds: a fraction and an exponent, with as many digits as a double can tell apart.
ExpressionId append_number(Rules& rules, bool is_integer, const std::optional<Bound>& low,
                           const std::optional<Bound>& high);

}  // namespace mote::constraints
