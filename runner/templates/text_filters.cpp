#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "runner/templates/describe.h"
#include "runner/templates/escapes.h"
#include "runner/templates/filters.h"
#include "runner/templates/number_format.h"
#include "runner/templates/numbers.h"
#include "runner/templates/operators.h"
#include "runner/templates/percent_format.h"
#include "runner/templates/text_methods.h"

namespace mote::jinja {
namespace {

Text soft(Runtime& runtime, const Value& value) { return to_soft_text(runtime, value); }

Value upper_filter(Runtime& runtime, const Value& value, const Bound&) {
  return Value::of(to_upper(runtime, soft(runtime, value)));
}
Value lower_filter(Runtime& runtime, const Value& value, const Bound&) {
  return Value::of(to_lower(runtime, soft(runtime, value)));
}
Value capitalized_filter(Runtime& runtime, const Value& value, const Bound&) {
  return Value::of(capitalize(runtime, soft(runtime, value)));
}

// Words begin behind white space, hyphens and opening brackets.
Value title_filter(Runtime& runtime, const Value& value, const Bound&) {
  const Text text = soft(runtime, value);
  runtime.budget().scan_slowly(text.size);
  TextBuilder out(runtime.arena());
  const auto separates = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  for (size_t i = 0; i < text.size;) {
    size_t end = i;
    const bool is_separator = separates(character_at(text.view(), i).code);
    while (end < text.size && separates(character_at(text.view(), end).code) == is_separator) {
      end += character_at(text.view(), end).length;
    }
    const size_t first = character_at(text.view(), i).length;
    out.add(to_upper(runtime, text.part(i, first)));
    out.add(to_lower(runtime, text.part(i + first, end - i - first)));
    i = end;
  }
  return Value::of(out.finish());
}

Value trim(Runtime& runtime, const Value& value, const Bound& bound) {
  return Value::of(strip(runtime, soft(runtime, value), bound.value_or(1, Value::none()), true, true));
}

Value replaced(Runtime& runtime, const Value& value, const Bound& bound) {
  const Value count = bound.value_or(3, Value::none());
  return Value::of(replace(runtime, to_text(runtime, value), to_text(runtime, bound[1]), to_text(runtime, bound[2]),
                           count.is_none() ? -1 : to_index(count)));
}

Value to_string(Runtime& runtime, const Value& value, const Bound&) { return Value::of(soft(runtime, value)); }

Value mark_safe(Runtime& runtime, const Value& value, const Bound&) {
  Text text = soft(runtime, value);
  text.safe = true;
  return Value::of(text);
}

Value escaped(Runtime& runtime, const Value& value, const Bound&) {
  return Value::of(escape_html(runtime, soft(runtime, value)));
}

Value force_escaped(Runtime& runtime, const Value& value, const Bound&) {
  return Value::of(escape_html(runtime, to_text(runtime, value)));
}

Value centered(Runtime& runtime, const Value& value, const Bound& bound) {
  return Value::of(center(runtime, soft(runtime, value), to_index(bound.value_or(1, Value::of(80))), " "));
}

Value formatted(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.keywords.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  if (!arguments.keywords.empty()) {
    Dict* dict = make_dict(runtime.arena());
    for (const auto& [name, item] : arguments.keywords) dict->set(runtime.arena(), Value::of(name), item);
    return Value::of(percent_format(runtime, soft(runtime, value), Value::of(dict)));
  }
  List* values = make_list(runtime.arena());
  for (const Value& item : arguments.positional) values->add(runtime.arena(), item);
  return Value::of(percent_format(runtime, soft(runtime, value), Value::of(values, true)));
}

Value indent(Runtime& runtime, const Value& value, const Bound& bound) {
  const Value width = bound.value_or(1, Value::of(4));
  const bool first = is_true(bound.value_or(2, Value::of(false)));
  const bool blank = is_true(bound.value_or(3, Value::of(false)));
  require_defined(runtime, value);
  if (value.is(Kind::kList)) fail("'list' object has no attribute 'splitlines'");
  if (value.is(Kind::kTuple)) fail("can only concatenate tuple (not \"str\") to tuple");
  if (!value.is_text()) MOTE_JINJA_FAIL("unsupported operand type(s) for +=: '%s' and 'str'", type_name(value));
  const Text indention =
      width.is_text()
          ? width.text()
          : copy_text(
                runtime.arena(),
                std::string(static_cast<size_t>(checked_width(runtime, std::max<int64_t>(to_index(width), 0))), ' '));
  TextBuilder with_end(runtime.arena());
  with_end.add(value.text());
  with_end.add('\n');
  const List* lines = split_lines(runtime, with_end.finish(), false);
  TextBuilder out(runtime.arena());
  if (first) out.add(indention);
  for (size_t i = 0; i < lines->size; ++i) {
    if (i > 0) out.add('\n');
    if (i > 0 && (blank || lines->items[i].size > 0)) out.add(indention);
    out.add(lines->items[i].text());
  }
  Text result = out.finish();
  result.safe = value.safe;
  return Value::of(result);
}

Value truncate(Runtime& runtime, const Value& value, const Bound& bound) {
  const int64_t length = to_index(bound.value_or(1, Value::of(255)));
  const bool kill_words = is_true(bound.value_or(2, Value::of(false)));
  const Text end = soft(runtime, bound.value_or(3, Value::of("...")));
  const Value given_leeway = bound.value_or(4, Value::none());
  const int64_t leeway = given_leeway.is_none() ? 5 : to_index(given_leeway);
  const int64_t end_length = length_of(runtime, Value::of(end));
  if (length < end_length) {
    MOTE_JINJA_FAIL("expected length >= %lld, got %lld", static_cast<long long>(end_length),
                    static_cast<long long>(length));
  }
  if (leeway < 0) MOTE_JINJA_FAIL("expected leeway >= 0, got %lld", static_cast<long long>(leeway));
  const int64_t size = length_of(runtime, value);
  if (size < 0) MOTE_JINJA_FAIL("object of type '%s' has no len()", type_name(value));
  if (size <= length || size - length <= leeway) return value;
  if (!value.is_text()) MOTE_JINJA_FAIL("'%s' object cannot be truncated: must be a string", type_name(value));
  Text kept = value.text().part(0, offset_of_character(value.string(), static_cast<size_t>(length - end_length)));
  if (!kill_words) {
    const size_t space = kept.view().rfind(' ');
    if (space != std::string_view::npos) kept = kept.part(0, space);
  }
  return Value::of(concatenate(runtime, kept, end));
}

Value wordcount(Runtime& runtime, const Value& value, const Bound&) {
  const Text text = soft(runtime, value);
  runtime.budget().scan_slowly(text.size);
  int64_t count = 0;
  for (size_t i = 0; i < text.size;) {
    const size_t length = word_length(text.view().substr(i));
    count += length > 0 ? 1 : 0;
    i += length > 0 ? length : character_at(text.view(), i).length;
  }
  return Value::of(count);
}

// Percent-encodes a text for a URL. Characters stay marked as they were.
void add_quoted(TextBuilder& out, const Text& text, bool is_query) {
  out.add_mapped(text, [is_query](std::string& buffer, char32_t c) {
    const bool is_plain =
        c < 0x80 && (is_alphanumeric(c) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !is_query));
    if (is_plain) {
      buffer += static_cast<char>(c);
    } else if (c == ' ' && is_query) {
      buffer += '+';
    } else {
      std::string bytes;
      append_utf8(bytes, c);
      for (const char byte : bytes) buffer += format("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    }
  });
}

Value urlencode(Runtime& runtime, const Value& value, const Bound&) {
  TextBuilder out(runtime.arena());
  if (value.is_text() || !is_iterable(value)) {
    add_quoted(out, to_text(runtime, value), false);
    return Value::of(out.finish());
  }
  const Value pairs =
      value.is(Kind::kDict)
          ? Value::of(Kind::kDictView, runtime.arena().make<DictView>(DictView{value.dict, DictView::Part::kItems}))
          : value;
  Cursor cursor(runtime, pairs);
  Value pair;
  while (cursor.next(pair)) {
    if (!is_iterable(pair)) MOTE_JINJA_FAIL("cannot unpack non-iterable %s object", type_name(pair));
    const List* parts = to_list(runtime, pair);
    if (parts->size < 2) MOTE_JINJA_FAIL("not enough values to unpack (expected 2, got %zu)", parts->size);
    if (parts->size > 2) fail("too many values to unpack (expected 2)");
    if (out.size() > 0) out.add('&');
    add_quoted(out, to_text(runtime, parts->items[0]), true);
    out.add('=');
    add_quoted(out, to_text(runtime, parts->items[1]), true);
  }
  return Value::of(out.finish());
}

Value xmlattr(Runtime& runtime, const Value& value, const Bound& bound) {
  require_defined(runtime, value);
  if (!value.is(Kind::kDict)) MOTE_JINJA_FAIL("'%s' object has no attribute 'items'", type_name(value));
  const bool autospace = is_true(bound.value_or(1, Value::of(true)));
  TextBuilder out(runtime.arena());
  for (const Dict::Entry& entry : *value.dict) {
    if (entry.value.is_none() || entry.value.is_undefined()) continue;
    if (!entry.key.is_text()) MOTE_JINJA_FAIL("expected string or bytes-like object, got '%s'", type_name(entry.key));
    if (entry.key.string().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fail("Invalid character in attribute name: " + repr_string(runtime, entry.key));
    }
    if (out.size() > 0 || autospace) out.add(' ');
    out.add(escape_html(runtime, entry.key.text()));
    out.add("=\"", false);
    out.add(escape_html(runtime, soft(runtime, entry.value)));
    out.add('"');
  }
  return Value::of(out.finish());
}

// Python's html.unescape, for the entities that markupsafe writes and a few more.
Text unescape_html(Runtime& runtime, Text text) {
  constexpr std::pair<const char*, const char*> kEntities[] = {{"&lt;", "<"},          {"&gt;", ">"},  {"&quot;", "\""},
                                                               {"&#34;", "\""},        {"&#39;", "'"}, {"&apos;", "'"},
                                                               {"&nbsp;", "\xC2\xA0"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : kEntities) text = replace(runtime, text, entity, character, -1);
  return text;
}

Value striptags(Runtime& runtime, const Value& value, const Bound&) {
  const Text text = to_text(runtime, value);
  runtime.budget().scan(text.size);
  TextBuilder kept(runtime.arena());
  size_t position = 0;
  for (size_t start = 0; (start = text.view().find('<', position)) != std::string_view::npos;) {
    const bool is_comment = text.view().substr(start).starts_with("<!--");
    const size_t end = is_comment ? text.view().find("-->", start + 4) : text.view().find('>', start);
    if (end == std::string_view::npos) break;
    kept.add(text.part(position, start - position));
    position = end + (is_comment ? 3 : 1);
  }
  kept.add(text.part(position, text.size - position));
  const List* words = split(runtime, kept.finish(), Value::none(), -1, false);
  TextBuilder out(runtime.arena());
  for (size_t i = 0; i < words->size; ++i) {
    if (i > 0) out.add(' ');
    out.add(words->items[i].text());
  }
  return Value::of(unescape_html(runtime, out.finish()));
}

Value filesizeformat(Runtime& runtime, const Value& value, const Bound& bound) {
  require_defined(runtime, value);
  const std::optional<double> parsed = value.is_text() ? parse_float(value.string()) : std::nullopt;
  if (value.is_text() && !parsed)
    MOTE_JINJA_FAIL("could not convert string to float: %s", repr_string(runtime, value).c_str());
  if (!value.is_text() && !value.is_number()) {
    MOTE_JINJA_FAIL("float() argument must be a string or a real number, not '%s'", type_name(value));
  }
  const bool is_binary = is_true(bound.value_or(1, Value::of(false)));
  const double base = is_binary ? 1024 : 1000;
  const double bytes = parsed ? *parsed : value.number();
  std::string text =
      bytes == 1 ? "1 Byte" : format("%lld Bytes", static_cast<long long>(std::clamp(bytes, -0x1p62, 0x1p62)));
  if (bytes >= base) {
    constexpr std::string_view kPrefixes = "KMGTPEZY";
    double unit = base * base;
    size_t i = 0;
    while (i + 1 < kPrefixes.size() && bytes >= unit) {
      unit *= base;
      ++i;
    }
    const char letter = i == 0 && !is_binary ? 'k' : kPrefixes[i];
    text = format("%.1f %c%s", base * bytes / unit, letter, is_binary ? "iB" : "B");
  }
  return Value::of(copy_text(runtime.arena(), text));
}

Value refused(Runtime&, const Value&, const Arguments&) {
  fail("the filters pprint, random, urlize and wordwrap are not supported in chat templates");
}

constexpr Filter kTextFilters[] = {
    {"upper", {{"do_upper", 1, {"s"}}, upper_filter, nullptr}},
    {"lower", {{"do_lower", 1, {"s"}}, lower_filter, nullptr}},
    {"capitalize", {{"do_capitalize", 1, {"s"}}, capitalized_filter, nullptr}},
    {"title", {{"do_title", 1, {"s"}}, title_filter, nullptr}},
    {"trim", {{"do_trim", 1, {"value", "chars"}}, trim, nullptr}},
    {"replace", {{"do_replace", 3, {"s", "old", "new", "count"}, 1}, replaced, nullptr}},
    {"string", {{"soft_str", 1, {"s"}}, to_string, nullptr}},
    {"safe", {{"do_mark_safe", 1, {"value"}}, mark_safe, nullptr}},
    {"escape", {{"escape", 1, {"s"}}, escaped, nullptr}},
    {"e", {{"escape", 1, {"s"}}, escaped, nullptr}},
    {"forceescape", {{"do_forceescape", 1, {"value"}}, force_escaped, nullptr}},
    {"center", {{"do_center", 1, {"value", "width"}}, centered, nullptr}},
    {"format", {{"do_format", 1, {"value"}}, nullptr, formatted}},
    {"indent", {{"do_indent", 1, {"s", "width", "first", "blank"}}, indent, nullptr}},
    {"truncate", {{"do_truncate", 1, {"s", "length", "killwords", "end", "leeway"}, 1}, truncate, nullptr}},
    {"wordcount", {{"do_wordcount", 1, {"s"}}, wordcount, nullptr}},
    {"urlencode", {{"do_urlencode", 1, {"value"}}, urlencode, nullptr}},
    {"xmlattr", {{"do_xmlattr", 1, {"d", "autospace"}, 1}, xmlattr, nullptr}},
    {"striptags", {{"do_striptags", 1, {"value"}}, striptags, nullptr}},
    {"filesizeformat", {{"do_filesizeformat", 1, {"value", "binary"}}, filesizeformat, nullptr}},
    {"pprint", {{"do_pprint", 1, {"value"}}, nullptr, refused}},
    {"random", {{"do_random", 1, {"seq"}}, nullptr, refused}},
    {"urlize", {{"do_urlize", 1, {"value"}}, nullptr, refused}},
    {"wordwrap", {{"do_wordwrap", 1, {"s"}}, nullptr, refused}},
};

}  // namespace

std::span<const Filter> text_filters() { return kTextFilters; }

}  // namespace mote::jinja
