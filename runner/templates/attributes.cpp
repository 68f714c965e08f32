#include "runner/templates/attributes.h"

#include <algorithm>
#include <array>

#include "base/size.h"
#include "runner/templates/describe.h"
#include "runner/templates/loop.h"

namespace mote::jinja {
namespace {

constexpr std::array kMutatingList = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
constexpr std::array kMutatingDict = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::array kEveryObject = {"__class__",   "__delattr__", "__dir__",           "__doc__",         "__eq__",
                                     "__format__",  "__ge__",      "__getattribute__",  "__getstate__",    "__gt__",
                                     "__hash__",    "__init__",    "__init_subclass__", "__le__",          "__lt__",
                                     "__ne__",      "__new__",     "__reduce__",        "__reduce_ex__",   "__repr__",
                                     "__setattr__", "__sizeof__",  "__str__",           "__subclasshook__"};
constexpr std::array kContainer = {"__len__", "__iter__", "__contains__", "__getitem__"};

template <size_t size>
bool is_one_of(const std::array<const char*, size>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [name](const char* other) { return name == other; });
}

bool is_container(const Value& object) { return object.is_text() || object.is_sequence() || object.is(Kind::kDict); }

// An attribute that exists in Python, but that the sandbox keeps from templates.
bool is_unsafe(const Value& object, std::string_view name) {
  if (object.is(Kind::kNamespace)) return name == "__class__";
  if (is_one_of(kEveryObject, name) || (is_container(object) && is_one_of(kContainer, name))) return true;
  if (object.is(Kind::kList)) return is_one_of(kMutatingList, name);
  return object.is(Kind::kDict) && is_one_of(kMutatingDict, name);
}

Value number_attribute(const Value& object, std::string_view name) {
  if (name == "real") return object.is(Kind::kBool) ? Value::of(object.whole()) : object;
  if (name == "imag") return object.is(Kind::kFloat) ? Value::of(0.0) : Value::of(0);
  if (object.is(Kind::kFloat)) return Value::missing();
  if (name == "numerator") return Value::of(object.whole());
  if (name == "denominator") return Value::of(1);
  return Value::missing();
}

Value macro_attribute(Runtime& runtime, const Macro& macro, std::string_view name) {
  const MacroInfo& info = *macro.info;
  if (name == "name") return info.is_anonymous ? Value::none() : Value::of(Text(info.name));
  if (name == "catch_kwargs") return Value::of(info.uses_kwargs);
  if (name == "catch_varargs") return Value::of(info.uses_varargs);
  if (name == "caller") return Value::of(info.uses_caller);
  if (name != "arguments") return Value::missing();
  List* names = make_list(runtime.arena());
  for (const Parameter& parameter : info.parameters) names->add(runtime.arena(), Value::of(Text(parameter.name)));
  return Value::of(names, true);
}

// What Python's getattr gives; kMissing where it raises AttributeError.
Value attribute_of(Runtime& runtime, const Value& object, std::string_view name) {
  switch (object.kind) {
    case Kind::kBool:
    case Kind::kInteger:
    case Kind::kFloat:
      if (const Value found = number_attribute(object, name); !found.is(Kind::kMissing)) return found;
      break;
    case Kind::kNamespace: {
      const Value* found = object.space->attributes->find(name);
      return found == nullptr ? Value::missing() : *found;
    }
    case Kind::kMacro: return macro_attribute(runtime, *object.macro, name);
    case Kind::kLoop: return loop_attribute(runtime, object, name);
    case Kind::kRange:
      if (name == "start") return Value::of(object.range->start);
      if (name == "stop") return Value::of(object.range->stop);
      if (name == "step") return Value::of(object.range->step);
      break;
    case Kind::kCycler:
      if (name == "current") return object.cycler->items->items[object.cycler->position];
      if (name == "items") return Value::of(object.cycler->items, true);
      if (name == "pos") return Value::of(object.cycler->position);
      break;
    case Kind::kJoiner:
      if (name == "sep") return Value::of(object.joiner->separator);
      if (name == "used") return Value::of(object.joiner->used);
      break;
    case Kind::kTuple:
      if (object.safe && name == "grouper") return object.list->items[0];  // of groupby
      if (object.safe && name == "list") return object.list->items[1];
      break;
    default: break;
  }
  const Function* method = object.is_text() ? find_text_method(name) : find_collection_method(object, name);
  if (method == nullptr) return Value::missing();
  return Value::of(Kind::kMethod, runtime.arena().make<Method>(Method{method, object}));
}

// The attribute, or the undefined value that says that it is unsafe; kMissing if there is none.
Value sandboxed_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (is_unsafe(object, name)) {
    const std::string hint =
        "access to attribute '" + std::string(name) + "' of '" + type_name(object) + "' object is unsafe.";
    return make_undefined_hint(runtime.arena(), hint);
  }
  return attribute_of(runtime, object, name);
}

// obj[key] for all but slices; kMissing where Python raises TypeError or LookupError.
Value item_of(Runtime& runtime, const Value& object, const Value& key) {
  switch (object.kind) {
    case Kind::kDict: {
      if (key.is(Kind::kList) || key.is(Kind::kDict)) return Value::missing();
      const Value* found = object.dict->find(runtime.budget(), key);
      return found == nullptr ? Value::missing() : *found;
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kText: break;
    default: return Value::missing();
  }
  if (!key.is_whole()) return Value::missing();
  const int64_t size = length_of(runtime, object);
  const int64_t index = key.whole() < 0 ? key.whole() + size : key.whole();
  if (index < 0 || index >= size) return Value::missing();
  if (object.is_sequence()) return object.list->items[index];
  if (object.is(Kind::kRange)) return object.range->at(static_cast<size_t>(index));
  const size_t offset = offset_of_character(object.string(), static_cast<size_t>(index));
  return Value::of(object.text().part(offset, character_at(object.string(), offset).length));
}

bool is_dunder(std::string_view name) { return name.size() >= 4 && name.starts_with("__") && name.ends_with("__"); }

struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  size_t size = 0;
};

// Source: CPython PySlice_AdjustIndices
SliceRange adjust(const Value (&bounds)[3], int64_t length) {
  for (const Value& bound : bounds) {
    if (!bound.is_none() && !bound.is_whole())
      fail("slice indices must be integers or None or have an __index__ method");
  }
  const int64_t step = bounds[2].is_none() ? 1 : bounds[2].whole();
  if (step == 0) fail("slice step cannot be zero");
  const int64_t lowest = step < 0 ? -1 : 0;
  const int64_t highest = step < 0 ? length - 1 : length;
  const auto clamp = [&](const Value& bound, int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const int64_t value = bound.whole() < 0 ? std::max(bound.whole(), -length - 1) + length : bound.whole();
    return std::clamp(value, lowest, highest);
  };
  const int64_t start = clamp(bounds[0], step < 0 ? highest : lowest);
  const int64_t stop = clamp(bounds[1], step < 0 ? lowest : highest);
  const int64_t distance = step < 0 ? start - stop : stop - start;
  const uint64_t stride = step < 0 ? uint64_t{0} - static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
  return {start, step, distance <= 0 ? 0 : static_cast<size_t>((static_cast<uint64_t>(distance) - 1) / stride + 1)};
}

Value slice_text(Runtime& runtime, const Text& text, const SliceRange& range) {
  if (range.size == 0) return Value::of(text.part(0, 0));
  runtime.budget().count(text.size);
  const bool is_ascii =
      std::all_of(text.data, text.data + text.size, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  const auto offset_of = [&](int64_t index) {
    return is_ascii ? static_cast<size_t>(index) : offset_of_character(text.view(), static_cast<size_t>(index));
  };
  if (range.step == 1) {
    const size_t begin = offset_of(range.start);
    const size_t end = offset_of(range.start + static_cast<int64_t>(range.size));
    return Value::of(text.part(begin, end - begin));
  }
  runtime.budget().scan_slowly(text.size);
  std::vector<uint32_t> offsets;
  for (size_t i = 0; i < text.size; i += character_at(text.view(), i).length)
    offsets.push_back(static_cast<uint32_t>(i));
  TextBuilder out(runtime.arena());
  for (size_t i = 0; i < range.size; ++i) {
    const size_t offset = offsets[static_cast<size_t>(range.start + static_cast<int64_t>(i) * range.step)];
    out.add(text.part(offset, character_at(text.view(), offset).length));
  }
  Text sliced = out.finish();
  sliced.safe = text.safe;
  return Value::of(sliced);
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is_undefined() && !is_dunder(name)) fail_undefined(runtime, object);
  const Value attribute = sandboxed_attribute(runtime, object, name);
  if (!attribute.is(Kind::kMissing)) return attribute;
  const Value item = object.is(Kind::kDict) ? item_of(runtime, object, Value::of(Text(name))) : Value::missing();
  return item.is(Kind::kMissing) ? make_undefined(runtime.arena(), object, Value::of(Text(name))) : item;
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
  require_defined(runtime, object);
  const Value item = item_of(runtime, object, key);
  if (!item.is(Kind::kMissing)) return item;
  if (key.is_text()) {
    const Value attribute = sandboxed_attribute(runtime, object, key.string());
    if (!attribute.is(Kind::kMissing)) return attribute;
  }
  return make_undefined(runtime.arena(), object, key);
}

Value get_slice(Runtime& runtime, const Value& object, const Value (&bounds)[3]) {
  require_defined(runtime, object);
  if (object.is(Kind::kDict)) fail("unhashable type: 'slice'");
  const bool is_sliceable = object.is_text() || object.is_sequence() || object.is(Kind::kRange);
  if (!is_sliceable) MOTE_JINJA_FAIL("'%s' object is not subscriptable", type_name(object));
  const SliceRange slice = adjust(bounds, length_of(runtime, object));
  if (object.is_text()) return slice_text(runtime, object.text(), slice);
  if (object.is(Kind::kRange)) {
    const Range& from = *object.range;
    int64_t step = 0;
    int64_t stop = 0;
    const int64_t start = slice.size == 0 ? from.start : from.start + slice.start * from.step;
    if (__builtin_mul_overflow(from.step, slice.step, &step) ||
        !checked_multiply_add(static_cast<int64_t>(slice.size), step, start, &stop)) {
      fail("integer overflow: a slice of a range does not fit 64 bits");
    }
    return Value::of(Kind::kRange, runtime.arena().make<Range>(Range{start, stop, step, slice.size}));
  }
  runtime.budget().step(slice.size / 8);
  List* list = make_list(runtime.arena(), slice.size);
  for (size_t i = 0; i < slice.size; ++i) {
    list->add(runtime.arena(), object.list->items[slice.start + static_cast<int64_t>(i) * slice.step]);
  }
  return Value::of(list, object.is(Kind::kTuple));
}

bool has_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  return is_unsafe(object, name) || !attribute_of(runtime, object, name).is(Kind::kMissing);
}

}  // namespace mote::jinja
