#include "runner/templates/percent_format.h"

#include <cmath>

#include "base/utf8.h"
#include "runner/templates/characters.h"
#include "runner/templates/describe.h"
#include "runner/templates/escapes.h"
#include "runner/templates/number_format.h"
#include "runner/templates/operators.h"

namespace mote::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& pattern, const Value& values)
      : runtime_(runtime), pattern_(pattern), values_(values), out_(runtime.arena()) {}

  Text run() {
    runtime_.budget().scan(pattern_.size);
    const std::string_view text = pattern_.view();
    while (position_ < text.size()) {
      const size_t percent = std::min(text.find('%', position_), text.size());
      out_.add(pattern_.part(position_, percent - position_));
      position_ = percent;
      if (position_ < text.size()) add_conversion();
    }
    const bool is_mapping =
        values_.is(Kind::kDict) || values_.is(Kind::kList) || values_.is_undefined() || values_.is(Kind::kRange);
    const size_t count = values_.is(Kind::kTuple) ? values_.list->size : 1;
    if (!is_mapping && used_ < count) fail("not all arguments converted during string formatting");
    Text result = out_.finish();
    result.safe = pattern_.safe;
    return result;
  }

 private:
  char peek() const {
    if (position_ >= pattern_.size) fail("incomplete format");
    return pattern_.data[position_];
  }

  Value next_value() {
    if (!keyed_.is(Kind::kMissing)) return keyed_;
    if (values_.is(Kind::kTuple)) {
      if (used_ >= values_.list->size) fail("not enough arguments for format string");
      return values_.list->items[used_++];
    }
    if (used_++ > 0) fail("not enough arguments for format string");
    return values_;
  }

  int64_t read_count() {
    if (peek() == '*') {
      ++position_;
      const Value value = next_value();
      if (!value.is_whole()) fail("* wants int");
      return value.whole();
    }
    int64_t count = 0;
    while (is_digit(peek())) {
      count = count * 10 + (pattern_.data[position_++] - '0');
      checked_width(runtime_, count);
    }
    return count;
  }

  void read_key() {
    const size_t begin = ++position_;
    int depth = 1;
    for (; depth > 0; ++position_) {
      if (position_ >= pattern_.size) fail("incomplete format key");
      depth += pattern_.data[position_] == '(' ? 1 : pattern_.data[position_] == ')' ? -1 : 0;
    }
    if (!values_.is(Kind::kDict)) fail("format requires a mapping");
    const Value key = Value::of(pattern_.part(begin, position_ - begin - 1));
    const Value* found = values_.dict->find(runtime_.budget(), key);
    if (found == nullptr) fail(repr_string(runtime_, key));
    keyed_ = *found;
    used_ = 1;
  }

  void add_conversion() {
    runtime_.budget().step();
    ++position_;
    keyed_ = Value::missing();
    FormatSpec spec;
    if (peek() == '(') read_key();
    bool is_left = false;
    for (;; ++position_) {
      const char c = peek();
      if (c == '-')
        is_left = true;
      else if (c == '0')
        spec.zero = true;
      else if (c == '+')
        spec.sign = '+';
      else if (c == ' ')
        spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (c == '#')
        spec.alternate = true;
      else
        break;
    }
    spec.width = read_count();
    if (spec.width < 0) {
      is_left = true;
      spec.width = -spec.width;
    }
    checked_width(runtime_, spec.width);
    if (peek() == '.') {
      ++position_;
      spec.precision = std::max<int64_t>(read_count(), 0);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++position_;
    spec.align = is_left ? '<' : '>';
    spec.type = pattern_.data[position_++];
    if (spec.type == '%') return out_.add('%');
    convert(spec, is_left);
  }

  void convert(FormatSpec& spec, bool is_left) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': return add_text(spec);
      case 'c': return add_character(spec);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return add_number(spec, is_left);
      default: {
        const size_t at = position_ - 1;
        const Character c = character_at(pattern_.view(), at);
        const std::string shown = c.code > 31 && c.code < 128 ? std::string(1, static_cast<char>(c.code)) : "?";
        MOTE_JINJA_FAIL("unsupported format character '%s' (0x%x) at index %zu", shown.c_str(),
                        static_cast<unsigned>(c.code), count_characters(pattern_.view().substr(0, at)));
      }
    }
  }

  void add_padded(const Text& text, FormatSpec spec) {
    spec.type = '\0';
    spec.sign = '-';
    spec.alternate = false;
    Text padded = format_value(runtime_, Value::of(text), spec);
    out_.add(padded);
  }

  void add_text(const FormatSpec& spec) {
    const Value value = next_value();
    Text text = spec.type == 's' ? to_soft_text(runtime_, value) : to_repr(runtime_, value);
    if (pattern_.safe) text = escape_html(runtime_, text);
    add_padded(text, spec);
  }

  void add_character(FormatSpec spec) {
    const Value value = next_value();
    spec.precision = -1;
    if (value.is_text()) {
      if (length_of(runtime_, value) != 1) fail("%c requires int or char");
      return add_padded(value.text(), spec);
    }
    if (!value.is_whole()) fail("%c requires int or char");
    if (value.whole() < 0 || value.whole() > 0x10FFFF) fail("%c arg not in range(0x110000)");
    std::string character;
    append_utf8(character, static_cast<char32_t>(value.whole()));
    add_padded(copy_text(runtime_.arena(), character), spec);
  }

  void add_number(FormatSpec& spec, bool is_left) {
    const Value value = next_value();
    require_defined(runtime_, value);
    const bool is_float = std::string_view("eEfFgG").find(spec.type) != std::string_view::npos;
    if (is_float && !value.is_number()) MOTE_JINJA_FAIL("must be real number, not %s", type_name(value));
    const bool is_based = spec.type == 'o' || spec.type == 'x' || spec.type == 'X';
    if (is_based && !value.is_whole())
      MOTE_JINJA_FAIL("%%%c format: an integer is required, not %s", spec.type, type_name(value));
    if (!value.is_number())
      MOTE_JINJA_FAIL("%%%c format: a real number is required, not %s", spec.type, type_name(value));
    std::string sign;
    std::string digits;
    if (is_float) {
      digits = float_digits(value.number(), spec.type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
      sign = std::signbit(value.number()) && !std::isnan(value.number()) ? "-" : "";
    } else {
      const int64_t whole = value.is_whole() ? value.whole() : truncated(value.real);
      digits = digits_of(whole, spec.type == 'o' ? 8 : is_based ? 16 : 10, spec.type == 'X');
      sign = whole < 0 ? "-" : "";
      checked_width(runtime_, spec.precision);
      if (spec.precision > static_cast<int64_t>(digits.size()))
        digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
    }
    if (sign.empty() && spec.sign != '-') sign = spec.sign;
    if (spec.alternate && is_based) sign += std::string("0") + spec.type;
    if (spec.zero && !is_left && static_cast<int64_t>(sign.size() + digits.size()) < spec.width) {
      digits.insert(0, static_cast<size_t>(spec.width) - sign.size() - digits.size(), '0');
    }
    spec.precision = -1;
    add_padded(copy_text(runtime_.arena(), sign + digits), spec);
  }

  static int64_t truncated(double value) {
    if (std::isnan(value)) fail("cannot convert float NaN to integer");
    if (std::isinf(value)) fail("cannot convert float infinity to integer");
    if (std::fabs(value) >= 0x1p63) fail("integer overflow: the number does not fit 64 bits");
    return static_cast<int64_t>(value);
  }

  Runtime& runtime_;
  Text pattern_;
  Value values_;
  Value keyed_ = Value::missing();
  size_t position_ = 0;
  size_t used_ = 0;
  TextBuilder out_;
};

}  // namespace

Text percent_format(Runtime& runtime, const Text& pattern, const Value& values) {
  return PercentFormatter(runtime, pattern, values).run();
}

}  // namespace mote::jinja
