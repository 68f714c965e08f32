// Jinja2's filters, by name.
#pragma once

#include <span>
#include <string_view>

#include "runner/templates/runtime.h"

namespace mote::jinja {

struct Filter {
  std::string_view name;
  Function function;
};

// nullptr if there is none.
const Filter* find_filter(std::string_view name);
Value apply_filter(Runtime& runtime, const Filter& filter, const Value& value, const Arguments& arguments);

// What `fill` makes of `source` and the arguments, once somebody asks for it.
Value make_lazy(Runtime& runtime, const Value& source, Arguments arguments, Iterator::Fill fill, bool flag = false);

// The tables that find_filter looks in.
std::span<const Filter> text_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> selection_filters();
std::span<const Filter> number_filters();
std::span<const Filter> json_filters();

}  // namespace mote::jinja
