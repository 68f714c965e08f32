// Evaluates expressions.
#include "runner/templates/attributes.h"
#include "runner/templates/describe.h"
#include "runner/templates/escapes.h"
#include "runner/templates/filters.h"
#include "runner/templates/interpreter.h"
#include "runner/templates/interpreter_guards.h"
#include "runner/templates/operators.h"
#include "runner/templates/tests.h"

namespace mote::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Nesting nesting(*this);
  budget().step();
  switch (expression.kind) {
    case ExpressionKind::kConstant: return expression.constant;
    case ExpressionKind::kName: {
      const Value& value = variable(expression.slot);
      return value.is(Kind::kMissing) ? make_undefined_name(arena(), expression.name) : value;
    }
    case ExpressionKind::kNegative: return negative(*this, evaluate(*expression.items[0]));
    case ExpressionKind::kPositive: return positive(*this, evaluate(*expression.items[0]));
    case ExpressionKind::kNot: return Value::of(!is_true(evaluate(*expression.items[0])));
    case ExpressionKind::kArithmetic: return evaluate_arithmetic(expression);
    case ExpressionKind::kComparison: return evaluate_comparison(expression);
    case ExpressionKind::kConditional: return evaluate_conditional(expression);
    case ExpressionKind::kChain: return apply_steps(expression, evaluate(*expression.items[0]), nullptr);
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr: {
      const bool stops_at = expression.kind == ExpressionKind::kOr;
      Value value;
      for (const Expression* item : expression.items) {
        value = evaluate(*item);
        if (is_true(value) == stops_at) break;
      }
      return value;
    }
    case ExpressionKind::kConcatenation: {
      TextBuilder out(arena());
      for (const Expression* item : expression.items) print(*this, out, evaluate(*item));
      return Value::of(out.finish());
    }
    default: return evaluate_literal(expression);
  }
}

Value Interpreter::evaluate_literal(const Expression& expression) {
  if (expression.kind == ExpressionKind::kDict) {
    Dict* dict = make_dict(arena());
    for (size_t i = 0; i + 1 < expression.items.size(); i += 2) {
      const Value key = evaluate(*expression.items[i]);
      dict->set(arena(), key, evaluate(*expression.items[i + 1]));
    }
    return Value::of(dict);
  }
  List* list = make_list(arena(), expression.items.size());
  for (const Expression* item : expression.items) list->add(arena(), evaluate(*item));
  return Value::of(list, expression.kind == ExpressionKind::kTuple);
}

Value Interpreter::evaluate_arithmetic(const Expression& expression) {
  Value value = evaluate(*expression.items[0]);
  size_t i = 0;
  const size_t count = expression.operators.size();
  // A run of + over texts is built in one buffer: adding them pair by pair would copy the first ones again and again.
  if (value.is_text() && !value.safe && count > 1 && expression.operators[0] == Operator::kAdd) {
    TextBuilder out(arena());
    out.add(value.text());
    while (i < count && expression.operators[i] == Operator::kAdd) {
      const Value next = evaluate(*expression.items[i + 1]);
      if (!next.is_text() || next.safe) {
        value = arithmetic(*this, Operator::kAdd, Value::of(out.finish()), next);
        ++i;
        for (; i < count; ++i)
          value = arithmetic(*this, expression.operators[i], value, evaluate(*expression.items[i + 1]));
        return value;
      }
      out.add(next.text());
      ++i;
    }
    value = Value::of(out.finish());
  }
  for (; i < count; ++i) value = arithmetic(*this, expression.operators[i], value, evaluate(*expression.items[i + 1]));
  return value;
}

Value Interpreter::evaluate_comparison(const Expression& expression) {
  Value left = evaluate(*expression.items[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    const Value right = evaluate(*expression.items[i + 1]);
    if (!compare(*this, expression.operators[i], left, right)) return Value::of(false);
    left = right;
  }
  return Value::of(true);
}

Value Interpreter::evaluate_conditional(const Expression& expression) {
  if (is_true(evaluate(*expression.items[1]))) return evaluate(*expression.items[0]);
  if (expression.items[2] != nullptr) return evaluate(*expression.items[2]);
  return make_undefined_hint(
      arena(), format("the inline if-expression on line %u evaluated to false and no else section was defined.",
                      expression.line));
}

Value Interpreter::apply_steps(const Expression& chain, Value value, const Value* caller) {
  for (size_t i = 0; i < chain.steps.size(); ++i) {
    budget().step();
    value = apply_step(chain.steps[i], value, i + 1 == chain.steps.size() ? caller : nullptr);
  }
  return value;
}

Value Interpreter::apply_step(const Step& step, const Value& value, const Value* caller) {
  switch (step.kind) {
    case StepKind::kAttribute: return get_attribute(*this, value, step.name);
    case StepKind::kItem: return get_item(*this, value, evaluate(*step.item));
    case StepKind::kSlice: {
      Value bounds[3];
      for (size_t i = 0; i < 3; ++i) {
        if (step.bounds[i] != nullptr) bounds[i] = evaluate(*step.bounds[i]);
      }
      return get_slice(*this, value, bounds);
    }
    case StepKind::kCall: {
      Arguments arguments = evaluate_arguments(step.arguments);
      if (caller != nullptr) arguments.keywords.emplace_back("caller", *caller);
      return call(value, arguments);
    }
    case StepKind::kFilter: {
      const Arguments arguments = evaluate_arguments(step.arguments);
      if (step.filter == nullptr) fail("No filter named " + repr_of(step.name) + " found.");
      return apply_filter(*this, *step.filter, value, arguments);
    }
    case StepKind::kTest: {
      const Arguments arguments = evaluate_arguments(step.arguments);
      if (step.test == nullptr) fail("No test named " + repr_of(step.name) + " found.");
      return Value::of(apply_test(*this, *step.test, value, arguments) != step.negated);
    }
  }
  return Value::none();
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments values;
  values.positional.reserve(arguments.positional.size());
  for (const Expression* argument : arguments.positional) values.positional.push_back(evaluate(*argument));
  for (const CallArguments::Keyword& keyword : arguments.keywords) {
    values.keywords.emplace_back(Text(keyword.name), evaluate(*keyword.value));
  }
  if (arguments.star != nullptr) {
    const List* more = to_list(*this, evaluate(*arguments.star));
    budget().take_memory(more->size * sizeof(Value));
    values.positional.insert(values.positional.end(), more->begin(), more->end());
  }
  if (arguments.double_star != nullptr) {
    const Value more = evaluate(*arguments.double_star);
    if (!more.is(Kind::kDict)) MOTE_JINJA_FAIL("argument after ** must be a mapping, not %s", type_name(more));
    budget().take_memory(more.dict->size * sizeof(Value) * 2);
    for (const Dict::Entry& entry : *more.dict) {
      budget().step();
      if (!entry.key.is_text()) fail("keywords must be strings");
      values.keywords.emplace_back(entry.key.text(), entry.value);
    }
  }
  return values;
}

}  // namespace mote::jinja
