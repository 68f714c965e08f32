#include "runner/templates/globals.h"

#include <algorithm>
#include <ctime>

#include "base/utf8.h"
#include "runner/templates/describe.h"
#include "runner/templates/local_time.h"

namespace mote::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;
constexpr size_t kMaxTimeBytes = size_t{1} << 16;

Value range(Runtime& runtime, const Value&, const Arguments& arguments) {
  const size_t count = arguments.positional.size();
  if (!arguments.keywords.empty()) fail("range() takes no keyword arguments");
  if (count == 0) fail("range expected at least 1 argument, got 0");
  if (count > 3) MOTE_JINJA_FAIL("range expected at most 3 arguments, got %zu", count);
  for (const Value& argument : arguments.positional) require_defined(runtime, argument);
  Range result;
  result.start = count > 1 ? to_index(arguments.positional[0]) : 0;
  result.stop = to_index(arguments.positional[count > 1 ? 1 : 0]);
  result.step = count > 2 ? to_index(arguments.positional[2]) : 1;
  if (result.step == 0) fail("range() arg 3 must not be zero");
  const __int128 distance = result.step > 0 ? static_cast<__int128>(result.stop) - result.start
                                            : static_cast<__int128>(result.start) - result.stop;
  const __int128 stride = result.step > 0 ? static_cast<__int128>(result.step) : -static_cast<__int128>(result.step);
  const __int128 size = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  if (size > kMaxRange) fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  result.size = static_cast<size_t>(size);
  return Value::of(Kind::kRange, runtime.arena().make<Range>(result));
}

void add_pairs(Runtime& runtime, Dict& dict, const Value& source) {
  if (source.is(Kind::kDict)) {
    for (const Dict::Entry& entry : *source.dict) {
      runtime.budget().step();
      dict.set(runtime.arena(), entry.key, entry.value);
    }
    return;
  }
  Cursor cursor(runtime, source);
  Value item;
  for (size_t i = 0; cursor.next(item); ++i) {
    if (!is_iterable(item)) MOTE_JINJA_FAIL("cannot convert dictionary update sequence element #%zu to a sequence", i);
    const List* pair = to_list(runtime, item);
    if (pair->size != 2)
      MOTE_JINJA_FAIL("dictionary update sequence element #%zu has length %zu; 2 is required", i, pair->size);
    dict.set(runtime.arena(), pair->items[0], pair->items[1]);
  }
}

Dict* dict_of(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.size() > 1)
    MOTE_JINJA_FAIL("dict expected at most 1 argument, got %zu", arguments.positional.size());
  Dict* dict = make_dict(runtime.arena());
  if (!arguments.positional.empty()) add_pairs(runtime, *dict, arguments.positional[0]);
  for (const auto& [name, value] : arguments.keywords) dict->set(runtime.arena(), Value::of(name), value);
  return dict;
}

Value dict(Runtime& runtime, const Value&, const Arguments& arguments) {
  return Value::of(dict_of(runtime, arguments));
}

Value make_namespace(Runtime& runtime, const Value&, const Arguments& arguments) {
  Dict* attributes = dict_of(runtime, arguments);
  for (const Dict::Entry& entry : *attributes) {
    if (!entry.key.is_text() || !entry.key.string().starts_with("_")) continue;
    fail("Chat templates cannot store underscore-prefixed attributes on a namespace, but got " +
         repr_string(runtime, entry.key) + ". Please rename the attribute.");
  }
  return Value::of(Kind::kNamespace, runtime.arena().make<Namespace>(Namespace{attributes}));
}

Value cycler(Runtime& runtime, const Value&, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  List* items = make_list(runtime.arena());
  for (const Value& item : arguments.positional) items->add(runtime.arena(), item);
  return Value::of(Kind::kCycler, runtime.arena().make<Cycler>(Cycler{items, 0}));
}

Value joiner(Runtime& runtime, const Value&, const Bound& bound) {
  const Value separator = bound.value_or(0, Value::of(", "));
  return Value::of(Kind::kJoiner, runtime.arena().make<Joiner>(Joiner{to_soft_text(runtime, separator), false}));
}

Value raise_exception(Runtime& runtime, const Value&, const Bound& bound) {
  fail(std::string(to_text(runtime, bound[0]).view()));
}

Value strftime_now(Runtime& runtime, const Value&, const Bound& bound) {
  if (!bound[0].is_text()) MOTE_JINJA_FAIL("strftime() argument 1 must be str, not %s", type_name(bound[0]));
  const std::tm local = local_time(static_cast<std::time_t>(runtime.now()));
  const std::string pattern(bound[0].string());
  if (pattern.size() > 1024) fail("strftime_now: the format is longer than 1024 bytes");
  runtime.budget().step(32 + pattern.size());
  std::string text(256, '\0');
  size_t length = 0;
  // strftime returns 0 for an empty result and for one that does not fit; the added space tells them apart.
  while ((length = format_time(text, pattern + " ", local)) == 0 && text.size() < kMaxTimeBytes) {
    text.resize(text.size() * 4);
  }
  text.resize(length > 0 ? length - 1 : 0);
  return Value::of(
      copy_text(runtime.arena(), replace_invalid_utf8(text), bound[0].text().is_marked() ? &kAllMarked : nullptr));
}

Value lipsum(Runtime&, const Value&, const Arguments&) {
  fail("the function lipsum is not supported in chat templates");
}

struct Global {
  std::string_view name;
  Function function;
};

// Functions that transformers adds carry the names that Python gives them, for messages.
constexpr Global kGlobals[] = {
    {"range", {{"range", 1, {}}, nullptr, range}},
    {"dict", {{"dict", 0, {}}, nullptr, dict}},
    {"namespace", {{"namespace", 0, {}}, nullptr, make_namespace}},
    {"cycler", {{"cycler", 0, {}}, nullptr, cycler}},
    {"joiner", {{"joiner", 0, {"sep"}}, joiner, nullptr}},
    {"raise_exception",
     {{"_cached_compile_jinja_template.<locals>.raise_exception", 1, {"message"}}, raise_exception, nullptr}},
    {"strftime_now", {{"_cached_compile_jinja_template.<locals>.strftime_now", 1, {"format"}}, strftime_now, nullptr}},
    {"lipsum", {{"lipsum", 0, {}}, nullptr, lipsum}},
};

}  // namespace

Value find_global(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kGlobals), std::end(kGlobals), [name](const Global& g) { return g.name == name; });
  return found == std::end(kGlobals) ? Value::missing() : Value::of(Kind::kFunction, &found->function);
}

}  // namespace mote::jinja
