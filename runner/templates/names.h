// Which names a part of a program reads and sets.
#pragma once

#include <string_view>

#include "runner/templates/ast.h"

namespace mote::jinja {

enum class NameUse : uint8_t { kLoad, kStore, kParameter };

template <typename Visit>
void for_each_name(const CallArguments& arguments, Visit visit);

// visit(name, use) for the names of an expression, in source order. `use`: what its plain names are.
template <typename Visit>
void for_each_name(const Expression* expression, NameUse use, Visit visit) {
  if (expression == nullptr) return;
  if (expression->kind == ExpressionKind::kName) visit(expression->name, use);
  if (expression->kind == ExpressionKind::kNamespaceReference) visit(expression->name, NameUse::kLoad);
  for (const Expression* item : expression->items) for_each_name(item, use, visit);
  for (const Step& step : expression->steps) {
    for_each_name(step.item, NameUse::kLoad, visit);
    for (const Expression* bound : step.bounds) for_each_name(bound, NameUse::kLoad, visit);
    for_each_name(step.arguments, visit);
  }
}

template <typename Visit>
void for_each_name(const CallArguments& arguments, Visit visit) {
  for (const Expression* argument : arguments.positional) for_each_name(argument, NameUse::kLoad, visit);
  for (const CallArguments::Keyword& keyword : arguments.keywords) for_each_name(keyword.value, NameUse::kLoad, visit);
  for_each_name(arguments.star, NameUse::kLoad, visit);
  for_each_name(arguments.double_star, NameUse::kLoad, visit);
}

template <typename Visit>
void for_each_name(const Body& body, Visit visit);

// The same for a statement with all that is in it.
template <typename Visit>
void for_each_name(const Statement& statement, Visit visit) {
  const bool sets = statement.kind == StatementKind::kFor || statement.kind == StatementKind::kSet ||
                    statement.kind == StatementKind::kSetBlock || statement.kind == StatementKind::kWith;
  for (const Expression* expression : statement.expressions) for_each_name(expression, NameUse::kLoad, visit);
  if (sets) {
    for (const Expression* target : statement.targets) for_each_name(target, NameUse::kStore, visit);
  }
  for (const Branch& branch : statement.branches) {
    for_each_name(branch.condition, NameUse::kLoad, visit);
    for_each_name(branch.body, visit);
  }
  for_each_name(statement.body, visit);
  for_each_name(statement.otherwise, visit);
  for_each_name(statement.test, NameUse::kLoad, visit);
  if (statement.macro == nullptr) return;
  for (const Parameter& parameter : statement.macro->parameters) {
    visit(parameter.name, NameUse::kParameter);
    for_each_name(parameter.default_value, NameUse::kLoad, visit);
  }
  for_each_name(statement.macro->body, visit);
}

template <typename Visit>
void for_each_name(const Body& body, Visit visit) {
  for (const Statement* statement : body) for_each_name(*statement, visit);
}

// Whether `name` is read anywhere in `body` before the first place, in source order, that sets it.
inline bool is_read_before_set(const Body& body, std::string_view name) {
  bool is_read = false;
  bool is_set = false;
  for_each_name(body, [&](std::string_view found, NameUse use) {
    if (found != name) return;
    is_read = is_read || (use == NameUse::kLoad && !is_set);
    is_set = is_set || use != NameUse::kLoad;
  });
  return is_read;
}

}  // namespace mote::jinja
