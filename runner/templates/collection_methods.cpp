#include <algorithm>
#include <cmath>
#include <iterator>

#include "runner/templates/attributes.h"
#include "runner/templates/describe.h"
#include "runner/templates/operators.h"

namespace mote::jinja {
namespace {

template <DictView::Part part>
Value view(Runtime& runtime, const Value& self, const Bound&) {
  return Value::of(Kind::kDictView, runtime.arena().make<DictView>(DictView{self.dict, part}));
}

Value get(Runtime& runtime, const Value& self, const Bound& bound) {
  const Value* found = self.dict->find(runtime.budget(), bound[0]);
  return found == nullptr ? bound.value_or(1, Value::none()) : *found;
}

Value copy_dict(Runtime& runtime, const Value& self, const Bound&) {
  Dict* copy = make_dict(runtime.arena());
  for (const Dict::Entry& entry : *self.dict) {
    runtime.budget().step();
    copy->set(runtime.arena(), entry.key, entry.value);
  }
  return Value::of(copy);
}

Value copy_list(Runtime& runtime, const Value& self, const Bound&) { return Value::of(to_list(runtime, self)); }

Value count_of_item(Runtime& runtime, const Value& self, const Bound& bound) {
  int64_t found = 0;
  Cursor cursor(runtime, self);
  Value item;
  while (cursor.next(item)) found += equal(runtime.budget(), item, bound[0]) ? 1 : 0;
  return Value::of(found);
}

Value index_of_item(Runtime& runtime, const Value& self, const Bound& bound) {
  const int64_t length = length_of(runtime, self);
  const auto position = [&](size_t at, int64_t otherwise) {
    const int64_t value = to_index(bound.value_or(at, Value::of(otherwise)));
    return value < 0 ? std::max<int64_t>(std::max(value, -length) + length, 0) : value;
  };
  const int64_t start = position(1, 0);
  const int64_t stop = position(2, length);
  Cursor cursor(runtime, self);
  Value item;
  for (int64_t i = 0; cursor.next(item); ++i) {
    if (i >= start && i < stop && equal(runtime.budget(), item, bound[0])) return Value::of(i);
  }
  if (self.is(Kind::kList)) fail(repr_string(runtime, bound[0]) + " is not in list");
  if (self.is(Kind::kRange)) fail(repr_string(runtime, bound[0]) + " is not in range");
  fail("tuple.index(x): x not in tuple");
}

Value next_of_cycler(Runtime&, const Value& self, const Bound&) {
  Cycler& cycler = *self.cycler;
  const Value item = cycler.items->items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items->size;
  return item;
}

Value reset_cycler(Runtime&, const Value& self, const Bound&) {
  self.cycler->position = 0;
  return Value::none();
}

Value is_whole(Runtime&, const Value& self, const Bound&) {
  return Value::of(std::isfinite(self.real) && std::floor(self.real) == self.real);
}

Value bit_length(Runtime&, const Value& self, const Bound&) {
  uint64_t rest =
      self.whole() < 0 ? uint64_t{0} - static_cast<uint64_t>(self.whole()) : static_cast<uint64_t>(self.whole());
  int64_t length = 0;
  for (; rest > 0; rest >>= 1) ++length;
  return Value::of(length);
}

Value conjugate(Runtime& runtime, const Value& self, const Bound&) { return positive(runtime, self); }

constexpr Function kDictMethods[] = {
    {{"items", 0, {}, 0, "dict"}, view<DictView::Part::kItems>, nullptr},
    {{"keys", 0, {}, 0, "dict"}, view<DictView::Part::kKeys>, nullptr},
    {{"values", 0, {}, 0, "dict"}, view<DictView::Part::kValues>, nullptr},
    {{"get", 1, {"key", "default"}, 0, "dict"}, get, nullptr},
    {{"copy", 0, {}, 0, "dict"}, copy_dict, nullptr},
};
constexpr Function kSequenceMethods[] = {
    {{"count", 1, {"value"}, 0, "list"}, count_of_item, nullptr},
    {{"index", 1, {"value", "start", "stop"}, 0, "list"}, index_of_item, nullptr},
    {{"copy", 0, {}, 0, "list"}, copy_list, nullptr},  // lists only
};
constexpr Function kCyclerMethods[] = {
    {{"next", 0, {}}, next_of_cycler, nullptr},
    {{"reset", 0, {}}, reset_cycler, nullptr},
};
constexpr Function kFloatMethods[] = {
    {{"is_integer", 0, {}}, is_whole, nullptr},
    {{"conjugate", 0, {}}, conjugate, nullptr},
};
constexpr Function kIntegerMethods[] = {
    {{"bit_length", 0, {}}, bit_length, nullptr},
    {{"conjugate", 0, {}}, conjugate, nullptr},
};

const Function* find_function(std::span<const Function> functions, std::string_view name) {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [name](const Function& f) { return name == f.signature.function; });
  return found == functions.end() ? nullptr : &*found;
}

}  // namespace

const Function* find_collection_method(const Value& object, std::string_view name) {
  switch (object.kind) {
    case Kind::kDict: return find_function(kDictMethods, name);
    case Kind::kList: return find_function(kSequenceMethods, name);
    case Kind::kTuple:
    case Kind::kRange: return find_function(std::span(kSequenceMethods).first(2), name);
    case Kind::kCycler: return find_function(kCyclerMethods, name);
    case Kind::kFloat: return find_function(kFloatMethods, name);
    case Kind::kBool:
    case Kind::kInteger: return find_function(kIntegerMethods, name);
    default: return nullptr;
  }
}

}  // namespace mote::jinja
