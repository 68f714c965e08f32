#include "runner/templates/tests.h"

#include <algorithm>
#include <iterator>

#include "runner/templates/attributes.h"
#include "runner/templates/describe.h"
#include "runner/templates/filters.h"
#include "runner/templates/operators.h"
#include "runner/templates/text_methods.h"

namespace mote::jinja {
namespace {

template <Operator op>
bool compares(Runtime& runtime, const Bound& bound) {
  return compare(runtime, op, bound[0], bound[1]);
}

bool leaves(Runtime& runtime, const Value& value, const Value& divisor, int64_t rest) {
  const Value modulo = arithmetic(runtime, Operator::kModulo, value, divisor);
  return equal(runtime.budget(), modulo, Value::of(rest));
}

bool is_odd(Runtime& runtime, const Bound& bound) { return leaves(runtime, bound[0], Value::of(2), 1); }
bool is_even(Runtime& runtime, const Bound& bound) { return leaves(runtime, bound[0], Value::of(2), 0); }
bool is_divisible(Runtime& runtime, const Bound& bound) { return leaves(runtime, bound[0], bound[1], 0); }
bool is_defined(Runtime&, const Bound& bound) { return !bound[0].is_undefined(); }
bool is_not_defined(Runtime&, const Bound& bound) { return bound[0].is_undefined(); }
bool is_filter(Runtime&, const Bound& bound) { return bound[0].is_text() && find_filter(bound[0].string()) != nullptr; }
bool is_test(Runtime&, const Bound& bound) { return bound[0].is_text() && find_test(bound[0].string()) != nullptr; }
bool is_none(Runtime&, const Bound& bound) { return bound[0].is_none(); }
bool is_boolean(Runtime&, const Bound& bound) { return bound[0].is(Kind::kBool); }
bool is_false(Runtime&, const Bound& bound) { return bound[0].is(Kind::kBool) && !bound[0].boolean; }
bool is_exactly_true(Runtime&, const Bound& bound) { return bound[0].is(Kind::kBool) && bound[0].boolean; }
bool is_integer(Runtime&, const Bound& bound) { return bound[0].is(Kind::kInteger); }
bool is_float(Runtime&, const Bound& bound) { return bound[0].is(Kind::kFloat); }
bool is_number(Runtime&, const Bound& bound) { return bound[0].is_number(); }
bool is_string(Runtime&, const Bound& bound) { return bound[0].is_text(); }
bool is_mapping(Runtime&, const Bound& bound) { return bound[0].is(Kind::kDict); }
bool is_lower_text(Runtime& runtime, const Bound& bound) { return is_lower_case(runtime, to_text(runtime, bound[0])); }
bool is_upper_text(Runtime& runtime, const Bound& bound) { return is_upper_case(runtime, to_text(runtime, bound[0])); }

bool is_sequence(Runtime&, const Bound& bound) {
  const Value& value = bound[0];
  return value.is_text() || value.is_sequence() || value.is(Kind::kDict) || value.is(Kind::kRange) ||
         value.is_undefined();
}

bool is_iterable_value(Runtime&, const Bound& bound) { return is_iterable(bound[0]) || bound[0].is(Kind::kLoop); }

bool is_callable(Runtime&, const Bound& bound) {
  switch (bound[0].kind) {
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kJoiner:
    case Kind::kUndefined: return true;
    default: return false;
  }
}

// Python's `is`. Numbers and texts have no identity here: they are the same if type and value are equal.
bool is_same(Runtime& runtime, const Bound& bound) {
  const Value& a = bound[0];
  const Value& b = bound[1];
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInteger:
    case Kind::kFloat:
    case Kind::kText: return equal(runtime.budget(), a, b);
    default: return a.object == b.object;
  }
}

bool is_escaped(Runtime&, const Bound& bound) { return bound[0].is_text() && bound[0].safe; }
bool is_in(Runtime& runtime, const Bound& bound) { return contains(runtime, bound[1], bound[0]); }

constexpr Signature one(const char* name) { return {name, 1, {"value"}}; }
constexpr Signature two(const char* name, const char* second) { return {name, 2, {"value", second}}; }

constexpr Test kTests[] = {
    {"odd", one("test_odd"), is_odd},
    {"even", one("test_even"), is_even},
    {"divisibleby", two("test_divisibleby", "num"), is_divisible},
    {"defined", one("test_defined"), is_defined},
    {"undefined", one("test_undefined"), is_not_defined},
    {"filter", {"test_filter", 1, {"value"}, 1}, is_filter},
    {"test", {"test_test", 1, {"value"}, 1}, is_test},
    {"none", one("test_none"), is_none},
    {"boolean", one("test_boolean"), is_boolean},
    {"false", one("test_false"), is_false},
    {"true", one("test_true"), is_exactly_true},
    {"integer", one("test_integer"), is_integer},
    {"float", one("test_float"), is_float},
    {"lower", one("test_lower"), is_lower_text},
    {"upper", one("test_upper"), is_upper_text},
    {"string", one("test_string"), is_string},
    {"mapping", one("test_mapping"), is_mapping},
    {"number", one("test_number"), is_number},
    {"sequence", one("test_sequence"), is_sequence},
    {"iterable", one("test_iterable"), is_iterable_value},
    {"callable", one("callable"), is_callable},
    {"sameas", two("test_sameas", "other"), is_same},
    {"escaped", one("test_escaped"), is_escaped},
    {"in", two("test_in", "seq"), is_in},
    {"==", two("eq", "b"), compares<Operator::kEqual>},
    {"eq", two("eq", "b"), compares<Operator::kEqual>},
    {"equalto", two("eq", "b"), compares<Operator::kEqual>},
    {"!=", two("ne", "b"), compares<Operator::kNotEqual>},
    {"ne", two("ne", "b"), compares<Operator::kNotEqual>},
    {">", two("gt", "b"), compares<Operator::kGreater>},
    {"gt", two("gt", "b"), compares<Operator::kGreater>},
    {"greaterthan", two("gt", "b"), compares<Operator::kGreater>},
    {"ge", two("ge", "b"), compares<Operator::kGreaterEqual>},
    {">=", two("ge", "b"), compares<Operator::kGreaterEqual>},
    {"<", two("lt", "b"), compares<Operator::kLess>},
    {"lt", two("lt", "b"), compares<Operator::kLess>},
    {"lessthan", two("lt", "b"), compares<Operator::kLess>},
    {"<=", two("le", "b"), compares<Operator::kLessEqual>},
    {"le", two("le", "b"), compares<Operator::kLessEqual>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests), [name](const Test& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

bool apply_test(Runtime& runtime, const Test& test, const Value& value, const Arguments& arguments) {
  runtime.budget().step();
  return test.call(runtime, Bound(test.signature, &value, arguments));
}

}  // namespace mote::jinja
