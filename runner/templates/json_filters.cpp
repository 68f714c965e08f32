// tojson with the arguments that transformers gives it. Source: Python json.dumps
#include <algorithm>
#include <cmath>

#include "runner/templates/describe.h"
#include "runner/templates/escapes.h"
#include "runner/templates/filters.h"
#include "runner/templates/operators.h"

namespace mote::jinja {
namespace {

struct Style {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool has_indent = false;
  Text indent;
  Text item_separator;
  Text key_separator;
};

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const Style& style) : runtime_(runtime), style_(style), out_(runtime.arena()) {}

  Text run(const Value& value) {
    add(value, 0);
    return out_.finish();
  }

 private:
  void add(const Value& value, int depth) {
    const int max_depth = runtime_.budget().limits().max_data_depth;
    if (depth > max_depth) MOTE_JINJA_FAIL("a value for tojson nests deeper than %d", max_depth);
    runtime_.budget().step();
    switch (value.kind) {
      case Kind::kNone: return out_.add("null", false);
      case Kind::kBool: return out_.add(value.boolean ? "true" : "false", false);
      case Kind::kInteger: return out_.add(std::to_string(value.integer), false);
      case Kind::kFloat: return out_.add(float_text(value.real), false);
      case Kind::kText: return add_quoted(value.text());
      case Kind::kList:
      case Kind::kTuple: return add_list(*value.list, depth);
      case Kind::kDict: return add_dict(*value.dict, depth);
      default: MOTE_JINJA_FAIL("Object of type %s is not JSON serializable", type_name(value));
    }
  }

  static std::string float_text(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_repr(value);
  }

  void add_quoted(const Text& text) {
    out_.add('"');
    const bool ensure_ascii = style_.ensure_ascii;
    out_.add_mapped(
        text, [ensure_ascii](std::string& buffer, char32_t c) { append_json_character(buffer, c, ensure_ascii); });
    out_.add('"');
  }

  void add_line(int depth) {
    if (!style_.has_indent) return;
    out_.add('\n');
    for (int i = 0; i < depth; ++i) out_.add(style_.indent);
  }

  void add_list(const List& list, int depth) {
    out_.add('[');
    for (size_t i = 0; i < list.size; ++i) {
      if (i > 0) out_.add(style_.item_separator);
      add_line(depth + 1);
      add(list.items[i], depth + 1);
    }
    if (list.size > 0) add_line(depth);
    out_.add(']');
  }

  void add_key(const Value& key) {
    switch (key.kind) {
      case Kind::kText: return add_quoted(key.text());
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInteger:
      case Kind::kFloat:
        out_.add('"');
        add(key, 0);
        return out_.add('"');
      default: MOTE_JINJA_FAIL("keys must be str, int, float, bool or None, not %s", type_name(key));
    }
  }

  void add_dict(const Dict& dict, int depth) {
    std::vector<const Dict::Entry*> entries;
    entries.reserve(dict.size);
    for (const Dict::Entry& entry : dict) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [this](const Dict::Entry* a, const Dict::Entry* b) {
        runtime_.budget().step();
        return is_less(runtime_, a->key, b->key);
      });
    }
    out_.add('{');
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator);
      add_line(depth + 1);
      add_key(entries[i]->key);
      out_.add(style_.key_separator);
      add(entries[i]->value, depth + 1);
    }
    if (dict.size > 0) add_line(depth);
    out_.add('}');
  }

  Runtime& runtime_;
  const Style& style_;
  TextBuilder out_;
};

Value tojson(Runtime& runtime, const Value& value, const Bound& bound) {
  Style style;
  style.ensure_ascii = is_true(bound.value_or(1, Value::of(false)));
  style.sort_keys = is_true(bound.value_or(4, Value::of(false)));
  const Value indent = bound.value_or(2, Value::none());
  style.has_indent = !indent.is_none();
  if (indent.is_text()) {
    style.indent = indent.text();
  } else if (style.has_indent) {
    const int64_t width = std::clamp<int64_t>(to_index(indent), 0, 1 << 16);
    style.indent = copy_text(runtime.arena(), std::string(static_cast<size_t>(width), ' '));
  }
  style.item_separator = style.has_indent ? "," : ", ";
  style.key_separator = ": ";
  if (const Value separators = bound.value_or(3, Value::none()); !separators.is_none()) {
    const List* pair = to_list(runtime, separators);
    if (pair->size < 2) MOTE_JINJA_FAIL("not enough values to unpack (expected 2, got %zu)", pair->size);
    if (pair->size > 2) fail("too many values to unpack (expected 2)");
    style.item_separator = to_text(runtime, pair->items[0]);
    style.key_separator = to_text(runtime, pair->items[1]);
  }
  return Value::of(JsonWriter(runtime, style).run(value));
}

constexpr Filter kJsonFilters[] = {
    {"tojson",
     {{"_cached_compile_jinja_template.<locals>.tojson", 1, {"x", "ensure_ascii", "indent", "separators", "sort_keys"}},
      tojson,
      nullptr}},
};

}  // namespace

std::span<const Filter> json_filters() { return kJsonFilters; }

}  // namespace mote::jinja
