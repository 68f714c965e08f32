#include <algorithm>

#include "runner/templates/attribute_path.h"
#include "runner/templates/attributes.h"
#include "runner/templates/describe.h"
#include "runner/templates/filters.h"
#include "runner/templates/operators.h"
#include "runner/templates/text_methods.h"

namespace mote::jinja {
namespace {

Value length(Runtime& runtime, const Value& value, const Bound&) {
  if (value.is(Kind::kLoop)) return get_attribute(runtime, value, "length");
  const int64_t count = length_of(runtime, value);
  if (count < 0) MOTE_JINJA_FAIL("object of type '%s' has no len()", type_name(value));
  return Value::of(count);
}

Value first(Runtime& runtime, const Value& value, const Bound&) {
  Cursor cursor(runtime, value);
  Value item;
  return cursor.next(item) ? item : make_undefined_hint(runtime.arena(), "No first item, sequence was empty.");
}

// The items of an iterable, last first.
List* reversed(Runtime& runtime, const Value& value) {
  List* items = to_list(runtime, value);
  std::reverse(items->items, items->items + items->size);
  return items;
}

Value last(Runtime& runtime, const Value& value, const Bound&) {
  if (!is_iterable(value) || value.is(Kind::kIterator))
    MOTE_JINJA_FAIL("'%s' object is not reversible", type_name(value));
  if (value.is_sequence() && value.list->size > 0) return value.list->items[value.list->size - 1];
  const List* items = reversed(runtime, value);
  return items->size > 0 ? items->items[0] : make_undefined_hint(runtime.arena(), "No last item, sequence was empty.");
}

Value reverse(Runtime& runtime, const Value& value, const Bound&) {
  if (value.is_text()) {
    const Value bounds[3] = {Value::none(), Value::none(), Value::of(-1)};
    return get_slice(runtime, value, bounds);
  }
  if (!is_iterable(value)) fail("argument must be iterable");
  List* items = reversed(runtime, value);
  if (value.is(Kind::kIterator)) return Value::of(items);
  return make_iterator(runtime, value.is(Kind::kList) ? "list_reverseiterator" : "reversed", items);
}

Value list(Runtime& runtime, const Value& value, const Bound&) { return Value::of(to_list(runtime, value)); }

List* fill_items(Runtime& runtime, const Iterator& iterator) {
  const Value& source = iterator.source;
  if (source.is_undefined()) return make_list(runtime.arena());
  if (!source.is(Kind::kDict)) fail("Can only get item pairs from a mapping.");
  const DictView view{source.dict, DictView::Part::kItems};
  return to_list(runtime, Value::of(Kind::kDictView, &view));
}
Value items(Runtime& runtime, const Value& value, const Bound&) { return make_lazy(runtime, value, {}, fill_items); }

Value joined(Runtime& runtime, const Value& value, const Bound& bound) {
  Value source = value;
  if (const Value attribute = bound.value_or(2, Value::none()); !attribute.is_none()) {
    const AttributePath path(runtime, attribute);
    List* parts = make_list(runtime.arena());
    Cursor cursor(runtime, value);
    Value item;
    while (cursor.next(item)) parts->add(runtime.arena(), path.get(runtime, item, Value::missing(), false));
    source = Value::of(parts);
  }
  return Value::of(join(runtime, to_text(runtime, bound.value_or(1, Value::of(""))), source, true));
}

Value default_value(Runtime&, const Value& value, const Bound& bound) {
  const bool boolean = is_true(bound.value_or(2, Value::of(false)));
  if (value.is_undefined() || (boolean && !is_true(value))) return bound.value_or(1, Value::of(""));
  return value;
}

struct Keyed {
  Value key;
  Value item;
};

void sort_keyed(Runtime& runtime, std::vector<Keyed>& items, bool reverse_order) {
  runtime.budget().take_memory(items.size() * sizeof(Keyed));
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    runtime.budget().step();
    return reverse_order ? is_less(runtime, b.key, a.key) : is_less(runtime, a.key, b.key);
  });
}

Value lowered(Runtime& runtime, const Value& value, bool lower) {
  return lower && value.is_text() ? Value::of(to_lower(runtime, value.text())) : value;
}

Value dictsort(Runtime& runtime, const Value& value, const Bound& bound) {
  const bool case_sensitive = is_true(bound.value_or(1, Value::of(false)));
  const Value by = bound.value_or(2, Value::of("key"));
  const bool by_value = by.is_text() && by.string() == "value";
  if (!by_value && !(by.is_text() && by.string() == "key")) fail("You can only sort by either \"key\" or \"value\"");
  require_defined(runtime, value);
  if (!value.is(Kind::kDict))
    fail(repr_string(runtime, Value::of(Text(type_name(value)))) + " object has no attribute 'items'");
  std::vector<Keyed> entries;
  for (const Dict::Entry& entry : *value.dict) {
    runtime.budget().step();
    entries.push_back({lowered(runtime, by_value ? entry.value : entry.key, !case_sensitive),
                       make_tuple(runtime.arena(), entry.key, entry.value)});
  }
  sort_keyed(runtime, entries, is_true(bound.value_or(3, Value::of(false))));
  List* sorted = make_list(runtime.arena(), entries.size());
  for (const Keyed& entry : entries) sorted->add(runtime.arena(), entry.item);
  return Value::of(sorted);
}

// The key of sort: a list with one part for each of the comma-separated attributes.
Value sort_key(Runtime& runtime, const std::vector<AttributePath>& paths, const Value& item, bool lower) {
  if (paths.size() == 1) return paths[0].get(runtime, item, Value::missing(), lower);
  List* parts = make_list(runtime.arena(), paths.size());
  for (const AttributePath& path : paths) parts->add(runtime.arena(), path.get(runtime, item, Value::missing(), lower));
  return Value::of(parts);
}

Value sort(Runtime& runtime, const Value& value, const Bound& bound) {
  const bool lower = !is_true(bound.value_or(2, Value::of(false)));
  const Value attribute = bound.value_or(3, Value::none());
  std::vector<AttributePath> paths;
  if (attribute.is_text()) {
    const List* parts = split(runtime, attribute.text(), Value::of(","), -1, false);
    for (const Value& part : *parts) paths.emplace_back(runtime, part);
  } else {
    paths.emplace_back(runtime, attribute);
  }
  std::vector<Keyed> entries;
  Cursor cursor(runtime, value);
  Value item;
  while (cursor.next(item)) entries.push_back({sort_key(runtime, paths, item, lower), item});
  sort_keyed(runtime, entries, is_true(bound.value_or(1, Value::of(false))));
  List* sorted = make_list(runtime.arena(), entries.size());
  for (const Keyed& entry : entries) sorted->add(runtime.arena(), entry.item);
  return Value::of(sorted);
}

List* fill_unique(Runtime& runtime, const Iterator& iterator) {
  const AttributePath path(runtime, iterator.arguments->positional[0]);
  List* kept = make_list(runtime.arena());
  Dict* seen = make_dict(runtime.arena());
  Cursor cursor(runtime, iterator.source);
  Value item;
  while (cursor.next(item)) {
    const Value key = path.get(runtime, item, Value::missing(), iterator.flag);
    if (seen->find(runtime.budget(), key) != nullptr) continue;
    seen->set(runtime.arena(), key, Value::none());
    kept->add(runtime.arena(), item);
  }
  return kept;
}
Value unique(Runtime& runtime, const Value& value, const Bound& bound) {
  const bool lower = !is_true(bound.value_or(1, Value::of(false)));
  return make_lazy(runtime, value, {{bound.value_or(2, Value::none())}, {}}, fill_unique, lower);
}

Value extreme(Runtime& runtime, const Value& value, const Bound& bound, bool largest) {
  const bool lower = !is_true(bound.value_or(1, Value::of(false)));
  const AttributePath path(runtime, bound.value_or(2, Value::none()));
  Cursor cursor(runtime, value);
  Value best;
  if (!cursor.next(best)) return make_undefined_hint(runtime.arena(), "No aggregated item, sequence was empty.");
  Value best_key = path.get(runtime, best, Value::missing(), lower);
  Value item;
  while (cursor.next(item)) {
    const Value key = path.get(runtime, item, Value::missing(), lower);
    const bool is_better =
        largest ? compare(runtime, Operator::kGreater, key, best_key) : is_less(runtime, key, best_key);
    if (!is_better) continue;
    best = item;
    best_key = key;
  }
  return best;
}
Value min(Runtime& runtime, const Value& value, const Bound& bound) { return extreme(runtime, value, bound, false); }
Value max(Runtime& runtime, const Value& value, const Bound& bound) { return extreme(runtime, value, bound, true); }

Value sum(Runtime& runtime, const Value& value, const Bound& bound) {
  const Value attribute = bound.value_or(1, Value::none());
  const AttributePath path(runtime, attribute);
  Value total = bound.value_or(2, Value::of(0));
  if (total.is_text()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  Cursor cursor(runtime, value);
  Value item;
  while (cursor.next(item)) {
    total = arithmetic(runtime, Operator::kAdd, total,
                       attribute.is_none() ? item : path.get(runtime, item, Value::missing(), false));
  }
  return total;
}

List* fill_slices(Runtime& runtime, const Iterator& iterator) {
  const List* sequence = to_list(runtime, iterator.source);
  const int64_t slices = to_index(iterator.arguments->positional[0]);
  const Value fill_with = iterator.arguments->positional[1];
  if (slices == 0) fail("integer division or modulo by zero");
  List* result = make_list(runtime.arena());
  const auto size = static_cast<int64_t>(sequence->size);
  const int64_t each = slices < 0 ? 0 : size / slices;
  const int64_t extra = slices < 0 ? 0 : size % slices;
  int64_t position = 0;
  for (int64_t i = 0; i < slices; ++i) {
    runtime.budget().step();
    List* part = make_list(runtime.arena());
    const int64_t end = position + each + (i < extra ? 1 : 0);
    for (; position < end; ++position) part->add(runtime.arena(), sequence->items[position]);
    if (!fill_with.is_none() && i >= extra) part->add(runtime.arena(), fill_with);
    result->add(runtime.arena(), Value::of(part));
  }
  return result;
}
Value slice(Runtime& runtime, const Value& value, const Bound& bound) {
  return make_lazy(runtime, value, {{bound[1], bound.value_or(2, Value::none())}, {}}, fill_slices);
}

List* fill_batches(Runtime& runtime, const Iterator& iterator) {
  const Value size = iterator.arguments->positional[0];
  const Value fill_with = iterator.arguments->positional[1];
  const int64_t line = size.is_whole() ? size.whole() : -1;
  List* result = make_list(runtime.arena());
  List* batch = make_list(runtime.arena());
  Cursor cursor(runtime, iterator.source);
  Value item;
  while (cursor.next(item)) {
    if (static_cast<int64_t>(batch->size) == line) {
      result->add(runtime.arena(), Value::of(batch));
      batch = make_list(runtime.arena());
    }
    batch->add(runtime.arena(), item);
  }
  if (batch->size == 0) return result;
  if (!fill_with.is_none()) {
    while (static_cast<int64_t>(batch->size) < to_index(size)) {
      runtime.budget().step();
      batch->add(runtime.arena(), fill_with);
    }
  }
  result->add(runtime.arena(), Value::of(batch));
  return result;
}
Value batch(Runtime& runtime, const Value& value, const Bound& bound) {
  return make_lazy(runtime, value, {{bound[1], bound.value_or(2, Value::none())}, {}}, fill_batches);
}

Value groupby(Runtime& runtime, const Value& value, const Bound& bound) {
  const AttributePath path(runtime, bound[1]);
  const Value given = bound.value_or(2, Value::none());
  const Value otherwise = given.is_none() ? Value::missing() : given;
  const bool lower = !is_true(bound.value_or(3, Value::of(false)));
  std::vector<Keyed> entries;
  Cursor cursor(runtime, value);
  Value item;
  while (cursor.next(item)) entries.push_back({path.get(runtime, item, otherwise, lower), item});
  sort_keyed(runtime, entries, false);
  List* groups = make_list(runtime.arena());
  for (size_t i = 0; i < entries.size();) {
    List* members = make_list(runtime.arena());
    const size_t begin = i;
    for (; i < entries.size() && equal(runtime.budget(), entries[i].key, entries[begin].key); ++i) {
      members->add(runtime.arena(), entries[i].item);
    }
    if (i == begin) members->add(runtime.arena(), entries[i++].item);  // a key that does not equal itself, such as NaN
    Value group =
        make_tuple(runtime.arena(), path.get(runtime, members->items[0], otherwise, false), Value::of(members));
    group.safe = true;  // has the attributes grouper and list
    groups->add(runtime.arena(), group);
  }
  return Value::of(groups);
}

Value attribute(Runtime& runtime, const Value& value, const Bound& bound) {
  const Value name = bound[1];
  if (!name.is_text()) fail("attribute name must be string, not '" + std::string(type_name(name)) + "'");
  require_defined(runtime, value);
  if (!has_attribute(runtime, value, name.string())) return make_undefined(runtime.arena(), value, name);
  return get_attribute(runtime, value, name.string());
}

constexpr Filter kSequenceFilters[] = {
    {"length", {{"len", 1, {"obj"}}, length, nullptr}},
    {"count", {{"len", 1, {"obj"}}, length, nullptr}},
    {"first", {{"sync_do_first", 1, {"seq"}, 1}, first, nullptr}},
    {"last", {{"do_last", 1, {"seq"}, 1}, last, nullptr}},
    {"reverse", {{"do_reverse", 1, {"value"}}, reverse, nullptr}},
    {"list", {{"sync_do_list", 1, {"value"}}, list, nullptr}},
    {"items", {{"do_items", 1, {"value"}}, items, nullptr}},
    {"join", {{"sync_do_join", 1, {"value", "d", "attribute"}, 1}, joined, nullptr}},
    {"default", {{"do_default", 1, {"value", "default_value", "boolean"}}, default_value, nullptr}},
    {"d", {{"do_default", 1, {"value", "default_value", "boolean"}}, default_value, nullptr}},
    {"dictsort", {{"do_dictsort", 1, {"value", "case_sensitive", "by", "reverse"}}, dictsort, nullptr}},
    {"sort", {{"do_sort", 1, {"value", "reverse", "case_sensitive", "attribute"}, 1}, sort, nullptr}},
    {"unique", {{"sync_do_unique", 1, {"value", "case_sensitive", "attribute"}, 1}, unique, nullptr}},
    {"min", {{"do_min", 1, {"value", "case_sensitive", "attribute"}, 1}, min, nullptr}},
    {"max", {{"do_max", 1, {"value", "case_sensitive", "attribute"}, 1}, max, nullptr}},
    {"sum", {{"sync_do_sum", 1, {"iterable", "attribute", "start"}, 1}, sum, nullptr}},
    {"slice", {{"sync_do_slice", 2, {"value", "slices", "fill_with"}}, slice, nullptr}},
    {"batch", {{"do_batch", 2, {"value", "linecount", "fill_with"}}, batch, nullptr}},
    {"groupby", {{"sync_do_groupby", 2, {"value", "attribute", "default", "case_sensitive"}, 1}, groupby, nullptr}},
    {"attr", {{"do_attr", 2, {"obj", "name"}, 1}, attribute, nullptr}},
};

}  // namespace

AttributePath::AttributePath(Runtime& runtime, const Value& attribute) {
  if (attribute.is_none()) return;
  if (!attribute.is_text()) {
    parts_ = {attribute};
    return;
  }
  for (const Value& part : *split(runtime, attribute.text(), Value::of("."), -1, false)) {
    const std::string_view digits = part.string();
    const bool is_number =
        !digits.empty() && digits.size() < 18 && digits.find_first_not_of("0123456789") == digits.npos;
    parts_.push_back(is_number ? Value::of(static_cast<int64_t>(std::stoll(std::string(digits)))) : part);
  }
}

Value AttributePath::get(Runtime& runtime, Value item, const Value& otherwise, bool lower) const {
  for (const Value& part : parts_) {
    runtime.budget().step();
    item = get_item(runtime, item, part);
    if (item.is_undefined() && !otherwise.is(Kind::kMissing)) item = otherwise;
  }
  return lowered(runtime, item, lower);
}

std::span<const Filter> sequence_filters() { return kSequenceFilters; }

}  // namespace mote::jinja
