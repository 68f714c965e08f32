#include "runner/templates/expression_parser.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "runner/templates/escapes.h"
#include "runner/templates/filters.h"
#include "runner/templates/tests.h"

namespace mote::jinja {

void TokenStream::fail_expected(std::string_view expected) const {
  if (is(TokenType::kEnd)) fail("unexpected end of template, expected " + repr_of(expected) + ".");
  fail("expected token " + repr_of(expected) + ", got " + repr_of(describe(current())));
}

Expression* ExpressionParser::make(ExpressionKind kind, uint32_t line) {
  program_.expressions.push_back(std::make_unique<Expression>());
  Expression* expression = program_.expressions.back().get();
  expression->kind = kind;
  expression->line = line;
  return expression;
}

Expression* ExpressionParser::make_constant(const Value& value, uint32_t line) {
  Expression* expression = make(ExpressionKind::kConstant, line);
  expression->constant = value;
  return expression;
}

Expression* ExpressionParser::parse_tuple(const TupleOptions& options) {
  const Nesting nesting(*this);
  const uint32_t line = stream_.current().line;
  std::vector<Expression*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) stream_.expect(TokenType::kComma);
    const TokenType type = stream_.current().type;
    if (type == TokenType::kVariableEnd || type == TokenType::kBlockEnd || type == TokenType::kRightParenthesis) break;
    if (!options.end_name.empty() && stream_.is_name(options.end_name)) break;
    items.push_back(options.is_target ? parse_primary(options.with_namespace)
                                      : parse_expression(options.with_condition));
    if (!stream_.is(TokenType::kComma)) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!options.explicit_parentheses) fail("Expected an expression, got " + repr_of(describe(stream_.current())));
  }
  Expression* tuple = make(ExpressionKind::kTuple, line);
  tuple->items = std::move(items);
  return tuple;
}

namespace {

// Python's name of the node's class, for messages; empty if it may be assigned to.
std::string_view unassignable(const Expression& target) {
  switch (target.kind) {
    case ExpressionKind::kName:
    case ExpressionKind::kNamespaceReference: return {};
    case ExpressionKind::kTuple:
      for (const Expression* item : target.items) {
        if (!unassignable(*item).empty()) return "tuple";
      }
      return {};
    case ExpressionKind::kList: return "list";
    case ExpressionKind::kDict: return "dict";
    default: return "const";
  }
}

}  // namespace

Expression* ExpressionParser::parse_target(const TupleOptions& options) {
  Expression* target = parse_tuple(options);
  if (const std::string_view name = unassignable(*target); !name.empty()) fail("can't assign to " + repr_of(name));
  return target;
}

std::string_view ExpressionParser::parse_target_name() {
  const std::string_view name = stream_.expect(TokenType::kName).text;
  for (const std::string_view reserved : {"true", "false", "none", "True", "False", "None"}) {
    if (name == reserved) fail("can't assign to 'name'");
  }
  return name;
}

Expression* ExpressionParser::parse_expression(bool with_condition) {
  const Nesting nesting(*this);
  return with_condition ? parse_condition() : parse_or();
}

Expression* ExpressionParser::parse_condition() {
  const uint32_t line = stream_.current().line;
  Expression* expression = parse_or();
  while (stream_.skip_if_name("if")) {
    const Nesting nesting(*this);
    Expression* condition = parse_or();
    Expression* otherwise = nullptr;
    if (stream_.skip_if_name("else")) otherwise = parse_condition();
    Expression* conditional = make(ExpressionKind::kConditional, line);
    conditional->items = {expression, condition, otherwise};
    expression = conditional;
  }
  return expression;
}

Expression* ExpressionParser::parse_joined(const char* word, ExpressionKind kind,
                                           Expression* (ExpressionParser::*parse_operand)()) {
  Expression* first = (this->*parse_operand)();
  if (!stream_.is_name(word)) return first;
  Expression* chain = make(kind, first->line);
  chain->items = {first};
  while (stream_.skip_if_name(word)) chain->items.push_back((this->*parse_operand)());
  return chain;
}

Expression* ExpressionParser::parse_or() {
  return parse_joined("or", ExpressionKind::kOr, &ExpressionParser::parse_and);
}

Expression* ExpressionParser::parse_and() {
  return parse_joined("and", ExpressionKind::kAnd, &ExpressionParser::parse_not);
}

Expression* ExpressionParser::parse_not() {
  if (!stream_.is_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  Expression* negation = make(ExpressionKind::kNot, stream_.next().line);
  negation->items = {parse_not()};
  return negation;
}

Expression* ExpressionParser::parse_comparison() {
  Expression* first = parse_sum();
  Expression* comparison = nullptr;
  while (true) {
    std::optional<Operator> found;
    switch (stream_.current().type) {
      case TokenType::kEqual: found = Operator::kEqual; break;
      case TokenType::kNotEqual: found = Operator::kNotEqual; break;
      case TokenType::kLess: found = Operator::kLess; break;
      case TokenType::kLessEqual: found = Operator::kLessEqual; break;
      case TokenType::kGreater: found = Operator::kGreater; break;
      case TokenType::kGreaterEqual: found = Operator::kGreaterEqual; break;
      default: break;
    }
    if (!found && stream_.is_name("in")) found = Operator::kIn;
    if (!found && stream_.is_name("not") && stream_.look().type == TokenType::kName && stream_.look().text == "in") {
      found = Operator::kNotIn;
      stream_.next();
    }
    if (!found) return comparison == nullptr ? first : comparison;
    stream_.next();
    if (comparison == nullptr) {
      comparison = make(ExpressionKind::kComparison, first->line);
      comparison->items = {first};
    }
    comparison->items.push_back(parse_sum());
    comparison->operators.push_back(*found);
  }
}

namespace {

std::optional<Operator> arithmetic_of(TokenType type) {
  switch (type) {
    case TokenType::kAdd: return Operator::kAdd;
    case TokenType::kSub: return Operator::kSubtract;
    case TokenType::kMul: return Operator::kMultiply;
    case TokenType::kDiv: return Operator::kDivide;
    case TokenType::kFloorDiv: return Operator::kFloorDivide;
    case TokenType::kMod: return Operator::kModulo;
    case TokenType::kPow: return Operator::kPower;
    default: return std::nullopt;
  }
}

}  // namespace

Expression* ExpressionParser::parse_arithmetic(std::initializer_list<TokenType> operators,
                                               Expression* (ExpressionParser::*operand)()) {
  const auto is_operator = [&](TokenType type) { return stream_.is(type); };
  Expression* first = (this->*operand)();
  Expression* chain = nullptr;
  while (std::any_of(operators.begin(), operators.end(), is_operator)) {
    if (chain == nullptr) {
      chain = make(ExpressionKind::kArithmetic, first->line);
      chain->items = {first};
    }
    chain->operators.push_back(*arithmetic_of(stream_.next().type));
    chain->items.push_back((this->*operand)());
  }
  return chain == nullptr ? first : chain;
}

Expression* ExpressionParser::parse_sum() {
  return parse_arithmetic({TokenType::kAdd, TokenType::kSub}, &ExpressionParser::parse_concatenation);
}

Expression* ExpressionParser::parse_concatenation() {
  Expression* first = parse_product();
  if (!stream_.is(TokenType::kTilde)) return first;
  Expression* chain = make(ExpressionKind::kConcatenation, first->line);
  chain->items = {first};
  while (stream_.skip_if(TokenType::kTilde)) chain->items.push_back(parse_product());
  return chain;
}

Expression* ExpressionParser::parse_product() {
  return parse_arithmetic({TokenType::kMul, TokenType::kDiv, TokenType::kFloorDiv, TokenType::kMod},
                          &ExpressionParser::parse_power);
}

Expression* ExpressionParser::parse_power() {
  return parse_arithmetic({TokenType::kPow}, &ExpressionParser::parse_signed);
}

Expression* ExpressionParser::parse_signed() { return parse_unary(true); }

Expression* ExpressionParser::parse_unary(bool with_filter) {
  const Nesting nesting(*this);
  Expression* expression = nullptr;
  if (stream_.is(TokenType::kSub) || stream_.is(TokenType::kAdd)) {
    const Token& sign = stream_.next();
    expression = make(sign.type == TokenType::kSub ? ExpressionKind::kNegative : ExpressionKind::kPositive, sign.line);
    Expression* operand = parse_unary(false);
    expression->items = {operand};
  } else {
    expression = parse_primary(false);
  }
  expression = parse_postfix(expression);
  return with_filter ? parse_filters_and_tests(expression) : expression;
}

Expression* ExpressionParser::parse_name(bool with_namespace) {
  const Token& token = stream_.next();
  if (token.text == "true" || token.text == "True") return make_constant(Value::of(true), token.line);
  if (token.text == "false" || token.text == "False") return make_constant(Value::of(false), token.line);
  if (token.text == "none" || token.text == "None") return make_constant(Value::none(), token.line);
  const bool is_reference = with_namespace && stream_.skip_if(TokenType::kDot);
  Expression* name = make(is_reference ? ExpressionKind::kNamespaceReference : ExpressionKind::kName, token.line);
  name->name = token.text;
  if (is_reference) name->attribute = stream_.expect(TokenType::kName).text;
  return name;
}

Expression* ExpressionParser::parse_primary(bool with_namespace) {
  const Nesting nesting(*this);
  const Token& token = stream_.current();
  switch (token.type) {
    case TokenType::kName: return parse_name(with_namespace);
    case TokenType::kText: {
      stream_.next();
      Expression* first = make_constant(Value::of(Text(token.text)), token.line);
      if (!stream_.is(TokenType::kText)) return first;
      Expression* joined = make(ExpressionKind::kConcatenation, token.line);
      joined->items = {first};
      while (stream_.is(TokenType::kText)) {
        joined->items.push_back(make_constant(Value::of(Text(stream_.current().text)), token.line));
        stream_.next();
      }
      return joined;
    }
    case TokenType::kInteger: stream_.next(); return make_constant(Value::of(token.integer), token.line);
    case TokenType::kFloat: stream_.next(); return make_constant(Value::of(token.real), token.line);
    case TokenType::kLeftParenthesis: {
      stream_.next();
      Expression* inside = parse_tuple({.explicit_parentheses = true});
      stream_.expect(TokenType::kRightParenthesis);
      return inside;
    }
    case TokenType::kLeftBracket: return parse_list();
    case TokenType::kLeftBrace: return parse_dict();
    default: fail("unexpected " + repr_of(describe(token)));
  }
}

Expression* ExpressionParser::parse_list() {
  Expression* list = make(ExpressionKind::kList, stream_.expect(TokenType::kLeftBracket).line);
  while (!stream_.is(TokenType::kRightBracket)) {
    if (!list->items.empty()) stream_.expect(TokenType::kComma);
    if (stream_.is(TokenType::kRightBracket)) break;
    list->items.push_back(parse_expression());
  }
  stream_.expect(TokenType::kRightBracket);
  return list;
}

Expression* ExpressionParser::parse_dict() {
  Expression* dict = make(ExpressionKind::kDict, stream_.expect(TokenType::kLeftBrace).line);
  while (!stream_.is(TokenType::kRightBrace)) {
    if (!dict->items.empty()) stream_.expect(TokenType::kComma);
    if (stream_.is(TokenType::kRightBrace)) break;
    dict->items.push_back(parse_expression());
    stream_.expect(TokenType::kColon);
    dict->items.push_back(parse_expression());
  }
  stream_.expect(TokenType::kRightBrace);
  return dict;
}

Expression* ExpressionParser::chain_of(Expression* expression) {
  if (expression->kind == ExpressionKind::kChain) return expression;
  Expression* chain = make(ExpressionKind::kChain, expression->line);
  chain->items = {expression};
  return chain;
}

Expression* ExpressionParser::parse_postfix(Expression* expression) {
  while (true) {
    if (stream_.is(TokenType::kDot) || stream_.is(TokenType::kLeftBracket)) {
      expression = chain_of(expression);
      parse_subscript(expression);
    } else if (stream_.is(TokenType::kLeftParenthesis)) {
      expression = chain_of(expression);
      Step step{.kind = StepKind::kCall, .line = stream_.current().line};
      step.arguments = parse_call_arguments();
      expression->steps.push_back(std::move(step));
    } else {
      return expression;
    }
  }
}

Expression* ExpressionParser::parse_filters_and_tests(Expression* expression) {
  while (true) {
    if (stream_.is(TokenType::kPipe)) {
      expression = chain_of(expression);
      parse_filters(expression, false);
    } else if (stream_.is_name("is")) {
      expression = chain_of(expression);
      parse_test(expression);
    } else if (stream_.is(TokenType::kLeftParenthesis)) {
      expression = chain_of(expression);
      Step step{.kind = StepKind::kCall, .line = stream_.current().line};
      step.arguments = parse_call_arguments();
      expression->steps.push_back(std::move(step));
    } else {
      return expression;
    }
  }
}

void ExpressionParser::parse_subscript(Expression* chain) {
  const Token& token = stream_.next();
  if (token.type == TokenType::kDot) {
    const Token& attribute = stream_.next();
    Step step{.kind = StepKind::kAttribute, .line = token.line};
    if (attribute.type == TokenType::kName) {
      step.name = attribute.text;
    } else if (attribute.type == TokenType::kInteger) {
      step.kind = StepKind::kItem;
      step.item = make_constant(Value::of(attribute.integer), attribute.line);
    } else {
      fail("expected name or number");
    }
    chain->steps.push_back(std::move(step));
    return;
  }
  std::vector<Step> parts;
  while (!stream_.is(TokenType::kRightBracket)) {
    if (!parts.empty()) stream_.expect(TokenType::kComma);
    parts.push_back(parse_slice_or_item());
  }
  stream_.expect(TokenType::kRightBracket);
  if (parts.size() == 1) {
    chain->steps.push_back(std::move(parts[0]));
    return;
  }
  Expression* tuple = make(ExpressionKind::kTuple, token.line);
  for (const Step& part : parts) {
    if (part.kind == StepKind::kSlice) fail("a slice among several subscripts is not supported");
    tuple->items.push_back(part.item);
  }
  chain->steps.push_back({.kind = StepKind::kItem, .line = token.line, .item = tuple});
}

Step ExpressionParser::parse_slice_or_item() {
  Step step{.kind = StepKind::kSlice, .line = stream_.current().line};
  const auto at_end = [this] { return stream_.is(TokenType::kRightBracket) || stream_.is(TokenType::kComma); };
  if (!stream_.is(TokenType::kColon)) {
    Expression* first = parse_expression();
    if (!stream_.is(TokenType::kColon)) {
      step.kind = StepKind::kItem;
      step.item = first;
      return step;
    }
    step.bounds[0] = first;
  }
  stream_.next();
  if (!stream_.is(TokenType::kColon) && !at_end()) step.bounds[1] = parse_expression();
  if (stream_.skip_if(TokenType::kColon) && !at_end()) step.bounds[2] = parse_expression();
  return step;
}

CallArguments ExpressionParser::parse_call_arguments() {
  const Nesting nesting(*this);
  CallArguments arguments;
  const auto ensure = [](bool valid) {
    if (!valid) fail("invalid syntax for function call expression");
  };
  stream_.expect(TokenType::kLeftParenthesis);
  bool needs_comma = false;
  while (!stream_.is(TokenType::kRightParenthesis)) {
    if (needs_comma) {
      stream_.expect(TokenType::kComma);
      if (stream_.is(TokenType::kRightParenthesis)) break;
    }
    if (stream_.is(TokenType::kMul)) {
      ensure(arguments.star == nullptr && arguments.double_star == nullptr);
      stream_.next();
      arguments.star = parse_expression();
    } else if (stream_.is(TokenType::kPow)) {
      ensure(arguments.double_star == nullptr);
      stream_.next();
      arguments.double_star = parse_expression();
    } else if (stream_.is(TokenType::kName) && stream_.look().type == TokenType::kAssign) {
      ensure(arguments.double_star == nullptr);
      const std::string_view name = stream_.next().text;
      stream_.next();
      arguments.keywords.push_back({name, parse_expression()});
    } else {
      ensure(arguments.star == nullptr && arguments.double_star == nullptr && arguments.keywords.empty());
      arguments.positional.push_back(parse_expression());
    }
    needs_comma = true;
  }
  stream_.expect(TokenType::kRightParenthesis);
  return arguments;
}

std::string_view ExpressionParser::parse_dotted_name() {
  const std::string_view first = stream_.expect(TokenType::kName).text;
  std::string_view last = first;
  while (stream_.skip_if(TokenType::kDot)) last = stream_.expect(TokenType::kName).text;
  return {first.data(), static_cast<size_t>(last.data() + last.size() - first.data())};
}

void ExpressionParser::parse_filters(Expression* chain, bool starts_inline) {
  while (starts_inline || stream_.is(TokenType::kPipe)) {
    if (!starts_inline) stream_.next();
    starts_inline = false;
    Step step{.kind = StepKind::kFilter, .line = stream_.current().line};
    step.name = parse_dotted_name();
    step.filter = find_filter(step.name);
    if (stream_.is(TokenType::kLeftParenthesis)) step.arguments = parse_call_arguments();
    chain->steps.push_back(std::move(step));
  }
}

void ExpressionParser::parse_test(Expression* chain) {
  Step step{.kind = StepKind::kTest, .line = stream_.next().line};
  step.negated = stream_.skip_if_name("not");
  step.name = parse_dotted_name();
  step.test = find_test(step.name);
  switch (stream_.current().type) {
    case TokenType::kLeftParenthesis: step.arguments = parse_call_arguments(); break;
    case TokenType::kName:
    case TokenType::kText:
    case TokenType::kInteger:
    case TokenType::kFloat:
    case TokenType::kLeftBracket:
    case TokenType::kLeftBrace: {
      if (stream_.is_any_name({"else", "or", "and"})) break;
      if (stream_.is_name("is")) fail("You cannot chain multiple tests with is");
      Expression* argument = parse_primary(false);
      step.arguments.positional = {parse_postfix(argument)};
      break;
    }
    default: break;
  }
  chain->steps.push_back(std::move(step));
}

}  // namespace mote::jinja
