// map, select, reject, selectattr and rejectattr: they call other filters and tests.
#include "runner/templates/attribute_path.h"
#include "runner/templates/describe.h"
#include "runner/templates/escapes.h"
#include "runner/templates/filters.h"
#include "runner/templates/tests.h"

namespace mote::jinja {
namespace {

// The arguments behind the first `count`.
Arguments behind(const Arguments& arguments, size_t count) {
  return {{arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end()},
          arguments.keywords};
}

[[noreturn]] void fail_unknown(Runtime& runtime, const char* kind, const Value& name) {
  std::string message = std::string("No ") + kind + " named " + repr_string(runtime, name) + ".";
  if (name.is_undefined()) {
    message += " (" + undefined_message(runtime, name) + "; did you forget to quote the callable name?)";
  }
  fail(message);
}

List* fill_map(Runtime& runtime, const Iterator& iterator) {
  List* mapped = make_list(runtime.arena());
  if (!is_true(iterator.source)) return mapped;
  const Arguments& arguments = *iterator.arguments;
  Value attribute = Value::missing();
  Value otherwise = Value::none();
  for (const auto& [name, value] : arguments.keywords) {
    if (name.view() == "attribute") attribute = value;
    if (name.view() == "default") otherwise = value;
  }
  Cursor cursor(runtime, iterator.source);
  Value item;
  if (arguments.positional.empty() && !attribute.is(Kind::kMissing)) {
    for (const auto& [name, value] : arguments.keywords) {
      if (name.view() != "attribute" && name.view() != "default")
        fail("Unexpected keyword argument " + repr_of(name.view()));
    }
    const AttributePath path(runtime, attribute);
    if (otherwise.is_none()) otherwise = Value::missing();
    while (cursor.next(item)) mapped->add(runtime.arena(), path.get(runtime, item, otherwise, false));
    return mapped;
  }
  if (arguments.positional.empty()) fail("map requires a filter argument");
  const Value& name = arguments.positional[0];
  const Filter* filter = name.is_text() ? find_filter(name.string()) : nullptr;
  const Arguments rest = behind(arguments, 1);
  while (cursor.next(item)) {
    if (filter == nullptr) fail_unknown(runtime, "filter", name);
    mapped->add(runtime.arena(), apply_filter(runtime, *filter, item, rest));
  }
  return mapped;
}

// select and reject; flag: keep what passes. by_attribute: selectattr and rejectattr, which take an attribute first.
template <bool by_attribute>
List* fill_selection(Runtime& runtime, const Iterator& iterator) {
  List* kept = make_list(runtime.arena());
  if (!is_true(iterator.source)) return kept;
  const Arguments& arguments = *iterator.arguments;
  if (by_attribute && arguments.positional.empty()) fail("Missing parameter for attribute name");
  const AttributePath path(runtime, by_attribute ? arguments.positional[0] : Value::none());
  const size_t name_at = by_attribute ? 1 : 0;
  const bool has_test = arguments.positional.size() > name_at;
  const Value name = has_test ? arguments.positional[name_at] : Value::none();
  const Test* test = name.is_text() ? find_test(name.string()) : nullptr;
  const Arguments rest = has_test ? behind(arguments, name_at + 1) : Arguments();
  Cursor cursor(runtime, iterator.source);
  Value item;
  while (cursor.next(item)) {
    if (has_test && test == nullptr) fail_unknown(runtime, "test", name);
    const Value tested = path.get(runtime, item, Value::missing(), false);
    const bool passes = has_test ? apply_test(runtime, *test, tested, rest) : is_true(tested);
    if (passes == iterator.flag) kept->add(runtime.arena(), item);
  }
  return kept;
}

Value map(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return make_lazy(runtime, value, arguments, fill_map);
}
Value select(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return make_lazy(runtime, value, arguments, fill_selection<false>, true);
}
Value reject(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return make_lazy(runtime, value, arguments, fill_selection<false>, false);
}
Value select_by_attribute(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return make_lazy(runtime, value, arguments, fill_selection<true>, true);
}
Value reject_by_attribute(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return make_lazy(runtime, value, arguments, fill_selection<true>, false);
}

constexpr Filter kSelectionFilters[] = {
    {"map", {{"sync_do_map", 1, {"value"}}, nullptr, map}},
    {"select", {{"sync_do_select", 1, {"value"}}, nullptr, select}},
    {"reject", {{"sync_do_reject", 1, {"value"}}, nullptr, reject}},
    {"selectattr", {{"sync_do_selectattr", 1, {"value"}}, nullptr, select_by_attribute}},
    {"rejectattr", {{"sync_do_rejectattr", 1, {"value"}}, nullptr, reject_by_attribute}},
};

}  // namespace

std::span<const Filter> selection_filters() { return kSelectionFilters; }

}  // namespace mote::jinja
