// Guards that count nesting and calls in the interpreter, and count back when their C++ scope ends.
#pragma once

#include "runner/templates/interpreter.h"

namespace mote::jinja {

class Interpreter::Nesting {
 public:
  explicit Nesting(Interpreter& interpreter) : interpreter_(interpreter) {
    const int limit = interpreter.budget().limits().max_nesting;
    if (++interpreter.nesting_ > limit) MOTE_JINJA_FAIL("the template nests deeper than %d while it runs", limit);
  }
  ~Nesting() { --interpreter_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Interpreter& interpreter_;
};

// A call of a function of the program. While this object lives, the function's variables are the current ones.
class Interpreter::Call {
 public:
  Call(Interpreter& interpreter, const FunctionInfo& function, Activation* parent)
      : interpreter_(interpreter), function_(function), outer_(interpreter.current_) {
    const int limit = interpreter.budget().limits().max_call_depth;
    if (interpreter.call_depth_ >= limit)
      MOTE_JINJA_FAIL("the template's macros call each other deeper than %d", limit);
    interpreter.budget().step();
    interpreter.current_ = interpreter.make_activation(function, parent);
    ++interpreter.call_depth_;
  }
  ~Call() {
    interpreter_.release(function_, interpreter_.current_);
    interpreter_.current_ = outer_;
    --interpreter_.call_depth_;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Interpreter& interpreter_;
  const FunctionInfo& function_;
  Activation* outer_;
};

}  // namespace mote::jinja
