#include "runner/templates/number_format.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/utf8.h"
#include "runner/templates/describe.h"

namespace mote::jinja {
namespace {

constexpr int64_t kMaxPrecision = 1000;
constexpr int64_t kMaxWidth = int64_t{1} << 20;

bool is_align(char32_t c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

int64_t read_number(std::string_view spec, size_t& position) {
  int64_t value = 0;
  while (position < spec.size() && spec[position] >= '0' && spec[position] <= '9') {
    value = value * 10 + (spec[position++] - '0');
    if (value > kMaxWidth) fail("Too many decimal digits in format string");
  }
  return value;
}

std::string group_digits(const std::string& digits, char separator, size_t size) {
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) grouped += separator;
    grouped += digits[i];
  }
  return grouped;
}

struct Parts {
  std::string sign;
  std::string prefix;
  std::string whole;  // digits that may be grouped
  std::string rest;
};

Parts whole_parts(int64_t value, const FormatSpec& spec) {
  Parts parts;
  parts.sign = value < 0 ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const int base = spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : spec.type == 'x' || spec.type == 'X' ? 16 : 10;
  parts.whole = digits_of(value, base, spec.type == 'X');
  if (spec.alternate && base != 10) parts.prefix = std::string("0") + spec.type;
  return parts;
}

Parts float_parts(double value, const FormatSpec& spec) {
  Parts parts;
  parts.sign = std::signbit(value) && !std::isnan(value) ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  std::string digits;
  if (spec.type == '\0' && spec.precision < 0) {
    digits = float_repr(std::fabs(value));
  } else if (spec.type == '\0') {
    digits = float_digits(value, 'g', spec.precision, false);
    if (std::isfinite(value) && digits.find_first_of(".e") == digits.npos) digits += ".0";
  } else if (spec.type == '%') {
    digits = float_digits(value * 100, 'f', spec.precision < 0 ? 6 : spec.precision, spec.alternate) + "%";
  } else {
    const char type = spec.type == 'n' ? 'g' : spec.type;
    digits = float_digits(value, type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
  }
  if (spec.no_negative_zero && digits.find_first_of("123456789") == digits.npos && parts.sign == "-") {
    parts.sign = spec.sign == '-' ? "" : std::string(1, spec.sign);
  }
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  parts.whole = digits.substr(0, end);
  parts.rest = digits.substr(end);
  return parts;
}

void add_fill(TextBuilder& out, const std::string& fill, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out.add(fill, false);
}

// Pads `lead` and `body` to the width. With the alignment '=' the fill goes between the two.
Text pad(Runtime& runtime, const std::string& lead, const Text& body, const FormatSpec& spec, char default_align) {
  const int64_t missing = spec.width - static_cast<int64_t>(lead.size() + count_characters(body.view()));
  const char align = spec.align != '\0' ? spec.align : default_align;
  const int64_t fill = std::max<int64_t>(missing, 0);
  runtime.budget().step(static_cast<uint64_t>(fill) / 16);
  const int64_t before = align == '>' ? fill : align == '^' ? fill / 2 : 0;
  TextBuilder out(runtime.arena());
  add_fill(out, spec.fill, before);
  out.add(lead, false);
  if (align == '=') add_fill(out, spec.fill, fill);
  out.add(body);
  if (align == '<' || align == '^') add_fill(out, spec.fill, fill - before);
  return out.finish();
}

[[noreturn]] void fail_type(const FormatSpec& spec, const Value& value) {
  MOTE_JINJA_FAIL("Unknown format code '%c' for object of type '%s'", spec.type, type_name(value));
}

Text format_text(Runtime& runtime, const Text& text, const FormatSpec& spec) {
  if (spec.type != '\0' && spec.type != 's') fail_type(spec, Value::of(Text()));
  if (spec.sign != '-') fail("Sign not allowed in string format specifier");
  if (spec.alternate) fail("Alternate form (#) not allowed in string format specifier");
  if (spec.grouping != '\0') MOTE_JINJA_FAIL("Cannot specify '%c' with 's'.", spec.grouping);
  if (spec.align == '=') fail("'=' alignment not allowed in string format specifier");
  Text part = text;
  if (spec.precision >= 0) part = text.part(0, offset_of_character(text.view(), static_cast<size_t>(spec.precision)));
  return pad(runtime, "", part, spec, '<');
}

}  // namespace

int64_t checked_width(Runtime& runtime, int64_t width) {
  if (width > kMaxWidth)
    MOTE_JINJA_FAIL("a width of %lld: must be at most %lld", static_cast<long long>(width),
                    static_cast<long long>(kMaxWidth));
  if (width > 0) runtime.budget().step(static_cast<uint64_t>(width) / 64);
  return width;
}

std::string digits_of(int64_t value, int base, bool upper) {
  uint64_t rest = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const char* symbols = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits += symbols[rest % static_cast<uint64_t>(base)];
    rest /= static_cast<uint64_t>(base);
  } while (rest > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string float_digits(double value, char type, int64_t precision, bool alternate) {
  if (precision > kMaxPrecision)
    MOTE_JINJA_FAIL("a precision of %lld: must be at most %lld", static_cast<long long>(precision),
                    static_cast<long long>(kMaxPrecision));
  const bool is_upper_type = type == 'E' || type == 'F' || type == 'G';
  if (std::isnan(value)) return is_upper_type ? "NAN" : "nan";
  if (std::isinf(value)) return is_upper_type ? "INF" : "inf";
  const int places = static_cast<int>(std::max<int64_t>(precision, 0));
  switch (type) {
    case 'e': return format(alternate ? "%#.*e" : "%.*e", places, std::fabs(value));
    case 'E': return format(alternate ? "%#.*E" : "%.*E", places, std::fabs(value));
    case 'f': return format(alternate ? "%#.*f" : "%.*f", places, std::fabs(value));
    case 'F': return format(alternate ? "%#.*F" : "%.*F", places, std::fabs(value));
    case 'G': return format(alternate ? "%#.*G" : "%.*G", places, std::fabs(value));
    default: return format(alternate ? "%#.*g" : "%.*g", places, std::fabs(value));
  }
}

FormatSpec parse_format_spec(std::string_view spec, const Value& value) {
  FormatSpec result;
  size_t position = 0;
  const auto at = [&](char c) { return position < spec.size() && spec[position] == c; };
  if (!spec.empty()) {
    const Character first = character_at(spec, 0);
    if (first.length < spec.size() && is_align(static_cast<unsigned char>(spec[first.length]))) {
      result.fill = std::string(spec.substr(0, first.length));
      result.align = spec[first.length];
      position = first.length + 1;
    } else if (is_align(first.code)) {
      result.align = spec[0];
      position = 1;
    }
  }
  if (at('+') || at('-') || at(' ')) result.sign = spec[position++];
  if (at('z')) {
    if (!value.is(Kind::kFloat)) {
      MOTE_JINJA_FAIL("Negative zero coercion (z) not allowed in %s format specifier",
                      value.is_text() ? "string" : "integer");
    }
    result.no_negative_zero = ++position > 0;
  }
  if (at('#')) result.alternate = ++position > 0;
  if (at('0')) {
    ++position;
    if (result.align == '\0') {
      result.zero = true;
      result.fill = "0";
      if (!value.is_text()) result.align = '=';
    }
  }
  result.width = read_number(spec, position);
  if (at(',') || at('_')) result.grouping = spec[position++];
  if (at('.')) {
    const size_t digits = ++position;
    result.precision = read_number(spec, position);
    if (position == digits) fail("Format specifier missing precision");
  }
  if (position < spec.size()) result.type = spec[position++];
  if (position < spec.size()) {
    MOTE_JINJA_FAIL("Invalid format specifier '%s' for object of type '%s'", std::string(spec).c_str(),
                    type_name(value));
  }
  return result;
}

Text format_value(Runtime& runtime, const Value& value, const FormatSpec& spec) {
  checked_width(runtime, spec.width);
  if (value.is_text()) return format_text(runtime, value.text(), spec);
  if (!value.is_number()) MOTE_JINJA_FAIL("unsupported format string passed to %s.__format__", type_name(value));
  constexpr std::string_view kFloatTypes = "eEfFgG%";
  Parts parts;
  if (value.is(Kind::kFloat) || kFloatTypes.find(spec.type) != kFloatTypes.npos) {
    if (spec.type != '\0' && spec.type != 'n' && kFloatTypes.find(spec.type) == kFloatTypes.npos)
      fail_type(spec, value);
    parts = float_parts(value.number(), spec);
  } else if (spec.type == 'c') {
    std::string character;
    if (value.whole() < 0 || value.whole() > 0x10FFFF) fail("%c arg not in range(0x110000)");
    append_utf8(character, static_cast<char32_t>(value.whole()));
    return pad(runtime, "", copy_text(runtime.arena(), character), spec, '<');
  } else {
    constexpr std::string_view kWholeTypes("\0bdnoxX", 7);
    if (kWholeTypes.find(spec.type) == kWholeTypes.npos) fail_type(spec, value);
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    parts = whole_parts(value.whole(), spec);
  }
  if (spec.grouping != '\0') {
    const bool is_based = spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X';
    if (spec.grouping == ',' && is_based) MOTE_JINJA_FAIL("Cannot specify ',' with '%c'.", spec.type);
    const size_t size = is_based ? 4 : 3;
    if (spec.align == '=' && spec.fill == "0") {  // the zeros are grouped too
      const int64_t fixed = static_cast<int64_t>(parts.sign.size() + parts.prefix.size() + parts.rest.size());
      while (fixed + static_cast<int64_t>(parts.whole.size() + (parts.whole.size() - 1) / size) < spec.width) {
        parts.whole.insert(0, "0");
        runtime.budget().step();
      }
    }
    parts.whole = group_digits(parts.whole, spec.grouping, size);
  }
  return pad(runtime, parts.sign + parts.prefix, copy_text(runtime.arena(), parts.whole + parts.rest), spec, '>');
}

}  // namespace mote::jinja
