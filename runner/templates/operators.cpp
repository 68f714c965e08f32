#include "runner/templates/operators.h"

#include <cmath>

#include "runner/templates/describe.h"
#include "runner/templates/escapes.h"
#include "runner/templates/percent_format.h"
#include "runner/templates/search.h"

namespace mote::jinja {
namespace {

const char* symbol_of(Operator op) {
  switch (op) {
    case Operator::kAdd: return "+";
    case Operator::kSubtract: return "-";
    case Operator::kMultiply: return "*";
    case Operator::kDivide: return "/";
    case Operator::kFloorDivide: return "//";
    case Operator::kModulo: return "%";
    case Operator::kPower: return "** or pow()";
    case Operator::kLess: return "<";
    case Operator::kLessEqual: return "<=";
    case Operator::kGreater: return ">";
    case Operator::kGreaterEqual: return ">=";
    default: return "==";
  }
}

[[noreturn]] void fail_operands(Operator op, const Value& a, const Value& b) {
  MOTE_JINJA_FAIL("unsupported operand type(s) for %s: '%s' and '%s'", symbol_of(op), type_name(a), type_name(b));
}

[[noreturn]] void fail_overflow() { fail("integer overflow: the result does not fit 64 bits"); }

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      if (exponent > 0 && result != 0) fail_overflow();
    }
  }
  return result;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1 && a == INT64_MIN) fail_overflow();
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value whole_arithmetic(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) fail_overflow();
      return Value::of(result);
    case Operator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
      return Value::of(result);
    case Operator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
      return Value::of(result);
    case Operator::kDivide:
      if (b == 0) fail("division by zero");
      return Value::of(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Operator::kFloorDivide:
      if (b == 0) fail("integer division or modulo by zero");
      return Value::of(floor_divide(a, b));
    case Operator::kModulo:
      if (b == 0) fail("integer modulo by zero");
      return Value::of(floor_modulo(a, b));
    default:
      if (b >= 0)
        return Value::of(a == 1 || a == 0 || a == -1 ? (b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a) : power(a, b));
      if (a == 0) fail("0.0 cannot be raised to a negative power");
      return Value::of(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
}

double float_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) rest += b;
    return rest;
  }
  return std::copysign(0.0, b);
}

double float_floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::floor(b) != b) fail("complex numbers are not supported");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("(34, 'Numerical result out of range')");
  return result;
}

Value float_arithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd: return Value::of(a + b);
    case Operator::kSubtract: return Value::of(a - b);
    case Operator::kMultiply: return Value::of(a * b);
    case Operator::kDivide:
      if (b == 0) fail("float division by zero");
      return Value::of(a / b);
    case Operator::kFloorDivide:
      if (b == 0) fail("float floor division by zero");
      return Value::of(float_floor_divide(a, b));
    case Operator::kModulo:
      if (b == 0) fail("float modulo");
      return Value::of(float_modulo(a, b));
    default: return Value::of(float_power(a, b));
  }
}

Value add_lists(Runtime& runtime, const Value& a, const Value& b) {
  List* list = make_list(runtime.arena(), a.list->size + b.list->size);
  runtime.budget().step((a.list->size + b.list->size) / 8);
  for (const Value& item : *a.list) list->add(runtime.arena(), item);
  for (const Value& item : *b.list) list->add(runtime.arena(), item);
  return Value::of(list, a.kind == Kind::kTuple);
}

Value repeat(Runtime& runtime, const Value& sequence, int64_t count) {
  if (sequence.is_text()) {
    TextBuilder out(runtime.arena());
    if (sequence.size > 0) {
      for (int64_t i = 0; i < count; ++i) {
        if (i % 8 == 0) runtime.budget().step();
        out.add(sequence.text());
      }
    }
    Text text = out.finish();
    text.safe = sequence.safe;
    return Value::of(text);
  }
  List* list = make_list(runtime.arena());
  for (int64_t i = 0; i < count && sequence.list->size > 0; ++i) {
    runtime.budget().step(sequence.list->size);
    for (const Value& item : *sequence.list) list->add(runtime.arena(), item);
  }
  return Value::of(list, sequence.kind == Kind::kTuple);
}

Value add(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) return Value::of(concatenate(runtime, a.text(), b.text()));
  if (a.is_sequence() && a.kind == b.kind) return add_lists(runtime, a, b);
  if (a.is_text() && !a.safe) MOTE_JINJA_FAIL("can only concatenate str (not \"%s\") to str", type_name(b));
  if (a.is_sequence())
    MOTE_JINJA_FAIL("can only concatenate %s (not \"%s\") to %s", type_name(a), type_name(b), type_name(a));
  fail_operands(Operator::kAdd, a, b);
}

Value multiply(Runtime& runtime, const Value& a, const Value& b) {
  const bool a_repeats = a.is_text() || a.is_sequence();
  const bool b_repeats = b.is_text() || b.is_sequence();
  if (a_repeats && b.is_whole()) return repeat(runtime, a, b.whole());
  if (b_repeats && a.is_whole()) return repeat(runtime, b, a.whole());
  if (a_repeats) MOTE_JINJA_FAIL("can't multiply sequence by non-int of type '%s'", type_name(b));
  if (b_repeats) MOTE_JINJA_FAIL("can't multiply sequence by non-int of type '%s'", type_name(a));
  fail_operands(Operator::kMultiply, a, b);
}

// -1, 0 or 1.
int order(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

}  // namespace

Text escape_html(Runtime& runtime, const Text& text) {
  if (text.safe) return text;
  TextBuilder out(runtime.arena());
  out.add_mapped(text, append_html_character);
  Text escaped = out.finish();
  escaped.safe = true;
  return escaped;
}

Text concatenate(Runtime& runtime, const Text& a, const Text& b) {
  if (a.safe != b.safe) return concatenate(runtime, escape_html(runtime, a), escape_html(runtime, b));
  TextBuilder out(runtime.arena());
  out.add(a);
  out.add(b);
  Text text = out.finish();
  text.safe = a.safe;
  return text;
}

Value arithmetic(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  if (op == Operator::kModulo && a.is_text()) return Value::of(percent_format(runtime, a.text(), b));
  require_defined(runtime, a);
  require_defined(runtime, b);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return whole_arithmetic(op, a.whole(), b.whole());
    return float_arithmetic(op, a.number(), b.number());
  }
  if (op == Operator::kAdd) return add(runtime, a, b);
  if (op == Operator::kMultiply) return multiply(runtime, a, b);
  fail_operands(op, a, b);
}

Value negative(Runtime& runtime, const Value& value) {
  require_defined(runtime, value);
  if (value.is(Kind::kFloat)) return Value::of(-value.real);
  if (!value.is_whole()) MOTE_JINJA_FAIL("bad operand type for unary -: '%s'", type_name(value));
  if (value.whole() == INT64_MIN) fail_overflow();
  return Value::of(-value.whole());
}

Value positive(Runtime& runtime, const Value& value) {
  require_defined(runtime, value);
  if (!value.is_number()) MOTE_JINJA_FAIL("bad operand type for unary +: '%s'", type_name(value));
  return value.is(Kind::kBool) ? Value::of(value.whole()) : value;
}

namespace {

bool holds(Operator op, int order_of_operands) {
  switch (op) {
    case Operator::kLess: return order_of_operands < 0;
    case Operator::kLessEqual: return order_of_operands <= 0;
    case Operator::kGreater: return order_of_operands > 0;
    default: return order_of_operands >= 0;
  }
}

bool compare_order(Runtime& runtime, Operator op, const Value& a, const Value& b, int depth) {
  require_defined(runtime, a);
  require_defined(runtime, b);
  if (depth > runtime.budget().limits().max_data_depth) fail("a value that is compared nests too deeply");
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return holds(op, a.whole() < b.whole() ? -1 : a.whole() > b.whole() ? 1 : 0);
    if (std::isnan(a.number()) || std::isnan(b.number())) return false;
    return holds(op, order(a.number(), b.number()));
  }
  if (a.is_text() && b.is_text()) {
    runtime.budget().scan(std::min(a.size, b.size));
    return holds(op, a.string().compare(b.string()));
  }
  if (!a.is_sequence() || a.kind != b.kind) {
    MOTE_JINJA_FAIL("'%s' not supported between instances of '%s' and '%s'", symbol_of(op), type_name(a), type_name(b));
  }
  const size_t common = std::min(a.list->size, b.list->size);
  runtime.budget().step(common);
  for (size_t i = 0; i < common; ++i) {
    if (!equal(runtime.budget(), a.list->items[i], b.list->items[i])) {
      return compare_order(runtime, op, a.list->items[i], b.list->items[i], depth + 1);
    }
  }
  return holds(op, order(static_cast<double>(a.list->size), static_cast<double>(b.list->size)));
}

}  // namespace

bool is_less(Runtime& runtime, const Value& a, const Value& b, int depth) {
  return compare_order(runtime, Operator::kLess, a, b, depth);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::kText:
      if (!item.is_text()) MOTE_JINJA_FAIL("'in <string>' requires string as left operand, not %s", type_name(item));
      return find_text(runtime.budget(), container.string(), item.string()) != std::string_view::npos;
    case Kind::kDict: return container.dict->find(runtime.budget(), item) != nullptr;
    case Kind::kRange: {
      if (!item.is_whole()) return false;
      const Range& range = *container.range;
      const __int128 offset = static_cast<__int128>(item.whole()) - range.start;
      return offset % range.step == 0 && offset / range.step >= 0 &&
             offset / range.step < static_cast<__int128>(range.size);
    }
    default: break;
  }
  if (!is_iterable(container)) MOTE_JINJA_FAIL("argument of type '%s' is not iterable", type_name(container));
  Cursor cursor(runtime, container);
  Value other;
  while (cursor.next(other)) {
    if (equal(runtime.budget(), other, item)) return true;
  }
  return false;
}

bool compare(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  switch (op) {
    case Operator::kEqual: return equal(runtime.budget(), a, b);
    case Operator::kNotEqual: return !equal(runtime.budget(), a, b);
    case Operator::kIn: return contains(runtime, b, a);
    case Operator::kNotIn: return !contains(runtime, b, a);
    default: return compare_order(runtime, op, a, b, 0);
  }
}

}  // namespace mote::jinja
