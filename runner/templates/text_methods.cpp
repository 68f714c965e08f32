#include "runner/templates/text_methods.h"

#include <algorithm>
#include <unordered_map>

#include "base/utf8.h"
#include "runner/templates/attributes.h"
#include "runner/templates/describe.h"
#include "runner/templates/operators.h"
#include "runner/templates/search.h"

namespace mote::jinja {
namespace {

Text text_argument(const Value& value) {
  if (!value.is_text()) MOTE_JINJA_FAIL("must be str, not %s", type_name(value));
  return value.text();
}

Value with_safety(Text text, const Value& self) {
  text.safe = self.safe;
  return Value::of(text);
}

Value upper(Runtime& runtime, const Value& self, const Bound&) { return Value::of(to_upper(runtime, self.text())); }
Value lower(Runtime& runtime, const Value& self, const Bound&) { return Value::of(to_lower(runtime, self.text())); }
Value capitalized(Runtime& runtime, const Value& self, const Bound&) {
  return Value::of(capitalize(runtime, self.text()));
}

Value casefold(Runtime& runtime, const Value& self, const Bound&) {
  TextBuilder out(runtime.arena());
  out.add_mapped(self.text(), append_folded);
  return with_safety(out.finish(), self);
}

Value swapcase(Runtime& runtime, const Value& self, const Bound&) {
  TextBuilder out(runtime.arena());
  out.add_mapped(self.text(),
                 [](std::string& text, char32_t c) { is_upper(c) ? append_lower(text, c) : append_upper(text, c); });
  return with_safety(out.finish(), self);
}

Value title(Runtime& runtime, const Value& self, const Bound&) {
  TextBuilder out(runtime.arena());
  bool previous_is_cased = false;
  out.add_mapped(self.text(), [&](std::string& text, char32_t c) {
    previous_is_cased ? append_lower(text, c) : append_title(text, c);
    previous_is_cased = is_cased(c);
  });
  return with_safety(out.finish(), self);
}

Value strip_both(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(strip(runtime, self.text(), bound.value_or(0, Value::none()), true, true));
}
Value strip_left(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(strip(runtime, self.text(), bound.value_or(0, Value::none()), true, false));
}
Value strip_right(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(strip(runtime, self.text(), bound.value_or(0, Value::none()), false, true));
}

Value split_left(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(
      split(runtime, self.text(), bound.value_or(0, Value::none()), to_index(bound.value_or(1, Value::of(-1))), false));
}
Value split_from_right(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(
      split(runtime, self.text(), bound.value_or(0, Value::none()), to_index(bound.value_or(1, Value::of(-1))), true));
}
Value splitlines(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(split_lines(runtime, self.text(), is_true(bound.value_or(0, Value::of(false)))));
}

// The bytes of self between the character positions of bound[first] and bound[first + 1].
struct Window {
  size_t begin = 0;
  size_t end = 0;
  bool is_empty_beyond = false;  // start lies behind the text or behind stop
};

Window window_of(Runtime& runtime, const Value& self, const Bound& bound, size_t first) {
  if (!bound.has(first)) return {0, self.size, false};
  const int64_t length = length_of(runtime, self);
  const auto position = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    const int64_t index = to_index(value);
    return index < 0 ? std::max<int64_t>(std::max(index, -length) + length, 0) : index;
  };
  const int64_t start = position(bound[first], 0);
  const int64_t stop = std::min(position(bound.value_or(first + 1, Value::none()), length), length);
  if (start > length || start > stop) return {0, 0, true};
  return {offset_of_character(self.string(), static_cast<size_t>(start)),
          offset_of_character(self.string(), static_cast<size_t>(stop)), false};
}

// Position of bound[0] in self, in characters; -1: none.
int64_t position_of(Runtime& runtime, const Value& self, const Bound& bound, bool last) {
  const Text wanted = text_argument(bound[0]);
  const Window window = window_of(runtime, self, bound, 1);
  if (window.is_empty_beyond) return -1;
  const std::string_view part = self.string().substr(window.begin, window.end - window.begin);
  const size_t found =
      last ? find_last_text(runtime.budget(), part, wanted.view()) : find_text(runtime.budget(), part, wanted.view());
  if (found == part.npos) return -1;
  return static_cast<int64_t>(count_characters(self.string().substr(0, window.begin + found)));
}

Value find(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(position_of(runtime, self, bound, false));
}
Value rfind(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(position_of(runtime, self, bound, true));
}

Value require_position(int64_t position) {
  if (position < 0) fail("substring not found");
  return Value::of(position);
}
Value index(Runtime& runtime, const Value& self, const Bound& bound) {
  return require_position(position_of(runtime, self, bound, false));
}
Value rindex(Runtime& runtime, const Value& self, const Bound& bound) {
  return require_position(position_of(runtime, self, bound, true));
}

Value count(Runtime& runtime, const Value& self, const Bound& bound) {
  const Text wanted = text_argument(bound[0]);
  const Window window = window_of(runtime, self, bound, 1);
  if (window.is_empty_beyond) return Value::of(0);
  const std::string_view part = self.string().substr(window.begin, window.end - window.begin);
  if (wanted.size == 0) return Value::of(count_characters(part) + 1);
  int64_t found = 0;
  for (size_t i = 0; (i = find_text(runtime.budget(), part, wanted.view(), i)) != part.npos; i += wanted.size) ++found;
  return Value::of(found);
}

Value has_affix(Runtime& runtime, const Value& self, const Bound& bound, bool at_start) {
  const Window window = window_of(runtime, self, bound, 1);
  const std::string_view part = self.string().substr(window.begin, window.end - window.begin);
  const auto matches = [&](const Value& affix) {
    runtime.budget().scan(affix.size);
    return !window.is_empty_beyond && (at_start ? part.starts_with(affix.string()) : part.ends_with(affix.string()));
  };
  const char* name = at_start ? "startswith" : "endswith";
  if (bound[0].is_text()) return Value::of(matches(bound[0]));
  if (!bound[0].is(Kind::kTuple)) {
    MOTE_JINJA_FAIL("%s first arg must be str or a tuple of str, not %s", name, type_name(bound[0]));
  }
  for (const Value& affix : *bound[0].list) {
    runtime.budget().step();
    if (!affix.is_text()) MOTE_JINJA_FAIL("tuple for %s must only contain str, not %s", name, type_name(affix));
    if (matches(affix)) return Value::of(true);
  }
  return Value::of(false);
}
Value startswith(Runtime& runtime, const Value& self, const Bound& bound) {
  return has_affix(runtime, self, bound, true);
}
Value endswith(Runtime& runtime, const Value& self, const Bound& bound) {
  return has_affix(runtime, self, bound, false);
}

Value removeprefix(Runtime&, const Value& self, const Bound& bound) {
  const Text prefix = text_argument(bound[0]);
  if (!self.string().starts_with(prefix.view())) return self;
  return Value::of(self.text().part(prefix.size, self.size - prefix.size));
}
Value removesuffix(Runtime&, const Value& self, const Bound& bound) {
  const Text suffix = text_argument(bound[0]);
  if (!self.string().ends_with(suffix.view())) return self;
  return Value::of(self.text().part(0, self.size - suffix.size));
}

Value replace_method(Runtime& runtime, const Value& self, const Bound& bound) {
  for (size_t i = 0; i < 2; ++i) {
    if (!bound[i].is_text()) MOTE_JINJA_FAIL("replace() argument %zu must be str, not %s", i + 1, type_name(bound[i]));
  }
  const Text new_text = self.safe ? escape_html(runtime, bound[1].text()) : bound[1].text();
  return Value::of(
      replace(runtime, self.text(), bound[0].text(), new_text, to_index(bound.value_or(2, Value::of(-1)))));
}

Value join_method(Runtime& runtime, const Value& self, const Bound& bound) {
  if (!self.safe) return Value::of(join(runtime, self.text(), bound[0], false));
  List* escaped = make_list(runtime.arena());
  Cursor cursor(runtime, bound[0]);
  Value item;
  while (cursor.next(item)) escaped->add(runtime.arena(), Value::of(escape_html(runtime, to_soft_text(runtime, item))));
  return with_safety(join(runtime, self.text(), Value::of(escaped), false), self);
}

Text fill_argument(const Bound& bound) {
  const Value fill = bound.value_or(1, Value::of(" "));
  if (!fill.is_text() || count_characters(fill.string()) != 1)
    fail("The fill character must be exactly one character long");
  return fill.text();
}

Value center_method(Runtime& runtime, const Value& self, const Bound& bound) {
  return Value::of(center(runtime, self.text(), to_index(bound[0]), fill_argument(bound)));
}

Value justify(Runtime& runtime, const Value& self, const Bound& bound, bool left) {
  const int64_t missing = to_index(bound[0]) - length_of(runtime, self);
  if (missing <= 0) return self;
  const Text fill = fill_argument(bound);
  runtime.budget().step(static_cast<uint64_t>(missing) / 16);
  TextBuilder out(runtime.arena());
  if (left) out.add(self.text());
  for (int64_t i = 0; i < missing; ++i) out.add(fill);
  if (!left) out.add(self.text());
  return with_safety(out.finish(), self);
}
Value ljust(Runtime& runtime, const Value& self, const Bound& bound) { return justify(runtime, self, bound, true); }
Value rjust(Runtime& runtime, const Value& self, const Bound& bound) { return justify(runtime, self, bound, false); }

Value zfill(Runtime& runtime, const Value& self, const Bound& bound) {
  const int64_t missing = to_index(bound[0]) - length_of(runtime, self);
  if (missing <= 0) return self;
  runtime.budget().step(static_cast<uint64_t>(missing) / 16);
  const size_t sign = self.size > 0 && (self.data[0] == '-' || self.data[0] == '+') ? 1 : 0;
  TextBuilder out(runtime.arena());
  out.add(self.text().part(0, sign));
  for (int64_t i = 0; i < missing; ++i) out.add('0');
  out.add(self.text().part(sign, self.size - sign));
  return with_safety(out.finish(), self);
}

Value expandtabs(Runtime& runtime, const Value& self, const Bound& bound) {
  const int64_t size = std::min<int64_t>(to_index(bound.value_or(0, Value::of(8))), 1 << 16);
  TextBuilder out(runtime.arena());
  int64_t column = 0;
  out.add_mapped(self.text(), [&](std::string& text, char32_t c) {
    if (c == '\t') {
      const int64_t width = size > 0 ? size - column % size : 0;
      text.append(static_cast<size_t>(width), ' ');
      column += width;
    } else {
      append_utf8(text, c);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  });
  return with_safety(out.finish(), self);
}

Value cut(Runtime& runtime, const Value& self, const Bound& bound, bool last) {
  const Text separator = text_argument(bound[0]);
  if (separator.size == 0) fail("empty separator");
  const size_t found = last ? find_last_text(runtime.budget(), self.string(), separator.view())
                            : find_text(runtime.budget(), self.string(), separator.view());
  List* parts = make_list(runtime.arena(), 3);
  const Text text = self.text();
  const bool is_whole = found == std::string_view::npos;
  const size_t begin = is_whole ? (last ? 0 : text.size) : found;
  const size_t end = is_whole ? begin : found + separator.size;
  parts->add(runtime.arena(), Value::of(text.part(0, begin)));
  parts->add(runtime.arena(), Value::of(text.part(begin, end - begin)));
  parts->add(runtime.arena(), Value::of(text.part(end, text.size - end)));
  return Value::of(parts, true);
}
Value partition(Runtime& runtime, const Value& self, const Bound& bound) { return cut(runtime, self, bound, false); }
Value rpartition(Runtime& runtime, const Value& self, const Bound& bound) { return cut(runtime, self, bound, true); }

template <bool (*holds)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const Bound&) {
  runtime.budget().scan_slowly(self.size);
  for (size_t i = 0; i < self.size;) {
    const Character character = character_at(self.string(), i);
    if (!holds(character.code)) return Value::of(false);
    i += character.length;
  }
  return Value::of(self.size > 0);
}

bool is_ascii_character(char32_t c) { return c < 0x80; }
Value is_ascii(Runtime& runtime, const Value& self, const Bound& bound) {
  return self.size == 0 ? Value::of(true) : all_are<is_ascii_character>(runtime, self, bound);
}
Value isprintable(Runtime& runtime, const Value& self, const Bound& bound) {
  return self.size == 0 ? Value::of(true) : all_are<is_printable>(runtime, self, bound);
}
Value isidentifier(Runtime&, const Value& self, const Bound&) { return Value::of(is_identifier(self.string())); }
Value islower(Runtime& runtime, const Value& self, const Bound&) {
  return Value::of(is_lower_case(runtime, self.text()));
}
Value isupper(Runtime& runtime, const Value& self, const Bound&) {
  return Value::of(is_upper_case(runtime, self.text()));
}

Value istitle(Runtime& runtime, const Value& self, const Bound&) {
  runtime.budget().scan_slowly(self.size);
  bool found = false;
  bool previous_is_cased = false;
  for (size_t i = 0; i < self.size;) {
    const Character character = character_at(self.string(), i);
    const bool starts = is_upper(character.code) || is_title(character.code);
    if ((starts && previous_is_cased) || (is_lower(character.code) && !previous_is_cased)) return Value::of(false);
    previous_is_cased = is_cased(character.code);
    found = found || previous_is_cased;
    i += character.length;
  }
  return Value::of(found);
}

Value format_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return with_safety(brace_format(runtime, self.text(), arguments), self);
}

Value format_map(Runtime& runtime, const Value& self, const Bound& bound) {
  if (!bound[0].is(Kind::kDict)) MOTE_JINJA_FAIL("'%s' object is not a mapping", type_name(bound[0]));
  Arguments arguments;
  for (const Dict::Entry& entry : *bound[0].dict) {
    if (entry.key.is_text()) arguments.keywords.emplace_back(entry.key.text(), entry.value);
  }
  return with_safety(brace_format(runtime, self.text(), arguments), self);
}

constexpr Function method(const char* name, Value (*call)(Runtime&, const Value&, const Bound&), size_t required = 0,
                          std::array<const char*, 8> names = {}) {
  return {{name, required, names, 0, "str"}, call, nullptr};
}

// The few that take keywords.
constexpr Function method_with_keywords(const char* name, Value (*call)(Runtime&, const Value&, const Bound&),
                                        std::array<const char*, 8> names) {
  return {{name, 0, names}, call, nullptr};
}

constexpr Function kMethods[] = {
    method("upper", upper),
    method("lower", lower),
    method("capitalize", capitalized),
    method("casefold", casefold),
    method("swapcase", swapcase),
    method("title", title),
    method("strip", strip_both, 0, {"chars"}),
    method("lstrip", strip_left, 0, {"chars"}),
    method("rstrip", strip_right, 0, {"chars"}),
    method_with_keywords("split", split_left, {"sep", "maxsplit"}),
    method_with_keywords("rsplit", split_from_right, {"sep", "maxsplit"}),
    method_with_keywords("splitlines", splitlines, {"keepends"}),
    method("find", find, 1, {"sub", "start", "end"}),
    method("rfind", rfind, 1, {"sub", "start", "end"}),
    method("index", index, 1, {"sub", "start", "end"}),
    method("rindex", rindex, 1, {"sub", "start", "end"}),
    method("count", count, 1, {"sub", "start", "end"}),
    method("startswith", startswith, 1, {"prefix", "start", "end"}),
    method("endswith", endswith, 1, {"suffix", "start", "end"}),
    method("removeprefix", removeprefix, 1, {"prefix"}),
    method("removesuffix", removesuffix, 1, {"suffix"}),
    method("replace", replace_method, 2, {"old", "new", "count"}),
    method("join", join_method, 1, {"iterable"}),
    method("center", center_method, 1, {"width", "fillchar"}),
    method("ljust", ljust, 1, {"width", "fillchar"}),
    method("rjust", rjust, 1, {"width", "fillchar"}),
    method("zfill", zfill, 1, {"width"}),
    method_with_keywords("expandtabs", expandtabs, {"tabsize"}),
    method("partition", partition, 1, {"sep"}),
    method("rpartition", rpartition, 1, {"sep"}),
    method("isalpha", all_are<is_alpha>),
    method("isalnum", all_are<is_alphanumeric>),
    method("isdecimal", all_are<is_decimal>),
    method("isdigit", all_are<is_digit_character>),
    method("isnumeric", all_are<is_numeric>),
    method("isspace", all_are<is_space>),
    method("isascii", is_ascii),
    method("isprintable", isprintable),
    method("isidentifier", isidentifier),
    method("islower", islower),
    method("isupper", isupper),
    method("istitle", istitle),
    method("format_map", format_map, 1, {"mapping"}),
    {{"format", 0, {}}, nullptr, format_method},
};

}  // namespace

const Function* find_text_method(std::string_view name) {
  static const auto& table = *[] {  // threads may render while the process exits
    auto* methods = new std::unordered_map<std::string_view, const Function*>;
    for (const Function& function : kMethods) methods->emplace(function.signature.function, &function);
    return methods;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace mote::jinja
