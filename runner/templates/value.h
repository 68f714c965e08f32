// Values of templates, with Python's meaning. All of them live in an Arena and nothing in them is freed on its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "runner/templates/arena.h"

namespace mote::jinja {

// A part of a text that came from the input and not from the template.
struct MarkRange {
  const char* begin = nullptr;
  const char* end = nullptr;
};

// Marks of a buffer. Texts that are parts of the buffer share them, because ranges are addresses.
struct Marks {
  const MarkRange* ranges = nullptr;  // ascending, apart from each other
  size_t count = 0;
};
extern const Marks kAllMarked;

struct Value;
struct List;
struct Dict;

// UTF-8, not owned.
struct Text {
  const char* data = "";
  size_t size = 0;
  const Marks* marks = nullptr;  // nullptr: all of it is the template's
  bool safe = false;             // markupsafe's Markup

  Text() = default;
  Text(std::string_view text) : data(text.data()), size(text.size()) {}  // NOLINT(google-explicit-constructor)
  Text(const char* text) : Text(std::string_view(text)) {}               // NOLINT(google-explicit-constructor)
  Text(const char* begin, size_t length, const Marks* text_marks, bool is_safe = false)
      : data(begin), size(length), marks(text_marks), safe(is_safe) {}

  std::string_view view() const { return {data, size}; }
  Text part(size_t begin, size_t length) const { return {data + begin, length, length == 0 ? nullptr : marks, safe}; }
  bool is_marked() const;  // any of it
};

enum class Kind : uint8_t {
  kMissing,  // a variable that was never set; turns into kUndefined when it is read
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kIterator,
  kNamespace,
  kMacro,
  kFunction,
  kMethod,
  kLoop,
  kCycler,
  kJoiner,
};

struct Undefined;
struct DictView;
struct Range;
struct Iterator;
struct Namespace;
struct Macro;
struct Function;
struct Method;
struct Loop;
struct Cycler;
struct Joiner;

struct Value {
  Kind kind = Kind::kNone;
  bool safe = false;
  union {
    bool boolean;
    int64_t integer = 0;
    double real;
    const char* data;
    const Undefined* undefined;
    List* list;
    Dict* dict;
    const DictView* view;
    const Range* range;
    Iterator* iterator;
    Namespace* space;
    const Macro* macro;
    const Function* function;
    const Method* method;
    Loop* loop;
    Cycler* cycler;
    Joiner* joiner;
    const void* object;
  };
  size_t size = 0;
  const Marks* marks = nullptr;

  Value() {}
  static Value none() { return {}; }
  static Value missing() { return of(Kind::kMissing); }
  static Value of(bool value) {
    Value result = of(Kind::kBool);
    result.boolean = value;
    return result;
  }
  static Value of(int64_t value) {
    Value result = of(Kind::kInteger);
    result.integer = value;
    return result;
  }
  static Value of(size_t value) { return of(static_cast<int64_t>(value)); }
  static Value of(int value) { return of(static_cast<int64_t>(value)); }
  static Value of(double value) {
    Value result = of(Kind::kFloat);
    result.real = value;
    return result;
  }
  static Value of(const Text& text) {
    Value result = of(Kind::kText);
    result.safe = text.safe;
    result.data = text.data;
    result.size = text.size;
    result.marks = text.marks;
    return result;
  }
  static Value of(const char* text) { return of(Text(text)); }
  static Value of(Kind kind, const void* object) {
    Value result = of(kind);
    result.object = object;
    return result;
  }
  static Value of(List* list, bool is_tuple = false) { return of(is_tuple ? Kind::kTuple : Kind::kList, list); }
  static Value of(Dict* dict) { return of(Kind::kDict, dict); }

  bool is(Kind other) const { return kind == other; }
  bool is_text() const { return kind == Kind::kText; }
  bool is_undefined() const { return kind == Kind::kUndefined; }
  bool is_none() const { return kind == Kind::kNone; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  bool is_whole() const { return kind == Kind::kInteger || kind == Kind::kBool; }
  bool is_number() const { return is_whole() || kind == Kind::kFloat; }
  int64_t whole() const { return kind == Kind::kBool ? boolean : integer; }
  double number() const { return kind == Kind::kFloat ? real : static_cast<double>(whole()); }
  Text text() const { return {data, size, marks, safe}; }
  std::string_view string() const { return {data, size}; }

 private:
  static Value of(Kind kind) {
    Value result;
    result.kind = kind;
    return result;
  }
};

struct Undefined {
  Text hint;     // the whole message, unless empty
  Value object;  // what has no attribute `name`; kMissing: `name` is a variable
  Value name;
};

struct List {
  Value* items = nullptr;
  size_t size = 0;
  size_t capacity = 0;

  void add(Arena& arena, const Value& value);
  const Value* begin() const { return items; }
  const Value* end() const { return items + size; }
};

// Keeps the order of insertion.
struct Dict {
  struct Entry {
    Value key;
    Value value;
    uint64_t hash = 0;
  };
  Entry* entries = nullptr;
  size_t size = 0;
  size_t capacity = 0;
  uint32_t* index = nullptr;  // open addressing: entry + 1, or 0 if free; nullptr while there are few entries
  size_t index_size = 0;

  // nullptr if there is none. Errors: throws for keys that Python cannot hash.
  const Value* find(Budget& budget, const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Arena& arena, const Value& key, const Value& value);
  const Entry* begin() const { return entries; }
  const Entry* end() const { return entries + size; }

 private:
  template <typename Match>
  Entry* find_entry(uint64_t hash, Match match) const;
  void rebuild_index(Arena& arena);
};

struct DictView {
  enum class Part : uint8_t { kKeys, kValues, kItems };
  Dict* dict = nullptr;
  Part part = Part::kKeys;
};

struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  size_t size = 0;
  Value at(size_t index) const { return Value::of(start + static_cast<int64_t>(index) * step); }
};

struct Namespace {
  Dict* attributes = nullptr;
};

struct Cycler {
  List* items = nullptr;
  size_t position = 0;
};

struct Joiner {
  Text separator;
  bool used = false;
};

// Python's hash and ==. Errors: throws Error for what cannot be hashed, and when data nests too deeply.
uint64_t hash_of(Budget& budget, const Value& value, int depth = 0);
bool equal(Budget& budget, const Value& a, const Value& b, int depth = 0);
bool is_true(const Value& value);

List* make_list(Arena& arena, size_t capacity = 0);
Dict* make_dict(Arena& arena);
Value make_tuple(Arena& arena, const Value& a, const Value& b);
Value make_undefined(Arena& arena, const Value& object, const Value& name);
Value make_undefined_name(Arena& arena, std::string_view name);
Value make_undefined_hint(Arena& arena, std::string_view hint);
// A copy in the arena.
Text copy_text(Arena& arena, std::string_view text, const Marks* marks = nullptr);

}  // namespace mote::jinja
