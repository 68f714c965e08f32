// str.format. Source: Python's "Format String Syntax", jinja2 sandbox.py
#include <optional>

#include "runner/templates/attributes.h"
#include "runner/templates/describe.h"
#include "runner/templates/number_format.h"
#include "runner/templates/operators.h"
#include "runner/templates/text_methods.h"

namespace mote::jinja {
namespace {

constexpr int kMaxSpecNesting = 2;  // of fields inside of format specifications: {:{}}

std::optional<int64_t> whole_number(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Arguments& arguments, bool is_safe)
      : runtime_(runtime), arguments_(arguments), is_safe_(is_safe) {}

  Text run(const Text& pattern, int nesting) {
    if (nesting > kMaxSpecNesting) fail("Max string recursion exceeded");
    runtime_.budget().scan(pattern.size);
    TextBuilder out(runtime_.arena());
    const std::string_view text = pattern.view();
    for (size_t i = 0; i < text.size();) {
      const size_t brace = std::min(text.find_first_of("{}", i), text.size());
      out.add(pattern.part(i, brace - i));
      if (brace == text.size()) break;
      if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
        out.add(pattern.part(brace, 1));
        i = brace + 2;
        continue;
      }
      if (text[brace] == '}') fail("Single '}' encountered in format string");
      if (brace + 1 == text.size()) fail("Single '{' encountered in format string");
      i = add_field(out, pattern, brace + 1, nesting);
    }
    return out.finish();
  }

 private:
  // Adds the replacement field whose inside begins at `begin`; returns where it ends.
  size_t add_field(TextBuilder& out, const Text& pattern, size_t begin, int nesting) {
    runtime_.budget().step();
    const std::string_view text = pattern.view();
    size_t end = begin;
    int depth = 1;
    for (; end < text.size(); ++end) {
      depth += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
      if (depth == 0) break;
    }
    if (depth != 0) fail("expected '}' before end of string");
    const std::string_view field = text.substr(begin, end - begin);
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    char conversion = '\0';
    size_t spec_begin = name_end;
    if (name_end < field.size() && field[name_end] == '!') {
      if (name_end + 1 >= field.size()) fail("end of string while looking for conversion specifier");
      conversion = field[name_end + 1];
      spec_begin = name_end + 2;
      if (spec_begin < field.size() && field[spec_begin] != ':') fail("expected ':' after conversion specifier");
    }
    Value value = value_of(pattern.part(begin, name_end));
    if (conversion == 's')
      value = Value::of(to_text(runtime_, value));
    else if (conversion == 'r' || conversion == 'a')
      value = Value::of(to_repr(runtime_, value));
    else if (conversion != '\0')
      MOTE_JINJA_FAIL("Unknown conversion specifier %c", conversion);
    Text spec;
    if (spec_begin < field.size()) spec = pattern.part(begin + spec_begin + 1, field.size() - spec_begin - 1);
    if (spec.view().find_first_of("{}") != std::string_view::npos) spec = run(spec, nesting + 1);
    add_value(out, value, spec);
    return end + 1;
  }

  void add_value(TextBuilder& out, const Value& value, const Text& spec) {
    Text text;
    if (value.is_undefined() || (spec.size == 0 && !value.is_number())) {
      text = to_soft_text(runtime_, value);
      if (value.is_undefined() && spec.size > 0) fail("unsupported format string passed to Undefined.__format__");
    } else if (value.is(Kind::kBool) && spec.size == 0) {
      text = to_text(runtime_, value);
    } else {
      text = format_value(runtime_, value, parse_format_spec(spec.view(), value));
    }
    out.add(is_safe_ ? escape_html(runtime_, text) : text);
  }

  // The value of a field's name: an argument with .attributes and [items].
  Value value_of(const Text& name) {
    const std::string_view text = name.view();
    const size_t first_end = std::min(text.find_first_of(".["), text.size());
    if (first_end == 0 && !text.empty()) fail("''");
    Value value = argument(name.part(0, first_end));
    for (size_t i = first_end; i < text.size();) {
      runtime_.budget().step();
      if (text[i] == '.') {
        const size_t end = std::min(text.find_first_of(".[", i + 1), text.size());
        if (end == i + 1) fail("Empty attribute in format string");
        value = get_attribute(runtime_, value, text.substr(i + 1, end - i - 1));
        i = end;
      } else if (text[i] == '[') {
        const size_t end = text.find(']', i);
        if (end == text.npos) fail("Missing ']' in format string");
        const std::string_view key = text.substr(i + 1, end - i - 1);
        if (key.empty()) fail("Empty attribute in format string");
        const std::optional<int64_t> index = whole_number(key);
        value = get_item(runtime_, value, index ? Value::of(*index) : Value::of(name.part(i + 1, key.size())));
        i = end + 1;
      } else {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value argument(const Text& name) {
    const std::optional<int64_t> number = whole_number(name.view());
    if (name.size == 0 || number) {
      const bool is_manual = number.has_value();
      if (is_manual ? next_ > 0 : next_ < 0) {
        fail("cannot switch from manual field specification to automatic field numbering");
      }
      const int64_t index = is_manual ? *number : next_++;
      if (is_manual) next_ = -1;
      if (index >= static_cast<int64_t>(arguments_.positional.size())) { fail("tuple index out of range"); }
      return arguments_.positional[static_cast<size_t>(index)];
    }
    for (const auto& [keyword, value] : arguments_.keywords) {
      if (keyword.view() == name.view()) return value;
    }
    fail(repr_string(runtime_, Value::of(name)));
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  bool is_safe_;
  int64_t next_ = 0;  // number of the next field without a name; -1: fields have numbers
};

}  // namespace

Text brace_format(Runtime& runtime, const Text& pattern, const Arguments& arguments) {
  return BraceFormatter(runtime, arguments, pattern.safe).run(pattern, 0);
}

}  // namespace mote::jinja
