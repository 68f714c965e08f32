#include "runner/templates/scopes.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "runner/templates/error.h"
#include "runner/templates/escapes.h"
#include "runner/templates/names.h"

namespace mote::jinja {
namespace {

struct ScopedVariable {
  uint32_t slot = 0;
  size_t load = 0;  // index into Scope::loads; kNoLoad: a parameter
  bool is_stored = false;
};
constexpr size_t kNoLoad = ~size_t{0};

// A scope while it is being worked on.
struct Symbols {
  Symbols* parent = nullptr;
  FunctionInfo* function = nullptr;
  Scope* scope = nullptr;
  int branches = 0;      // the number of ifs around the current place
  bool in_loop = false;  // break and continue are allowed
  std::unordered_map<std::string_view, ScopedVariable> variables;

  Symbols(Symbols* outer, FunctionInfo* info, Scope* result) : parent(outer), function(info), scope(result) {}

  ScopedVariable& add(std::string_view name) {
    ScopedVariable& variable = variables[name];
    variable.slot = function->num_slots++;
    variable.load = kNoLoad;
    scope->slots.push_back(variable.slot);
    return variable;
  }

  bool find(std::string_view name, SlotReference& reference) const {
    reference.hops = 0;
    for (const Symbols* symbols = this; symbols != nullptr; symbols = symbols->parent) {
      if (const auto found = symbols->variables.find(name); found != symbols->variables.end()) {
        reference.slot = found->second.slot;
        return true;
      }
      if (symbols->parent != nullptr && symbols->parent->function != symbols->function) ++reference.hops;
    }
    return false;
  }
};

class Resolver {
 public:
  explicit Resolver(Program& program) : program_(program) {}

  void run() {
    program_.function.index = 0;
    Symbols root(nullptr, &program_.function, &program_.scope);
    analyze(root, program_.body);
    resolve(root, program_.body, false);
  }

 private:
  uint32_t global_index(std::string_view name) {
    const auto [found, is_new] = globals_.try_emplace(name, static_cast<uint32_t>(program_.globals.size()));
    if (is_new) program_.globals.push_back(name);
    return found->second;
  }

  // How a variable that is not a parameter starts: as that of an outer scope, from outside of the template, or missing.
  Load initial_load(const Symbols& symbols, std::string_view name, uint32_t slot, Load::Kind otherwise) {
    Load load{.kind = otherwise, .slot = slot};
    if (symbols.parent != nullptr && symbols.parent->find(name, load.source)) {
      load.kind = Load::Kind::kAlias;
      if (symbols.parent->function != symbols.function) ++load.source.hops;
    } else if (otherwise == Load::Kind::kResolve) {
      load.global = global_index(name);
    }
    return load;
  }

  void declare_parameter(Symbols& symbols, std::string_view name) {
    const auto found = symbols.variables.find(name);
    ScopedVariable& variable = found != symbols.variables.end() ? found->second : symbols.add(name);
    variable.is_stored = true;
  }

  void load(Symbols& symbols, std::string_view name) {
    SlotReference reference;
    if (symbols.find(name, reference)) return;
    ScopedVariable& variable = symbols.add(name);
    variable.load = symbols.scope->loads.size();
    symbols.scope->loads.push_back(
        {.kind = Load::Kind::kResolve, .slot = variable.slot, .global = global_index(name), .source = {}});
  }

  // A variable that is first set in a branch may keep the value that it has outside.
  void store(Symbols& symbols, std::string_view name) {
    auto found = symbols.variables.find(name);
    const bool is_new = found == symbols.variables.end();
    if (!is_new && (found->second.is_stored || symbols.branches == 0)) {
      found->second.is_stored = true;
      return;
    }
    ScopedVariable& variable = is_new ? symbols.add(name) : found->second;
    variable.is_stored = true;
    const Load::Kind otherwise = symbols.branches > 0 ? Load::Kind::kResolve : Load::Kind::kMissing;
    const Load load = initial_load(symbols, name, variable.slot, otherwise);
    if (variable.load == kNoLoad) {
      variable.load = symbols.scope->loads.size();
      symbols.scope->loads.push_back(load);
    } else {
      symbols.scope->loads[variable.load] = load;
    }
  }

  void load_names(Symbols& symbols, const Expression* expression) {
    for_each_name(expression, NameUse::kLoad, [&](std::string_view name, NameUse) { load(symbols, name); });
  }

  void store_names(Symbols& symbols, const Expression* target) {
    for_each_name(target, NameUse::kStore, [&](std::string_view name, NameUse use) {
      use == NameUse::kStore ? store(symbols, name) : load(symbols, name);
    });
  }

  void declare_names(Symbols& symbols, const Expression* target) {
    for_each_name(target, NameUse::kStore, [&](std::string_view name, NameUse) { declare_parameter(symbols, name); });
  }

  void analyze(Symbols& symbols, const Body& body) {
    for (const Statement* statement : body) analyze(symbols, *statement);
  }

  // What a statement means for the scope that it stands in. Bodies with scopes of their own come later.
  void analyze(Symbols& symbols, const Statement& statement) {
    if (statement.kind == StatementKind::kMacro) return store(symbols, statement.macro->name);
    if (statement.kind == StatementKind::kIf) {
      for (const Branch& branch : statement.branches) {
        if (branch.condition != nullptr) load_names(symbols, branch.condition);
      }
      ++symbols.branches;
      for (const Branch& branch : statement.branches) analyze(symbols, branch.body);
      --symbols.branches;
      return;
    }
    if (statement.kind != StatementKind::kSetBlock) {
      for (const Expression* expression : statement.expressions) load_names(symbols, expression);
    }
    if (statement.kind == StatementKind::kSet || statement.kind == StatementKind::kSetBlock) {
      for (const Expression* target : statement.targets) store_names(symbols, target);
    }
  }

  void resolve(Symbols& symbols, const Body& body, bool is_soft) {
    for (Statement* statement : body) resolve(symbols, *statement, is_soft);
  }

  void resolve(Symbols& symbols, Statement& statement, bool is_soft) {
    switch (statement.kind) {
      case StatementKind::kIf:
        for (Branch& branch : statement.branches) {
          if (branch.condition != nullptr) resolve(symbols, branch.condition, true);
          resolve(symbols, branch.body, true);
        }
        return;
      case StatementKind::kFor: return resolve_for(symbols, statement, is_soft);
      case StatementKind::kMacro:
        resolve_macro(symbols, *statement.macro);
        symbols.find(statement.macro->name, statement.target_slot);
        return;
      case StatementKind::kCallBlock: resolve_all(symbols, statement.expressions, is_soft); [[fallthrough]];
      case StatementKind::kGeneration: return resolve_macro(symbols, *statement.macro);
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock: return resolve_captured(symbols, statement, is_soft);
      case StatementKind::kWith: return resolve_with(symbols, statement, is_soft);
      case StatementKind::kBreak:
        if (!symbols.in_loop) fail("'break' outside loop");
        return;
      case StatementKind::kContinue:
        if (!symbols.in_loop) fail("'continue' not properly in loop");
        return;
      default: resolve_all(symbols, statement.expressions, is_soft); resolve_all(symbols, statement.targets, is_soft);
    }
  }

  void resolve_all(Symbols& symbols, const std::vector<Expression*>& expressions, bool is_soft) {
    for (Expression* expression : expressions) resolve(symbols, expression, is_soft);
  }

  void resolve_arguments(Symbols& symbols, CallArguments& arguments, bool is_soft) {
    resolve_all(symbols, arguments.positional, is_soft);
    for (CallArguments::Keyword& keyword : arguments.keywords) resolve(symbols, keyword.value, is_soft);
    if (arguments.star != nullptr) resolve(symbols, arguments.star, is_soft);
    if (arguments.double_star != nullptr) resolve(symbols, arguments.double_star, is_soft);
  }

  // is_soft: inside of an if, as statement or expression, where an unknown filter is an error only once it is reached.
  void resolve(Symbols& symbols, Expression* expression, bool is_soft) {
    if (expression->kind == ExpressionKind::kName || expression->kind == ExpressionKind::kNamespaceReference) {
      symbols.find(expression->name, expression->slot);
    }
    is_soft = is_soft || expression->kind == ExpressionKind::kConditional;
    for (Expression* item : expression->items) {
      if (item != nullptr) resolve(symbols, item, is_soft);
    }
    for (Step& step : expression->steps) {
      const bool is_filter = step.kind == StepKind::kFilter;
      if (!is_soft &&
          ((is_filter && step.filter == nullptr) || (step.kind == StepKind::kTest && step.test == nullptr))) {
        fail(std::string("No ") + (is_filter ? "filter" : "test") + " named " + repr_of(step.name) + ".");
      }
      if (step.item != nullptr) resolve(symbols, step.item, is_soft);
      for (Expression* bound : step.bounds) {
        if (bound != nullptr) resolve(symbols, bound, is_soft);
      }
      resolve_arguments(symbols, step.arguments, is_soft);
    }
  }

  // A copy of a target, for another scope.
  Expression* clone_target(const Expression* target) {
    program_.expressions.push_back(std::make_unique<Expression>(*target));
    Expression* clone = program_.expressions.back().get();
    for (Expression*& item : clone->items) item = clone_target(item);
    return clone;
  }

  void check_loop_is_not_assigned(const Statement& statement) {
    for_each_name(statement, [](std::string_view name, NameUse use) {
      if (use == NameUse::kStore && name == "loop") fail("Can't assign to special loop variable in for-loop target");
    });
  }

  void resolve_for(Symbols& symbols, Statement& statement, bool is_soft) {
    resolve_all(symbols, statement.expressions, is_soft);
    check_loop_is_not_assigned(statement);
    statement.uses_loop = statement.recursive;
    for_each_name(statement.body, [&](std::string_view name, NameUse) { statement.uses_loop |= name == "loop"; });
    FunctionInfo* function = symbols.function;
    if (statement.recursive) {
      function = &statement.function;
      function->index = program_.num_functions++;
    }
    if (statement.test != nullptr) {
      Symbols test(&symbols, function, &statement.test_scope);
      statement.test_target = clone_target(statement.targets[0]);
      declare_names(test, statement.test_target);
      load_names(test, statement.test);
      resolve(test, statement.test_target, false);
      resolve(test, statement.test, false);
    }
    Symbols loop(&symbols, function, &statement.scope);
    loop.in_loop = true;
    if (statement.uses_loop) {
      declare_parameter(loop, "loop");
      statement.loop_slot = loop.variables["loop"].slot;
    }
    declare_names(loop, statement.targets[0]);
    analyze(loop, statement.body);
    resolve_all(loop, statement.targets, false);
    resolve(loop, statement.body, false);
    Symbols otherwise(&symbols, function, &statement.else_scope);
    otherwise.in_loop = symbols.in_loop && !statement.recursive;
    analyze(otherwise, statement.otherwise);
    resolve(otherwise, statement.otherwise, false);
  }

  void resolve_captured(Symbols& symbols, Statement& statement, bool is_soft) {
    resolve_all(symbols, statement.targets, is_soft);
    Symbols inner(&symbols, symbols.function, &statement.scope);
    inner.in_loop = symbols.in_loop;
    for (const Expression* expression : statement.expressions) load_names(inner, expression);
    analyze(inner, statement.body);
    resolve(inner, statement.body, false);
    resolve_all(inner, statement.expressions, false);
  }

  void resolve_with(Symbols& symbols, Statement& statement, bool is_soft) {
    resolve_all(symbols, statement.expressions, is_soft);
    Symbols inner(&symbols, symbols.function, &statement.scope);
    inner.in_loop = symbols.in_loop;
    for (const Expression* target : statement.targets) declare_names(inner, target);
    analyze(inner, statement.body);
    resolve_all(inner, statement.targets, false);
    resolve(inner, statement.body, false);
  }

  void find_special_variables(Symbols& symbols, MacroInfo& macro) {
    bool declares_caller = false;
    bool declares_kwargs = false;
    bool declares_varargs = false;
    for (const Parameter& parameter : macro.parameters) {
      declares_caller = declares_caller || parameter.name == "caller";
      declares_kwargs = declares_kwargs || parameter.name == "kwargs";
      declares_varargs = declares_varargs || parameter.name == "varargs";
      if (parameter.name == "caller") macro.has_caller_parameter = true;
    }
    macro.uses_caller = is_read_before_set(macro.body, "caller");
    macro.uses_kwargs = is_read_before_set(macro.body, "kwargs") && !declares_kwargs;
    macro.uses_varargs = is_read_before_set(macro.body, "varargs") && !declares_varargs;
    if (macro.uses_caller && declares_caller) {
      for (const Parameter& parameter : macro.parameters) {
        if (parameter.name == "caller" && parameter.default_value == nullptr) {
          fail(
              "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a "
              "default.");
        }
      }
    }
    const auto declare = [&](const char* name, bool is_used) -> uint32_t {
      if (!is_used) return 0;
      declare_parameter(symbols, name);
      return symbols.variables[name].slot;
    };
    macro.caller_slot = declare("caller", macro.uses_caller && !declares_caller);
    macro.kwargs_slot = declare("kwargs", macro.uses_kwargs);
    macro.varargs_slot = declare("varargs", macro.uses_varargs);
  }

  void resolve_macro(Symbols& symbols, MacroInfo& macro) {
    macro.function.index = program_.num_functions++;
    Symbols inner(&symbols, &macro.function, &macro.scope);
    for (Parameter& parameter : macro.parameters) {
      declare_parameter(inner, parameter.name);
      parameter.slot = inner.variables[parameter.name].slot;
    }
    find_special_variables(inner, macro);
    for (const Parameter& parameter : macro.parameters) {
      if (parameter.default_value != nullptr) load_names(inner, parameter.default_value);
    }
    analyze(inner, macro.body);
    for (const Parameter& parameter : macro.parameters) {
      if (parameter.default_value != nullptr) resolve(inner, parameter.default_value, false);
    }
    resolve(inner, macro.body, false);
  }

  Program& program_;
  std::unordered_map<std::string_view, uint32_t> globals_;
};

}  // namespace

void resolve_scopes(Program& program) { Resolver(program).run(); }

}  // namespace mote::jinja
