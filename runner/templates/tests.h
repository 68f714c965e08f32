// Jinja2's tests, by name.
#pragma once

#include <string_view>

#include "runner/templates/runtime.h"

namespace mote::jinja {

struct Test {
  std::string_view name;
  Signature signature;
  bool (*call)(Runtime&, const Bound&) = nullptr;
};

// nullptr if there is none.
const Test* find_test(std::string_view name);
bool apply_test(Runtime& runtime, const Test& test, const Value& value, const Arguments& arguments);

}  // namespace mote::jinja
