#include "runner/grammars/json_schema/numbers.h"

#include <algorithm>
#include <charconv>

namespace mote::constraints {
namespace {

constexpr uint32_t kMaxWholeDigits = 16;
constexpr uint32_t kMaxIntegerDigits = 18;
constexpr uint32_t kMaxFractionDigits = 16;
constexpr uint32_t kMaxBoundDigits = 40;

// Texts of numbers without a sign, and comparisons with one number.
class Magnitudes {
 public:
  Magnitudes(Rules& rules, bool is_integer) : rules_(rules), is_integer_(is_integer) {}

  // A whole number such as 0 or 12, without leading zeros.
  ExpressionId whole(uint32_t max_digits) {
    return rules_.choice({rules_.bytes("0"), rules_.sequence({digit('1', '9'), digits(0, max_digits - 1)})});
  }

  ExpressionId any_fraction() {
    if (is_integer_) return rules_.empty();
    return rules_.optional(rules_.sequence({rules_.bytes("."), digits(1, kMaxFractionDigits)}));
  }

  // Magnitudes above that of `bound`, and that one itself unless `bound` is exclusive.
  ExpressionId above(const Bound& bound) {
    std::vector<ExpressionId> branches = {rules_.sequence({whole_above(bound.whole), any_fraction()})};
    const bool has_fraction = !bound.fraction.empty();
    if (is_integer_) {
      if (!has_fraction && !bound.is_exclusive) branches.push_back(rules_.bytes(bound.whole));
      return rules_.choice(std::move(branches));
    }
    if (!has_fraction && !bound.is_exclusive) branches.push_back(rules_.bytes(bound.whole));
    branches.push_back(rules_.sequence({rules_.bytes(bound.whole + "."), fraction_above(bound)}));
    return rules_.choice(std::move(branches));
  }

  ExpressionId below(const Bound& bound) {
    std::vector<ExpressionId> branches = {rules_.sequence({whole_below(bound.whole), any_fraction()})};
    const bool has_fraction = !bound.fraction.empty();
    if (has_fraction || !bound.is_exclusive) branches.push_back(rules_.bytes(bound.whole));
    if (!is_integer_) branches.push_back(rules_.sequence({rules_.bytes(bound.whole + "."), fraction_below(bound)}));
    return rules_.choice(std::move(branches));
  }

 private:
  ExpressionId digit(char low, char high) {
    return rules_.characters({{static_cast<char32_t>(low), static_cast<char32_t>(high)}});
  }
  ExpressionId digits(size_t low, size_t high) {
    return rules_.repeat(digit('0', '9'), static_cast<uint32_t>(low), static_cast<uint32_t>(std::max(low, high)));
  }

  // Whole numbers with as many digits as `number` that are above it, or below it.
  ExpressionId same_length(const std::string& number, bool is_above) {
    std::vector<ExpressionId> branches;
    for (size_t i = 0; i < number.size(); ++i) {
      const char lowest = i == 0 && number.size() > 1 ? '1' : '0';
      const char low = is_above ? static_cast<char>(number[i] + 1) : lowest;
      const char high = is_above ? '9' : static_cast<char>(number[i] - 1);
      const size_t rest = number.size() - i - 1;
      if (low <= high)
        branches.push_back(rules_.sequence({rules_.bytes(number.substr(0, i)), digit(low, high), digits(rest, rest)}));
    }
    return rules_.choice(std::move(branches));
  }

  ExpressionId whole_above(const std::string& number) {
    const size_t most = std::max<size_t>(is_integer_ ? kMaxIntegerDigits : kMaxWholeDigits, number.size() + 1);
    const ExpressionId longer = rules_.sequence({digit('1', '9'), digits(number.size(), most - 1)});
    return rules_.choice({longer, same_length(number, true)});
  }

  ExpressionId whole_below(const std::string& number) {
    const ExpressionId same = same_length(number, false);
    return number.size() == 1 ? same : rules_.choice({whole(static_cast<uint32_t>(number.size() - 1)), same});
  }

  ExpressionId fraction_above(const Bound& bound) {
    std::vector<ExpressionId> branches;
    const std::string& f = bound.fraction;
    for (size_t i = 0; i < f.size(); ++i) {
      if (f[i] == '9') continue;
      branches.push_back(rules_.sequence(
          {rules_.bytes(f.substr(0, i)), digit(static_cast<char>(f[i] + 1), '9'), digits(0, kMaxFractionDigits - 1)}));
    }
    const ExpressionId zeros = rules_.repeat(rules_.bytes("0"), 0, kMaxFractionDigits / 4);
    const ExpressionId more = rules_.sequence({zeros, digit('1', '9'), digits(0, kMaxFractionDigits / 4)});
    branches.push_back(rules_.sequence({rules_.bytes(f), more}));
    if (!bound.is_exclusive)
      branches.push_back(rules_.sequence({rules_.bytes(f), rules_.repeat(rules_.bytes("0"), f.empty() ? 1 : 0, 4)}));
    return rules_.choice(std::move(branches));
  }

  ExpressionId fraction_below(const Bound& bound) {
    std::vector<ExpressionId> branches;
    const std::string& f = bound.fraction;
    for (size_t i = 0; i < f.size(); ++i) {
      if (i > 0) branches.push_back(rules_.bytes(f.substr(0, i)));
      if (f[i] == '0') continue;
      branches.push_back(rules_.sequence(
          {rules_.bytes(f.substr(0, i)), digit('0', static_cast<char>(f[i] - 1)), digits(0, kMaxFractionDigits - 1)}));
    }
    if (!bound.is_exclusive)
      branches.push_back(rules_.sequence({rules_.bytes(f), rules_.repeat(rules_.bytes("0"), f.empty() ? 1 : 0, 4)}));
    return rules_.choice(std::move(branches));
  }

  Rules& rules_;
  const bool is_integer_;
};

bool is_zero(const Bound& bound) { return bound.whole == "0" && bound.fraction.empty(); }

// -1, 0, 1: the magnitude of a is less, equal, more than that of b.
int compare_magnitudes(const Bound& a, const Bound& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (a.whole != b.whole) return a.whole < b.whole ? -1 : 1;
  return a.fraction == b.fraction ? 0 : a.fraction < b.fraction ? -1 : 1;
}

ExpressionId unbounded(Rules& rules, bool is_integer) {
  Magnitudes magnitudes(rules, is_integer);
  const ExpressionId sign = rules.optional(rules.bytes("-"));
  if (is_integer) return rules.sequence({sign, magnitudes.whole(kMaxIntegerDigits)});
  const ExpressionId digit = rules.characters({{'0', '9'}});
  const ExpressionId exponent =
      rules.sequence({rules.characters({{'e', 'e'}, {'E', 'E'}}),
                      rules.optional(rules.characters({{'+', '+'}, {'-', '-'}})), rules.repeat(digit, 1, 2)});
  return rules.sequence({sign, magnitudes.whole(kMaxWholeDigits), magnitudes.any_fraction(), rules.optional(exponent)});
}

// Magnitudes between bounds, each of which may be missing.
ExpressionId between(Rules& rules, bool is_integer, const std::optional<Bound>& low, const std::optional<Bound>& high) {
  Magnitudes magnitudes(rules, is_integer);
  if (low.has_value() && high.has_value()) return rules.intersection(magnitudes.above(*low), magnitudes.below(*high));
  if (low.has_value()) return magnitudes.above(*low);
  if (high.has_value()) return magnitudes.below(*high);
  return rules.sequence(
      {magnitudes.whole(is_integer ? kMaxIntegerDigits : kMaxWholeDigits), magnitudes.any_fraction()});
}

}  // namespace

std::optional<Bound> make_bound(const std::string& number, bool is_exclusive) {
  Bound bound;
  bound.is_exclusive = is_exclusive;
  bound.is_negative = number.starts_with('-');
  const size_t start = bound.is_negative ? 1 : 0;
  const size_t mark = std::min(number.find_first_of("eE"), number.size());
  int exponent = 0;
  if (mark < number.size()) {
    const char* first = number.data() + mark + 1 + (number[mark + 1] == '+' ? 1 : 0);
    if (std::from_chars(first, number.data() + number.size(), exponent).ec != std::errc()) return std::nullopt;
  }
  const std::string mantissa = number.substr(start, mark - start);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string digits = mantissa.substr(0, point) + (point < mantissa.size() ? mantissa.substr(point + 1) : "");
  if (exponent > 60 || exponent < -60 || digits.size() > 60) return std::nullopt;
  int place = static_cast<int>(point) + exponent;  // of the point in `digits`
  if (place < 0) {
    digits.insert(0, static_cast<size_t>(-place), '0');
    place = 0;
  }
  if (static_cast<size_t>(place) > digits.size()) digits.append(static_cast<size_t>(place) - digits.size(), '0');
  bound.whole = digits.substr(0, static_cast<size_t>(place));
  bound.fraction = digits.substr(static_cast<size_t>(place));
  bound.whole.erase(0, std::min(bound.whole.find_first_not_of('0'), bound.whole.size()));
  if (bound.whole.empty()) bound.whole = "0";
  bound.fraction.erase(bound.fraction.find_last_not_of('0') + 1);
  if (is_zero(bound)) bound.is_negative = false;
  if (bound.whole.size() + bound.fraction.size() > kMaxBoundDigits) return std::nullopt;
  return bound;
}

bool is_tighter_low(const Bound& a, const Bound& b) {
  if (a.is_negative != b.is_negative) return b.is_negative;
  const int order = a.is_negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
  return order > 0 || (order == 0 && a.is_exclusive);
}

ExpressionId append_number(Rules& rules, bool is_integer, const std::optional<Bound>& low,
                           const std::optional<Bound>& high) {
  if (!low.has_value() && !high.has_value()) return unbounded(rules, is_integer);
  std::vector<ExpressionId> branches;
  const bool may_be_negative = !low.has_value() || low->is_negative;
  const bool may_be_positive = !high.has_value() || !high->is_negative;
  if (may_be_positive) {
    const std::optional<Bound> from = low.has_value() && !low->is_negative ? low : std::nullopt;
    branches.push_back(between(rules, is_integer, from, high));
  }
  if (may_be_negative) {
    Bound zero{false, "0", "", true};
    const std::optional<Bound> from = high.has_value() && high->is_negative ? *high : zero;
    branches.push_back(rules.sequence({rules.bytes("-"), between(rules, is_integer, from, low)}));
  }
  return rules.choice(std::move(branches));
}

}  // namespace mote::constraints
