// Runs a program.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "runner/templates/ast.h"
#include "runner/templates/loop.h"
#include "runner/templates/runtime.h"

namespace mote::jinja {

// One rendering. Errors: all throw Error.
class Interpreter final : public Runtime {
 public:
  Interpreter(const Program& program, const Limits& limits, int64_t now);

  void set_variable(std::string_view name, const Value& value) { variables_[name] = value; }
  // To be called once.
  Text run();

  Value call(const Value& callee, const Arguments& arguments) override;
  int64_t now() const override { return now_; }

 private:
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };
  class Nesting;
  class Call;
  class Source;

  Flow execute(const Body& body, TextBuilder& out);
  Flow execute(const Statement& statement, TextBuilder& out);
  Flow execute_if(const Statement& statement, TextBuilder& out);
  Flow execute_captured(const Statement& statement, TextBuilder& out);
  Flow execute_with(const Statement& statement, TextBuilder& out);
  void execute_for(const Statement& statement, TextBuilder& out);
  void run_loop(const Statement& statement, const Value& iterable, int64_t depth0, Activation* definition,
                TextBuilder& out);
  Text run_recursive_loop(const Statement& statement, const Value& iterable, int64_t depth0, Activation* definition);

  Value evaluate(const Expression& expression);
  Value evaluate_conditional(const Expression& expression);
  Value evaluate_comparison(const Expression& expression);
  Value evaluate_arithmetic(const Expression& expression);
  Value evaluate_literal(const Expression& expression);
  // Applies the steps of a chain. caller: passed on to the last call; may be nullptr.
  Value apply_steps(const Expression& chain, Value value, const Value* caller);
  Value apply_step(const Step& step, const Value& value, const Value* caller);
  Arguments evaluate_arguments(const CallArguments& arguments);
  void assign(const Expression& target, const Value& value);
  void assign_attribute(const Expression& target, const Value& value);
  void check_namespaces(const Expression& target);

  Value make_macro(const MacroInfo& info);
  Text call_macro(const Macro& macro, const Arguments& arguments);
  void bind_parameters(const Macro& macro, const Arguments& arguments, Activation& activation);

  Value& variable(const SlotReference& reference);
  void enter(const Scope& scope);
  void leave(const Scope& scope);
  Activation* make_activation(const FunctionInfo& function, Activation* parent);
  // Keeps the activations that are visible now beyond their calls.
  void capture();
  void release(const FunctionInfo& function, Activation* activation);

  const Program& program_;
  int64_t now_;
  std::unordered_map<std::string_view, Value> variables_;
  std::vector<Value> globals_;
  Activation* current_ = nullptr;
  std::vector<std::vector<Activation*>> free_;  // for reuse, by function
  int nesting_ = 0;
  int call_depth_ = 0;
};

}  // namespace mote::jinja
