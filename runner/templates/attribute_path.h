// The `attribute` argument of filters: "a.b.0".
#pragma once

#include <vector>

#include "runner/templates/runtime.h"

namespace mote::jinja {

class AttributePath {
 public:
  // attribute: text, an integer, or none for the item itself
  AttributePath(Runtime& runtime, const Value& attribute);

  // default_value: kMissing if there is none. lower: texts become lower case, for comparisons.
  Value get(Runtime& runtime, Value item, const Value& default_value, bool lower) const;

 private:
  std::vector<Value> parts_;
};

}  // namespace mote::jinja
