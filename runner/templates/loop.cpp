#include "runner/templates/loop.h"

namespace mote::jinja {
namespace {

bool take(Loop& loop, Value& item) {
  if (loop.rest != nullptr) {
    if (loop.rest_index == loop.rest->size) return false;
    item = loop.rest->items[loop.rest_index++];
    return true;
  }
  return loop.source != nullptr && loop.source->next(item);
}

bool peek(Loop& loop) {
  if (!loop.has_after) loop.has_after = take(loop, loop.after);
  return loop.has_after;
}

Value cycle(Runtime&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("no items for cycling given");
  const auto count = static_cast<int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<size_t>(((self.loop->index0 % count) + count) % count)];
}

Value changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  List* values = make_list(runtime.arena());
  for (const Value& value : arguments.positional) values->add(runtime.arena(), value);
  const Value now = Value::of(values, true);
  if (!self.loop->changed.is(Kind::kMissing) && equal(runtime.budget(), self.loop->changed, now))
    return Value::of(false);
  self.loop->changed = now;
  return Value::of(true);
}

constexpr Function kCycle{{"cycle", 0, {}}, nullptr, cycle};
constexpr Function kChanged{{"changed", 0, {}}, nullptr, changed};

}  // namespace

bool advance(Loop& loop) {
  Value item;
  if (loop.has_after) {
    item = loop.after;
    loop.has_after = false;
  } else if (!take(loop, item)) {
    return false;
  }
  ++loop.index0;
  loop.before = loop.current;
  loop.current = item;
  return true;
}

int64_t loop_length(Loop& loop) {
  if (loop.length >= 0) return loop.length;
  if (loop.source != nullptr) loop.length = loop.source->length();
  if (loop.length >= 0) return loop.length;
  List* rest = make_list(loop.runtime->arena());
  Value item;
  while (take(loop, item)) rest->add(loop.runtime->arena(), item);
  loop.rest = rest;
  loop.rest_index = 0;
  loop.length = static_cast<int64_t>(rest->size) + loop.index0 + 1 + (loop.has_after ? 1 : 0);
  return loop.length;
}

Value loop_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  Loop& loop = *value.loop;
  if (name == "index") return Value::of(loop.index0 + 1);
  if (name == "index0") return Value::of(loop.index0);
  if (name == "first") return Value::of(loop.index0 == 0);
  if (name == "last") return Value::of(!peek(loop));
  if (name == "length") return Value::of(loop_length(loop));
  if (name == "revindex") return Value::of(loop_length(loop) - loop.index0);
  if (name == "revindex0") return Value::of(loop_length(loop) - loop.index0 - 1);
  if (name == "depth") return Value::of(loop.depth0 + 1);
  if (name == "depth0") return Value::of(loop.depth0);
  if (name == "previtem")
    return loop.index0 == 0 ? make_undefined_hint(runtime.arena(), "there is no previous item") : loop.before;
  if (name == "nextitem")
    return peek(loop) ? loop.after : make_undefined_hint(runtime.arena(), "there is no next item");
  if (name == "cycle") return Value::of(Kind::kMethod, runtime.arena().make<Method>(Method{&kCycle, value}));
  if (name == "changed") return Value::of(Kind::kMethod, runtime.arena().make<Method>(Method{&kChanged, value}));
  return Value::missing();
}

}  // namespace mote::jinja
