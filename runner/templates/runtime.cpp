#include "runner/templates/runtime.h"

#include "runner/templates/describe.h"
#include "runner/templates/escapes.h"

namespace mote::jinja {

// For functions that are written in C, Python words errors about arguments differently.
void Bound::check_native(const Signature& signature, const Arguments& arguments) {
  const size_t given = arguments.positional.size();
  const size_t most = signature.size();
  const size_t least = signature.num_required;
  if (!arguments.keywords.empty())
    MOTE_JINJA_FAIL("%s.%s() takes no keyword arguments", signature.owner, signature.function);
  if (most == 0 && given > 0)
    MOTE_JINJA_FAIL("%s.%s() takes no arguments (%zu given)", signature.owner, signature.function, given);
  if (most == 1 && least == 1 && given != 1) {
    MOTE_JINJA_FAIL("%s.%s() takes exactly one argument (%zu given)", signature.owner, signature.function, given);
  }
  if (given >= least && given <= most) return;
  const size_t bound = given < least ? least : most;
  MOTE_JINJA_FAIL("%s expected at %s %zu argument%s, got %zu", signature.function, given < least ? "least" : "most",
                  bound, bound == 1 ? "" : "s", given);
}

Bound::Bound(const Signature& signature, const Value* first, const Arguments& arguments) {
  if (signature.owner != nullptr) check_native(signature, arguments);
  const size_t count = signature.size();
  const size_t num_first = first != nullptr ? 1 : 0;
  const size_t given = arguments.positional.size() + num_first;
  if (given > count) {
    const size_t most = count + signature.num_hidden;
    const size_t least = signature.num_required + signature.num_hidden;
    const size_t total = given + signature.num_hidden;
    const std::string range =
        least == most ? std::to_string(most) : "from " + std::to_string(least) + " to " + std::to_string(most);
    MOTE_JINJA_FAIL("%s() takes %s positional argument%s but %zu %s given", signature.function, range.c_str(),
                    most == 1 ? "" : "s", total, total == 1 ? "was" : "were");
  }
  values_.fill(Value::missing());
  if (first != nullptr) values_[0] = *first;
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i + num_first] = arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) set(signature, count, name, value);
  for (size_t i = 0; i < signature.num_required; ++i) {
    if (has(i)) continue;
    std::string names;
    size_t missing = 0;
    for (size_t j = i; j < signature.num_required; ++j) {
      if (!has(j)) names += (missing++ == 0 ? "'" : " and '") + std::string(signature.names[j]) + "'";
    }
    MOTE_JINJA_FAIL("%s() missing %zu required positional argument%s: %s", signature.function, missing,
                    missing == 1 ? "" : "s", names.c_str());
  }
}

void Bound::set(const Signature& signature, size_t count, const Text& name, const Value& value) {
  for (size_t i = 0; i < count; ++i) {
    if (name.view() != signature.names[i]) continue;
    if (has(i)) MOTE_JINJA_FAIL("%s() got multiple values for argument '%s'", signature.function, signature.names[i]);
    values_[i] = value;
    return;
  }
  MOTE_JINJA_FAIL("%s() got an unexpected keyword argument %s", signature.function, repr_of(name.view()).c_str());
}

Cursor::Cursor(Runtime& runtime, const Value& source) : runtime_(runtime), source_(source) {
  if (!is_iterable(source)) MOTE_JINJA_FAIL("'%s' object is not iterable", type_name(source));
  if (source.is(Kind::kIterator) && source.iterator->items == nullptr) {
    source.iterator->items = source.iterator->fill(runtime, *source.iterator);
  }
}

bool Cursor::next(Value& item) {
  runtime_.budget().step();
  switch (source_.kind) {
    case Kind::kList:
    case Kind::kTuple:
      if (index_ == source_.list->size) return false;
      item = source_.list->items[index_++];
      return true;
    case Kind::kText: {
      if (index_ == source_.size) return false;
      const size_t length = character_at(source_.string(), index_).length;
      Text character = source_.text().part(index_, length);
      character.safe = false;
      item = Value::of(character);
      index_ += length;
      return true;
    }
    case Kind::kDict:
      if (index_ == source_.dict->size) return false;
      item = source_.dict->entries[index_++].key;
      return true;
    case Kind::kDictView: {
      const Dict& dict = *source_.view->dict;
      if (index_ == dict.size) return false;
      const Dict::Entry& entry = dict.entries[index_++];
      item = source_.view->part == DictView::Part::kKeys     ? entry.key
             : source_.view->part == DictView::Part::kValues ? entry.value
                                                             : make_tuple(runtime_.arena(), entry.key, entry.value);
      return true;
    }
    case Kind::kRange:
      if (index_ == source_.range->size) return false;
      item = source_.range->at(index_++);
      return true;
    case Kind::kIterator:
      if (source_.iterator->next == source_.iterator->items->size) return false;
      item = source_.iterator->items->items[source_.iterator->next++];
      return true;
    default: return false;
  }
}

bool is_iterable(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kText:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kIterator: return true;
    default: return false;
  }
}

int64_t length_of(Runtime& runtime, const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined: return 0;
    case Kind::kText: runtime.budget().count(value.size); return static_cast<int64_t>(count_characters(value.string()));
    case Kind::kList:
    case Kind::kTuple: return static_cast<int64_t>(value.list->size);
    case Kind::kDict: return static_cast<int64_t>(value.dict->size);
    case Kind::kDictView: return static_cast<int64_t>(value.view->dict->size);
    case Kind::kRange: return static_cast<int64_t>(value.range->size);
    default: return -1;
  }
}

List* to_list(Runtime& runtime, const Value& value) {
  List* list = make_list(runtime.arena());
  Cursor cursor(runtime, value);
  Value item;
  while (cursor.next(item)) list->add(runtime.arena(), item);
  return list;
}

Value make_iterator(Runtime& runtime, const char* name, List* items) {
  Iterator* iterator = runtime.arena().make<Iterator>();
  iterator->type_name = name;
  iterator->items = items;
  return Value::of(Kind::kIterator, iterator);
}

int64_t to_index(const Value& value) {
  if (!value.is_whole()) MOTE_JINJA_FAIL("'%s' object cannot be interpreted as an integer", type_name(value));
  return value.whole();
}

void fail_undefined(Runtime& runtime, const Value& value) { fail(undefined_message(runtime, value)); }

}  // namespace mote::jinja
