// The special variable `loop` of for.
#pragma once

#include "runner/templates/runtime.h"

namespace mote::jinja {

// Gives the items of a loop one by one. Lives as long as the loop runs.
class LoopSource {
 public:
  virtual ~LoopSource() = default;
  virtual bool next(Value& item) = 0;
  // How many items there are in all, or -1 where Python's len() fails.
  virtual int64_t length() const = 0;
};

struct Loop {
  LoopSource* source = nullptr;  // nullptr once the loop has ended
  Runtime* runtime = nullptr;
  int64_t index0 = -1;
  int64_t depth0 = 0;
  bool has_after = false;
  Value before;
  Value current = Value::missing();
  Value after;           // the next item, if it was asked for
  List* rest = nullptr;  // the items to come, if they were counted
  size_t rest_index = 0;
  int64_t length = -1;
  Value changed = Value::missing();
  const Statement* statement = nullptr;  // of a recursive loop
  Activation* activation = nullptr;
};

// Moves on; false at the end.
bool advance(Loop& loop);
int64_t loop_length(Loop& loop);
// An attribute such as loop.index; kMissing if there is none of the name.
Value loop_attribute(Runtime& runtime, const Value& loop, std::string_view name);

}  // namespace mote::jinja
