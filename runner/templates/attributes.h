// value.name, value[key] and value[a:b], as Jinja2's sandbox allows them.
#pragma once

#include "runner/templates/runtime.h"

namespace mote::jinja {

// Looks for an attribute, then for an item of a dict; undefined if there is neither.
Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);
// Looks for an item, then for an attribute; undefined if there is neither.
Value get_item(Runtime& runtime, const Value& object, const Value& key);
// bounds: start, stop, step; none where not given
Value get_slice(Runtime& runtime, const Value& object, const Value (&bounds)[3]);
// Whether Python's hasattr would hold.
bool has_attribute(Runtime& runtime, const Value& object, std::string_view name);

// A method of a text, list, tuple, dict, range or other object; nullptr if there is none of the name.
const Function* find_text_method(std::string_view name);
const Function* find_collection_method(const Value& object, std::string_view name);

}  // namespace mote::jinja
