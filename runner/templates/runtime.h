// What filters, tests, methods and operators work with.
#pragma once

#include <array>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runner/templates/ast.h"
#include "runner/templates/text_builder.h"
#include "runner/templates/value.h"

namespace mote::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<Text, Value>> keywords;
};

class Runtime {
 public:
  explicit Runtime(const Limits& limits) : budget_(limits), arena_(budget_) {}
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Budget& budget() { return budget_; }
  Arena& arena() { return arena_; }
  // Calls a macro, function or method. Errors: throws Error, also for what cannot be called.
  virtual Value call(const Value& callee, const Arguments& arguments) = 0;
  // Seconds since 1970, for strftime_now.
  virtual int64_t now() const = 0;
  // Keeps arguments until the rendering ends.
  const Arguments* keep(Arguments arguments) {
    budget_.take_memory(sizeof(Arguments) + arguments.positional.size() * sizeof(Value) +
                        arguments.keywords.size() * sizeof(Value) * 2);
    kept_.push_back(std::move(arguments));
    return &kept_.back();
  }

 private:
  Budget budget_;
  Arena arena_;
  std::deque<Arguments> kept_;
};

// Parameters of a function of Python, for messages and keywords.
struct Signature {
  const char* function = "";
  size_t num_required = 0;
  std::array<const char*, 8> names = {};
  size_t num_hidden = 0;        // arguments that Jinja2 itself passes before these
  const char* owner = nullptr;  // class of a method in C, which takes no keywords; for messages

  size_t size() const {
    size_t count = 0;
    while (count < names.size() && names[count] != nullptr) ++count;
    return count;
  }
};

// Arguments by parameter; kMissing where none was given.
class Bound {
 public:
  // Errors: throws Error with Python's words for arguments that do not fit.
  Bound(const Signature& signature, const Value* first, const Arguments& arguments);

  const Value& operator[](size_t index) const { return values_[index]; }
  bool has(size_t index) const { return !values_[index].is(Kind::kMissing); }
  Value value_or(size_t index, const Value& otherwise) const { return has(index) ? values_[index] : otherwise; }

 private:
  static void check_native(const Signature& signature, const Arguments& arguments);
  void set(const Signature& signature, size_t count, const Text& name, const Value& value);

  std::array<Value, 8> values_;
};

// A function, or with `self` a method. Signature: without self.
struct Function {
  Signature signature;
  Value (*call)(Runtime&, const Value& self, const Bound&) = nullptr;
  Value (*call_any)(Runtime&, const Value& self, const Arguments&) = nullptr;  // any number of arguments
};

struct Method {
  const Function* function = nullptr;
  Value self;
};

// Variables of one call of a function.
struct Activation {
  Activation* parent = nullptr;
  Value* slots = nullptr;
  bool is_captured = false;  // a macro needs it after the call
};

struct Macro {
  const MacroInfo* info = nullptr;
  Activation* activation = nullptr;
};

// A Python generator or iterator: gives each item once. `fill` makes the items when the first one is asked for.
struct Iterator {
  using Fill = List* (*)(Runtime&, const Iterator&);
  const char* type_name = "generator";
  Fill fill = nullptr;
  Value source;
  const Arguments* arguments = nullptr;  // owned by the Runtime
  bool flag = false;                     // for `fill`
  List* items = nullptr;
  size_t next = 0;
};

// The special variable of for.
struct Loop;

// Walks what Python can iterate over. Errors: throws Error for what it cannot.
class Cursor {
 public:
  Cursor(Runtime& runtime, const Value& source);
  bool next(Value& item);

 private:
  Runtime& runtime_;
  Value source_;
  size_t index_ = 0;
};

bool is_iterable(const Value& value);
// len(), or -1 where Python has none.
int64_t length_of(Runtime& runtime, const Value& value);
// list(value)
List* to_list(Runtime& runtime, const Value& value);
Value make_iterator(Runtime& runtime, const char* type_name, List* items);

// An integer argument, as Python's __index__. Errors: throws Error.
int64_t to_index(const Value& value);
[[noreturn]] void fail_undefined(Runtime& runtime, const Value& value);
// Throws the error that an undefined value stands for, if it is one.
inline void require_defined(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) fail_undefined(runtime, value);
}

}  // namespace mote::jinja
