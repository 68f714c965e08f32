// A parsed template. Chains of operators, filters, attributes and branches are lists, not nested nodes, so that only
// what nests in the source nests here; the parser bounds that.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runner/templates/value.h"

namespace mote::jinja {

inline constexpr int kMaxSourceNesting = 64;

// Where a variable lives: in `slot` of the function that is `hops` functions outwards.
struct SlotReference {
  uint32_t hops = 0;
  uint32_t slot = 0;
};

enum class ExpressionKind : uint8_t {
  kConstant,
  kName,
  kNamespaceReference,  // ns.attribute as the target of an assignment
  kTuple,
  kList,
  kDict,  // items: key, value, key, value, ...
  kNegative,
  kPositive,
  kNot,
  kArithmetic,  // items[0] op items[1] op ...
  kConcatenation,
  kComparison,
  kAnd,
  kOr,
  kConditional,  // items: then, condition, else (may be nullptr)
  kChain,        // items[0] and its steps
};

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expression;
struct Filter;
struct Test;

struct CallArguments {
  struct Keyword {
    std::string_view name;
    Expression* value = nullptr;
  };
  std::vector<Expression*> positional;
  std::vector<Keyword> keywords;
  Expression* star = nullptr;         // *values
  Expression* double_star = nullptr;  // **values
};

enum class StepKind : uint8_t { kAttribute, kItem, kSlice, kCall, kFilter, kTest };

struct Step {
  StepKind kind = StepKind::kAttribute;
  bool negated = false;  // is not
  uint32_t line = 1;
  std::string_view name = {};                           // of an attribute, filter or test
  Expression* item = nullptr;                           // kItem
  Expression* bounds[3] = {nullptr, nullptr, nullptr};  // kSlice
  CallArguments arguments = {};                         // kCall, kFilter, kTest
  const Filter* filter = nullptr;                       // nullptr: no filter has the name
  const Test* test = nullptr;
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  uint32_t line = 1;
  Value constant;
  std::string_view name;
  std::string_view attribute;
  SlotReference slot;
  std::vector<Expression*> items;
  std::vector<Operator> operators;
  std::vector<Step> steps;
};

struct Statement;
using Body = std::vector<Statement*>;

// How a variable gets its value when its scope is entered.
struct Load {
  enum class Kind : uint8_t { kResolve, kAlias, kMissing };
  Kind kind = Kind::kMissing;
  uint32_t slot = 0;
  uint32_t global = 0;        // kResolve: index into Program::globals
  SlotReference source = {};  // kAlias
};
struct Scope {
  std::vector<Load> loads;
  std::vector<uint32_t> slots;  // all of its variables
};

// A part that Jinja2 compiles to a Python function: each call has variables of its own, which inner functions see.
struct FunctionInfo {
  uint32_t index = 0;
  uint32_t num_slots = 0;
};

enum class StatementKind : uint8_t {
  kData,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kGeneration,
  kBreak,
  kContinue,
  kLoader,  // include, import, from, extends: needs a loader, which templates of models do not have
};

struct Branch {
  Expression* condition = nullptr;  // nullptr: else
  Body body;
};

struct Parameter {
  std::string_view name;
  uint32_t slot = 0;
  Expression* default_value = nullptr;
};

// Macros, call blocks and generation blocks.
struct MacroInfo {
  std::string_view name;  // empty: anonymous
  bool is_anonymous = false;
  std::vector<Parameter> parameters;
  bool uses_caller = false;
  bool uses_kwargs = false;
  bool uses_varargs = false;
  bool has_caller_parameter = false;
  uint32_t caller_slot = 0;
  uint32_t kwargs_slot = 0;
  uint32_t varargs_slot = 0;
  FunctionInfo function;
  Scope scope;
  Body body;
};

struct Statement {
  StatementKind kind = StatementKind::kOutput;
  uint32_t line = 1;
  std::string_view data;                 // kData
  std::vector<Expression*> expressions;  // kOutput; kFor: iterable; kSet, kSetBlock: value or filters; kWith: values
  std::vector<Expression*> targets;      // kFor, kSet, kSetBlock, kWith
  std::vector<Branch> branches;          // kIf
  Body body;
  Body otherwise;                     // kFor: else
  Expression* test = nullptr;         // kFor: if
  Expression* test_target = nullptr;  // kFor: the target in the test's scope
  bool recursive = false;
  uint32_t loop_slot = 0;
  bool uses_loop = false;
  FunctionInfo function;  // kFor: of a recursive loop
  Scope scope;
  Scope else_scope;
  Scope test_scope;
  SlotReference target_slot;  // kMacro
  std::unique_ptr<MacroInfo> macro;
};

// Everything of a template that does not change while it renders.
struct Program {
  std::vector<std::unique_ptr<Expression>> expressions;
  std::vector<std::unique_ptr<Statement>> statements;
  Body body;
  FunctionInfo function;
  Scope scope;
  uint32_t num_functions = 1;
  std::vector<std::string_view> globals;  // names that come from outside of the template
};

}  // namespace mote::jinja
