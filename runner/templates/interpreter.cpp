#include "runner/templates/interpreter.h"

#include <algorithm>

#include "runner/templates/attributes.h"
#include "runner/templates/describe.h"
#include "runner/templates/globals.h"
#include "runner/templates/interpreter_guards.h"

namespace mote::jinja {

// The items of a loop; with a condition, those that pass it.
class Interpreter::Source : public LoopSource {
 public:
  Source(Interpreter& interpreter, const Statement& statement, const Value& iterable)
      : interpreter_(interpreter),
        statement_(statement),
        iterable_(iterable),
        cursor_(interpreter, iterable),
        activation_(interpreter.current_) {
    if (statement.test != nullptr) interpreter.enter(statement.test_scope);
  }

  bool next(Value& item) override {
    if (statement_.test == nullptr) return cursor_.next(item);
    Activation* outer = interpreter_.current_;
    interpreter_.current_ = activation_;
    bool found = false;
    while (!found && cursor_.next(item)) {
      interpreter_.assign(*statement_.test_target, item);
      found = is_true(interpreter_.evaluate(*statement_.test));
    }
    interpreter_.current_ = outer;
    return found;
  }

  int64_t length() const override { return statement_.test != nullptr ? -1 : length_of(interpreter_, iterable_); }

 private:
  Interpreter& interpreter_;
  const Statement& statement_;
  Value iterable_;
  Cursor cursor_;
  Activation* activation_;
};

Interpreter::Interpreter(const Program& program, const Limits& limits, int64_t now)
    : Runtime(limits), program_(program), now_(now), free_(program.num_functions) {}

Text Interpreter::run() {
  for (const std::string_view name : program_.globals) {
    const auto found = variables_.find(name);
    globals_.push_back(found != variables_.end() ? found->second : find_global(name));
  }
  current_ = make_activation(program_.function, nullptr);
  TextBuilder out(arena());
  enter(program_.scope);
  execute(program_.body, out);
  return out.finish();
}

Value& Interpreter::variable(const SlotReference& reference) {
  Activation* activation = current_;
  for (uint32_t i = 0; i < reference.hops; ++i) activation = activation->parent;
  return activation->slots[reference.slot];
}

void Interpreter::enter(const Scope& scope) {
  for (const Load& load : scope.loads) {
    current_->slots[load.slot] = load.kind == Load::Kind::kResolve ? globals_[load.global]
                                 : load.kind == Load::Kind::kAlias ? variable(load.source)
                                                                   : Value::missing();
  }
}

void Interpreter::leave(const Scope& scope) {
  for (const uint32_t slot : scope.slots) current_->slots[slot] = Value::missing();
}

Activation* Interpreter::make_activation(const FunctionInfo& function, Activation* parent) {
  std::vector<Activation*>& free = free_[function.index];
  Activation* activation = nullptr;
  if (free.empty()) {
    activation = arena().make<Activation>();
    activation->slots = arena().make_array<Value>(function.num_slots);
  } else {
    activation = free.back();
    free.pop_back();
  }
  activation->parent = parent;
  std::fill_n(activation->slots, function.num_slots, Value::missing());
  return activation;
}

void Interpreter::release(const FunctionInfo& function, Activation* activation) {
  if (!activation->is_captured) free_[function.index].push_back(activation);
}

Interpreter::Flow Interpreter::execute(const Body& body, TextBuilder& out) {
  const Nesting nesting(*this);
  for (const Statement* statement : body) {
    if (const Flow flow = execute(*statement, out); flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Statement& statement, TextBuilder& out) {
  budget().step();
  switch (statement.kind) {
    case StatementKind::kData: out.add(statement.data, false); break;
    case StatementKind::kOutput:
      for (const Expression* expression : statement.expressions) print(*this, out, evaluate(*expression));
      break;
    case StatementKind::kIf: return execute_if(statement, out);
    case StatementKind::kFor: execute_for(statement, out); break;
    case StatementKind::kSet:
      check_namespaces(*statement.targets[0]);
      assign(*statement.targets[0], evaluate(*statement.expressions[0]));
      break;
    case StatementKind::kSetBlock:
    case StatementKind::kFilterBlock: return execute_captured(statement, out);
    case StatementKind::kMacro: variable(statement.target_slot) = make_macro(*statement.macro); break;
    case StatementKind::kCallBlock: {
      const Value caller = make_macro(*statement.macro);
      const Expression& call = *statement.expressions[0];
      print(*this, out, apply_steps(call, evaluate(*call.items[0]), &caller));
      break;
    }
    case StatementKind::kGeneration: out.add(call_macro(*make_macro(*statement.macro).macro, {})); break;
    case StatementKind::kWith: return execute_with(statement, out);
    case StatementKind::kBreak: return Flow::kBreak;
    case StatementKind::kContinue: return Flow::kContinue;
    case StatementKind::kLoader: evaluate(*statement.expressions[0]); fail("no loader for this environment specified");
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement, TextBuilder& out) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition == nullptr || is_true(evaluate(*branch.condition))) return execute(branch.body, out);
  }
  return Flow::kNormal;
}

// Runs a body and passes its output through filters, then into a variable or to `out`.
Interpreter::Flow Interpreter::execute_captured(const Statement& statement, TextBuilder& out) {
  TextBuilder captured(arena());
  enter(statement.scope);
  if (const Flow flow = execute(statement.body, captured); flow != Flow::kNormal) return flow;
  const Value text = Value::of(captured.finish());
  const Expression& filters = *statement.expressions[0];
  const Value value = filters.steps.empty() ? text : apply_steps(filters, text, nullptr);
  if (statement.kind == StatementKind::kFilterBlock) {
    print(*this, out, value);
  } else {
    check_namespaces(*statement.targets[0]);
    assign(*statement.targets[0], value);
  }
  leave(statement.scope);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute_with(const Statement& statement, TextBuilder& out) {
  enter(statement.scope);
  for (size_t i = 0; i < statement.targets.size(); ++i)
    assign(*statement.targets[i], evaluate(*statement.expressions[i]));
  const Flow flow = execute(statement.body, out);
  leave(statement.scope);
  return flow;
}

void Interpreter::execute_for(const Statement& statement, TextBuilder& out) {
  const Value iterable = evaluate(*statement.expressions[0]);
  if (statement.recursive) {
    capture();
    out.add(run_recursive_loop(statement, iterable, 0, current_));
  } else {
    run_loop(statement, iterable, 0, nullptr, out);
  }
}

Text Interpreter::run_recursive_loop(const Statement& statement, const Value& iterable, int64_t depth0,
                                     Activation* definition) {
  const Call call(*this, statement.function, definition);
  TextBuilder out(arena());
  run_loop(statement, iterable, depth0, definition, out);
  return out.finish();
}

void Interpreter::run_loop(const Statement& statement, const Value& iterable, int64_t depth0, Activation* definition,
                           TextBuilder& out) {
  Source source(*this, statement, iterable);
  Loop* loop = arena().make<Loop>();
  loop->source = &source;
  loop->runtime = this;
  loop->depth0 = depth0;
  loop->statement = statement.recursive ? &statement : nullptr;
  loop->activation = definition;
  bool has_completed = false;  // as in Jinja2, an iteration that ends in continue does not count
  while (advance(*loop)) {
    if (statement.uses_loop) current_->slots[statement.loop_slot] = Value::of(Kind::kLoop, loop);
    assign(*statement.targets[0], loop->current);
    enter(statement.scope);
    const Flow flow = execute(statement.body, out);
    if (flow == Flow::kBreak) break;
    has_completed = has_completed || flow == Flow::kNormal;
  }
  loop->source = nullptr;
  leave(statement.scope);
  if (has_completed || statement.otherwise.empty()) return;
  enter(statement.else_scope);
  execute(statement.otherwise, out);
  leave(statement.else_scope);
}

void Interpreter::capture() {
  for (Activation* activation = current_; activation != nullptr && !activation->is_captured;
       activation = activation->parent) {
    activation->is_captured = true;
  }
}

Value Interpreter::make_macro(const MacroInfo& info) {
  capture();
  return Value::of(Kind::kMacro, arena().make<Macro>(Macro{&info, current_}));
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  budget().step();
  switch (callee.kind) {
    case Kind::kMacro: return Value::of(call_macro(*callee.macro, arguments));
    case Kind::kFunction:
    case Kind::kMethod: {
      const Function& function = callee.is(Kind::kFunction) ? *callee.function : *callee.method->function;
      const Value self = callee.is(Kind::kFunction) ? Value::none() : callee.method->self;
      if (function.call_any != nullptr) return function.call_any(*this, self, arguments);
      return function.call(*this, self, Bound(function.signature, nullptr, arguments));
    }
    case Kind::kJoiner: {
      const bool was_used = callee.joiner->used;
      callee.joiner->used = true;
      return was_used ? Value::of(callee.joiner->separator) : Value::of("");
    }
    case Kind::kLoop: {
      const Loop& loop = *callee.loop;
      if (loop.statement == nullptr) fail("The loop must have the 'recursive' marker to be called recursively.");
      if (arguments.positional.size() != 1 || !arguments.keywords.empty()) fail("loop() takes one argument");
      return Value::of(run_recursive_loop(*loop.statement, arguments.positional[0], loop.depth0 + 1, loop.activation));
    }
    case Kind::kUndefined: fail_undefined(*this, callee);
    default: MOTE_JINJA_FAIL("'%s' object is not callable", type_name(callee));
  }
}

Text Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Call call(*this, macro.info->function, macro.activation);
  bind_parameters(macro, arguments, *current_);
  TextBuilder out(arena());
  enter(macro.info->scope);
  for (const Parameter& parameter : macro.info->parameters) {
    Value& slot = current_->slots[parameter.slot];
    if (!slot.is(Kind::kMissing)) continue;
    slot = parameter.default_value != nullptr
               ? evaluate(*parameter.default_value)
               : make_undefined_hint(arena(), "parameter '" + std::string(parameter.name) + "' was not provided");
  }
  execute(macro.info->body, out);
  return out.finish();
}

void Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments, Activation& activation) {
  const MacroInfo& info = *macro.info;
  const std::string name = info.is_anonymous ? "None" : "'" + std::string(info.name) + "'";
  const size_t count = info.parameters.size();
  const size_t num_positional = std::min(count, arguments.positional.size());
  std::vector<bool> used(arguments.keywords.size());
  const auto take_keyword = [&](std::string_view wanted, Value& value) {
    for (size_t i = 0; i < used.size(); ++i) {
      if (used[i] || arguments.keywords[i].first.view() != wanted) continue;
      used[i] = true;
      value = arguments.keywords[i].second;
      return true;
    }
    return false;
  };
  for (size_t i = 0; i < count; ++i) {
    Value& slot = activation.slots[info.parameters[i].slot];
    if (i < num_positional)
      slot = arguments.positional[i];
    else
      take_keyword(info.parameters[i].name, slot);
  }
  if (info.uses_caller && !info.has_caller_parameter) {
    Value caller;
    if (!take_keyword("caller", caller) || caller.is_none()) caller = make_undefined_hint(arena(), "No caller defined");
    activation.slots[info.caller_slot] = caller;
  }
  Dict* rest = make_dict(arena());
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const auto& [keyword, value] = arguments.keywords[i];
    if (!info.uses_kwargs) {
      const bool is_caller = std::any_of(arguments.keywords.begin(), arguments.keywords.end(),
                                         [](const auto& k) { return k.first.view() == "caller"; });
      if (is_caller)
        fail("macro " + name +
             " was invoked with two values for the special caller argument. This is most likely a bug.");
      fail("macro " + name + " takes no keyword argument " + repr_string(*this, Value::of(keyword)));
    }
    rest->set(arena(), Value::of(keyword), value);
  }
  if (info.uses_kwargs) activation.slots[info.kwargs_slot] = Value::of(rest);
  if (info.uses_varargs) {
    List* varargs = make_list(arena());
    for (size_t i = num_positional; i < arguments.positional.size(); ++i)
      varargs->add(arena(), arguments.positional[i]);
    activation.slots[info.varargs_slot] = Value::of(varargs, true);
  } else if (arguments.positional.size() > count) {
    MOTE_JINJA_FAIL("macro %s takes not more than %zu argument(s)", name.c_str(), count);
  }
}

void Interpreter::check_namespaces(const Expression& target) {
  if (target.kind == ExpressionKind::kNamespaceReference) {
    if (!variable(target.slot).is(Kind::kNamespace)) fail("cannot assign attribute on non-namespace object");
  }
  for (const Expression* item : target.items) check_namespaces(*item);
}

void Interpreter::assign_attribute(const Expression& target, const Value& value) {
  if (target.attribute.starts_with("_")) {
    fail("Chat templates cannot store underscore-prefixed attributes on a namespace, but got '" +
         std::string(target.attribute) + "'. Please rename the attribute.");
  }
  variable(target.slot).space->attributes->set(arena(), Value::of(Text(target.attribute)), value);
}

void Interpreter::assign(const Expression& target, const Value& value) {
  if (target.kind == ExpressionKind::kName) {
    variable(target.slot) = value;
    return;
  }
  if (target.kind == ExpressionKind::kNamespaceReference) return assign_attribute(target, value);
  if (!is_iterable(value)) MOTE_JINJA_FAIL("cannot unpack non-iterable %s object", type_name(value));
  const size_t expected = target.items.size();
  std::vector<Value> items;
  Cursor cursor(*this, value);
  Value item;
  while (items.size() < expected && cursor.next(item)) items.push_back(item);
  if (items.size() < expected)
    MOTE_JINJA_FAIL("not enough values to unpack (expected %zu, got %zu)", expected, items.size());
  if (cursor.next(item)) MOTE_JINJA_FAIL("too many values to unpack (expected %zu)", expected);
  for (size_t i = 0; i < expected; ++i) assign(*target.items[i], items[i]);
}

}  // namespace mote::jinja
