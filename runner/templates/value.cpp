#include "runner/templates/value.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "runner/templates/describe.h"

namespace mote::jinja {
namespace {

constexpr size_t kFewEntries = 8;
constexpr int kMaxDataDepth = 64;
constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;

void check_depth(int depth) {
  if (depth > kMaxDataDepth) MOTE_JINJA_FAIL("a value nests deeper than %d", kMaxDataDepth);
}

uint64_t mix(uint64_t state, uint64_t word) {
  const unsigned __int128 product = static_cast<unsigned __int128>(state ^ word) * kMultiplier;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Differs in each process, so that nobody can prepare keys that collide.
uint64_t seed() {
  static const uint64_t value = mix(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                                    reinterpret_cast<uintptr_t>(&value) | 1);
  return value;
}

uint64_t hash_text(std::string_view text) {
  uint64_t state = seed() ^ text.size();
  while (text.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    state = mix(state, word) + kMultiplier;
    text.remove_prefix(8);
  }
  uint64_t word = 0;
  if (!text.empty()) std::memcpy(&word, text.data(), text.size());
  return mix(state, word);
}

uint64_t hash_number(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return mix(seed(), bits);
}

bool equal_sequences(Budget& budget, const List& a, const List& b, int depth) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; ++i) {
    if (!equal(budget, a.items[i], b.items[i], depth + 1)) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b, int depth) {
  if (a.size != b.size) return false;
  for (const Dict::Entry& entry : a) {
    const Value* other = b.find(budget, entry.key);
    if (other == nullptr || !equal(budget, entry.value, *other, depth + 1)) return false;
  }
  return true;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.whole() == b.whole();
  if (a.kind == Kind::kFloat && b.kind == Kind::kFloat) return a.real == b.real;
  const double real = a.kind == Kind::kFloat ? a.real : b.real;
  const int64_t whole = a.kind == Kind::kFloat ? b.whole() : a.whole();
  return std::floor(real) == real && real >= -0x1p63 && real < 0x1p63 && static_cast<int64_t>(real) == whole;
}

}  // namespace

const Marks kAllMarked{};

bool Text::is_marked() const {
  if (marks == nullptr || size == 0) return false;
  if (marks == &kAllMarked) return true;
  return std::any_of(marks->ranges, marks->ranges + marks->count,
                     [this](const MarkRange& range) { return range.begin < data + size && range.end > data; });
}

void List::add(Arena& arena, const Value& value) {
  if (size == capacity) {
    const size_t wanted = capacity == 0 ? 4 : capacity * 2;
    items = static_cast<Value*>(arena.grow(items, capacity * sizeof(Value), wanted * sizeof(Value)));
    capacity = wanted;
  }
  new (items + size++) Value(value);
}

template <typename Match>
Dict::Entry* Dict::find_entry(uint64_t hash, Match match) const {
  if (index == nullptr) {
    for (size_t i = 0; i < size; ++i) {
      if (entries[i].hash == hash && match(entries[i].key)) return entries + i;
    }
    return nullptr;
  }
  for (size_t slot = hash & (index_size - 1); index[slot] != 0; slot = (slot + 1) & (index_size - 1)) {
    Entry& entry = entries[index[slot] - 1];
    if (entry.hash == hash && match(entry.key)) return &entry;
  }
  return nullptr;
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  const uint64_t hash = hash_of(budget, key);
  const Entry* entry = find_entry(hash, [&](const Value& other) { return equal(budget, other, key); });
  return entry == nullptr ? nullptr : &entry->value;
}

const Value* Dict::find(std::string_view key) const {
  const Entry* entry =
      find_entry(hash_text(key), [&](const Value& other) { return other.is_text() && other.string() == key; });
  return entry == nullptr ? nullptr : &entry->value;
}

void Dict::rebuild_index(Arena& arena) {
  index_size = 32;
  while (index_size < capacity * 2) index_size *= 2;
  index = arena.make_array<uint32_t>(index_size);
  for (size_t i = 0; i < size; ++i) {
    size_t slot = entries[i].hash & (index_size - 1);
    while (index[slot] != 0) slot = (slot + 1) & (index_size - 1);
    index[slot] = static_cast<uint32_t>(i + 1);
  }
}

void Dict::set(Arena& arena, const Value& key, const Value& value) {
  Budget& budget = arena.budget();
  const uint64_t hash = hash_of(budget, key);
  const auto is_key = [&](const Value& other) { return equal(budget, other, key); };
  if (Entry* entry = find_entry(hash, is_key); entry != nullptr) {
    entry->value = value;
    return;
  }
  if (size == capacity) {
    const size_t wanted = capacity == 0 ? 4 : capacity * 2;
    entries = static_cast<Entry*>(arena.grow(entries, capacity * sizeof(Entry), wanted * sizeof(Entry)));
    capacity = wanted;
  }
  new (entries + size++) Entry{key, value, hash};
  if (size <= kFewEntries) return;
  if (index == nullptr || size * 2 > index_size) {
    rebuild_index(arena);
  } else {
    size_t slot = hash & (index_size - 1);
    while (index[slot] != 0) slot = (slot + 1) & (index_size - 1);
    index[slot] = static_cast<uint32_t>(size);
  }
}

uint64_t hash_of(Budget& budget, const Value& value, int depth) {
  check_depth(depth);
  if (value.is_text()) budget.scan(value.size);
  switch (value.kind) {
    case Kind::kText: return hash_text(value.string());
    case Kind::kNone:
    case Kind::kMissing:
    case Kind::kUndefined: return mix(seed(), static_cast<uint64_t>(value.kind));
    case Kind::kBool:
    case Kind::kInteger:
    case Kind::kFloat: {
      const double real = value.number();
      const bool is_exact =
          value.kind == Kind::kFloat || (real < 0x1p63 && static_cast<int64_t>(real) == value.whole());
      return is_exact ? hash_number(real == 0 ? 0.0 : real) : mix(seed(), static_cast<uint64_t>(value.whole()));
    }
    case Kind::kTuple: {
      uint64_t state = seed();
      budget.step(value.list->size);
      for (const Value& item : *value.list) state = mix(state, hash_of(budget, item, depth + 1));
      return state;
    }
    case Kind::kList:
    case Kind::kDict: MOTE_JINJA_FAIL("unhashable type: '%s'", type_name(value));
    default: return mix(seed(), reinterpret_cast<uintptr_t>(value.object));
  }
}

bool equal(Budget& budget, const Value& a, const Value& b, int depth) {
  check_depth(depth);
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kText: budget.scan(std::min(a.size, b.size)); return a.string() == b.string();
    case Kind::kNone:
    case Kind::kMissing:
    case Kind::kUndefined: return true;
    case Kind::kList:
    case Kind::kTuple:
      if (a.list == b.list) return true;
      budget.step(a.list->size);
      return equal_sequences(budget, *a.list, *b.list, depth);
    case Kind::kDict:
      if (a.dict == b.dict) return true;
      budget.step(a.dict->size);
      return equal_dicts(budget, *a.dict, *b.dict, depth);
    case Kind::kRange:
      return a.range->size == b.range->size &&
             (a.range->size == 0 ||
              (a.range->start == b.range->start && (a.range->size == 1 || a.range->step == b.range->step)));
    default: return a.object == b.object;
  }
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool: return value.boolean;
    case Kind::kInteger: return value.integer != 0;
    case Kind::kFloat: return value.real != 0;
    case Kind::kText: return value.size != 0;
    case Kind::kList:
    case Kind::kTuple: return value.list->size != 0;
    case Kind::kDict: return value.dict->size != 0;
    case Kind::kDictView: return value.view->dict->size != 0;
    case Kind::kRange: return value.range->size != 0;
    case Kind::kLoop: return true;
    default: return true;
  }
}

List* make_list(Arena& arena, size_t capacity) {
  List* list = arena.make<List>();
  if (capacity > 0) {
    list->items = arena.make_array<Value>(capacity);
    list->capacity = capacity;
  }
  return list;
}

Dict* make_dict(Arena& arena) { return arena.make<Dict>(); }

Value make_tuple(Arena& arena, const Value& a, const Value& b) {
  List* list = make_list(arena, 2);
  list->add(arena, a);
  list->add(arena, b);
  return Value::of(list, true);
}

Value make_undefined(Arena& arena, const Value& object, const Value& name) {
  return Value::of(Kind::kUndefined, arena.make<Undefined>(Undefined{Text(), object, name}));
}

Value make_undefined_name(Arena& arena, std::string_view name) {
  return make_undefined(arena, Value::missing(), Value::of(Text(name)));
}

Value make_undefined_hint(Arena& arena, std::string_view hint) {
  return Value::of(Kind::kUndefined,
                   arena.make<Undefined>(Undefined{copy_text(arena, hint), Value::missing(), Value::none()}));
}

Text copy_text(Arena& arena, std::string_view text, const Marks* marks) {
  char* data = arena.characters(text.size());
  if (!text.empty()) std::memcpy(data, text.data(), text.size());
  return {data, text.size(), text.empty() ? nullptr : marks};
}

}  // namespace mote::jinja
