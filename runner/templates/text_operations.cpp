#include <algorithm>

#include "base/utf8.h"
#include "runner/templates/describe.h"
#include "runner/templates/search.h"
#include "runner/templates/text_methods.h"

namespace mote::jinja {
namespace {

bool has_case(Runtime& runtime, const Text& text, bool (*is_wrong)(char32_t)) {
  runtime.budget().scan_slowly(text.size);
  bool found = false;
  for (size_t i = 0; i < text.size;) {
    const Character character = character_at(text.view(), i);
    if (is_wrong(character.code)) return false;
    found = found || is_cased(character.code);
    i += character.length;
  }
  return found;
}

// Whether the capital sigma at `position` ends a word (Unicode's Final_Sigma).
bool is_final_sigma(std::string_view text, size_t position, size_t length) {
  bool cased_before = false;
  for (size_t i = position; i > 0 && position - i < 256;) {
    i = previous_character(text, i);
    const char32_t c = character_at(text, i).code;
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  for (size_t i = position + length; i < text.size() && i - position < 256;) {
    const Character character = character_at(text, i);
    i += character.length;
    if (is_case_ignorable(character.code)) continue;
    return !is_cased(character.code);
  }
  return true;
}

constexpr char32_t kCapitalSigma = 0x3A3;

// Adds the lower case of text[begin:], which may begin inside of a word.
void add_lower(TextBuilder& out, const Text& whole, size_t begin) {
  const Text text = whole.part(begin, whole.size - begin);
  if (whole.view().find("\xCE\xA3", begin) == std::string_view::npos) return out.add_mapped(text, append_lower);
  const char* base = whole.data;
  size_t position = begin;
  out.add_mapped(text, [&](std::string& buffer, char32_t c) {
    const size_t length = character_at({base, whole.size}, position).length;
    if (c == kCapitalSigma) {
      append_utf8(buffer, is_final_sigma({base, whole.size}, position, length) ? 0x3C2 : 0x3C3);
    } else {
      append_lower(buffer, c);
    }
    position += length;
  });
}

Text finish_like(TextBuilder& out, const Text& text) {
  Text result = out.finish();
  result.safe = text.safe;
  return result;
}

}  // namespace

bool is_lower_case(Runtime& runtime, const Text& text) {
  return has_case(runtime, text, [](char32_t c) { return is_upper(c) || is_title(c); });
}

bool is_upper_case(Runtime& runtime, const Text& text) {
  return has_case(runtime, text, [](char32_t c) { return is_lower(c) || is_title(c); });
}

Text to_upper(Runtime& runtime, const Text& text) {
  TextBuilder out(runtime.arena());
  out.add_mapped(text, append_upper);
  return finish_like(out, text);
}

Text to_lower(Runtime& runtime, const Text& text) {
  TextBuilder out(runtime.arena());
  add_lower(out, text, 0);
  return finish_like(out, text);
}

Text capitalize(Runtime& runtime, const Text& text) {
  if (text.size == 0) return text;
  TextBuilder out(runtime.arena());
  const size_t first = character_at(text.view(), 0).length;
  out.add_mapped(text.part(0, first), append_title);
  add_lower(out, text, first);
  return finish_like(out, text);
}

Text strip(Runtime& runtime, const Text& text, const Value& chars, bool left, bool right) {
  runtime.budget().step();
  const std::string_view view = text.view();
  size_t begin = 0;
  size_t end = view.size();
  if (chars.is_none()) {
    if (left) begin = leading_space(view);
    if (right) end -= trailing_space(view.substr(begin));
  } else {
    if (!chars.is_text()) fail("strip arg must be None or str");
    runtime.budget().scan_slowly(chars.size);
    const auto is_one = [&](size_t at, size_t length) {
      return chars.string().find(view.substr(at, length)) != view.npos;
    };
    while (left && begin < end) {
      const size_t length = character_at(view, begin).length;
      if (!is_one(begin, length)) break;
      begin += length;
      if (chars.size > 16) runtime.budget().step();
    }
    while (right && end > begin) {
      const size_t previous = previous_character(view, end);
      if (!is_one(previous, end - previous)) break;
      end = previous;
      if (chars.size > 16) runtime.budget().step();
    }
  }
  runtime.budget().scan_slowly(begin + view.size() - end);
  return text.part(begin, end - begin);
}

Text replace(Runtime& runtime, const Text& text, const Text& old_text, const Text& new_text, int64_t count) {
  TextBuilder out(runtime.arena());
  size_t position = 0;
  int64_t replaced = 0;
  if (old_text.size == 0) {
    runtime.budget().scan_slowly(text.size);
    while (count < 0 || replaced < count) {
      out.add(new_text);
      ++replaced;
      if (position == text.size) break;
      const size_t length = character_at(text.view(), position).length;
      out.add(text.part(position, length));
      position += length;
    }
    out.add(text.part(position, text.size - position));
    return finish_like(out, text);
  }
  while (count < 0 || replaced < count) {
    const size_t found = find_text(runtime.budget(), text.view(), old_text.view(), position);
    if (found == std::string_view::npos) break;
    out.add(text.part(position, found - position));
    out.add(new_text);
    position = found + old_text.size;
    ++replaced;
  }
  if (replaced == 0) return text;
  out.add(text.part(position, text.size - position));
  return finish_like(out, text);
}

Text center(Runtime& runtime, const Text& text, int64_t width, const Text& fill) {
  const int64_t length = length_of(runtime, Value::of(text));
  if (width <= length) return text;
  const int64_t missing = width - length;
  const int64_t before = missing / 2 + (missing & width & 1);
  runtime.budget().step(static_cast<uint64_t>(missing) / 16);
  TextBuilder out(runtime.arena());
  for (int64_t i = 0; i < before; ++i) out.add(fill);
  out.add(text);
  for (int64_t i = before; i < missing; ++i) out.add(fill);
  return finish_like(out, text);
}

Text join(Runtime& runtime, const Text& separator, const Value& items, bool convert) {
  if (!is_iterable(items) && !convert) fail("can only join an iterable");
  TextBuilder out(runtime.arena());
  Cursor cursor(runtime, items);
  Value item;
  for (size_t i = 0; cursor.next(item); ++i) {
    if (i > 0) out.add(separator);
    if (item.is_text() || convert) {
      print(runtime, out, item);
    } else {
      MOTE_JINJA_FAIL("sequence item %zu: expected str instance, %s found", i, type_name(item));
    }
  }
  return out.finish();
}

namespace {

List* split_at_space(Runtime& runtime, const Text& text, int64_t max_splits, bool from_right) {
  List* parts = make_list(runtime.arena());
  runtime.budget().scan_slowly(text.size);
  size_t begin = leading_space(text.view());
  size_t end = text.size - trailing_space(text.view().substr(begin));
  while (begin < end) {
    const std::string_view rest = text.view().substr(begin, end - begin);
    if (max_splits >= 0 && static_cast<int64_t>(parts->size) == max_splits) {
      // What is left keeps the white space at its outer end.
      parts->add(runtime.arena(), Value::of(from_right ? text.part(0, end) : text.part(begin, text.size - begin)));
      return parts;
    }
    if (from_right) {
      size_t word = rest.size();
      while (word > 0) {
        const size_t previous = previous_character(rest, word);
        if (is_space(character_at(rest, previous).code)) break;
        word = previous;
      }
      parts->add(runtime.arena(), Value::of(text.part(begin + word, rest.size() - word)));
      end = begin + word - trailing_space(rest.substr(0, word));
    } else {
      size_t word = 0;
      while (word < rest.size() && !is_space(character_at(rest, word).code)) word += character_at(rest, word).length;
      parts->add(runtime.arena(), Value::of(text.part(begin, word)));
      begin += word + leading_space(rest.substr(word));
    }
  }
  return parts;
}

List* split_at_text(Runtime& runtime, const Text& text, std::string_view separator, int64_t max_splits,
                    bool from_right) {
  if (separator.empty()) fail("empty separator");
  List* parts = make_list(runtime.arena());
  const std::string_view view = text.view();
  size_t begin = 0;
  size_t end = view.size();
  while (max_splits < 0 || static_cast<int64_t>(parts->size) < max_splits) {
    const size_t found = from_right ? find_last_text(runtime.budget(), view.substr(0, end), separator)
                                    : find_text(runtime.budget(), view, separator, begin);
    if (found == view.npos) break;
    if (from_right) {
      parts->add(runtime.arena(), Value::of(text.part(found + separator.size(), end - found - separator.size())));
      end = found;
    } else {
      parts->add(runtime.arena(), Value::of(text.part(begin, found - begin)));
      begin = found + separator.size();
    }
  }
  parts->add(runtime.arena(), Value::of(text.part(begin, end - begin)));
  return parts;
}

}  // namespace

List* split(Runtime& runtime, const Text& text, const Value& separator, int64_t max_splits, bool from_right) {
  if (!separator.is_none() && !separator.is_text())
    MOTE_JINJA_FAIL("must be str or None, not %s", type_name(separator));
  List* parts = separator.is_none() ? split_at_space(runtime, text, max_splits, from_right)
                                    : split_at_text(runtime, text, separator.string(), max_splits, from_right);
  if (from_right) std::reverse(parts->items, parts->items + parts->size);
  return parts;
}

List* split_lines(Runtime& runtime, const Text& text, bool keep_ends) {
  runtime.budget().scan_slowly(text.size);
  List* lines = make_list(runtime.arena());
  size_t begin = 0;
  for (size_t i = 0; i < text.size;) {
    const Character character = character_at(text.view(), i);
    size_t after = i + character.length;
    if (is_line_break(character.code)) {
      if (character.code == '\r' && after < text.size && text.data[after] == '\n') ++after;
      lines->add(runtime.arena(), Value::of(text.part(begin, (keep_ends ? after : i) - begin)));
      begin = after;
    }
    i = after;
  }
  if (begin < text.size) lines->add(runtime.arena(), Value::of(text.part(begin, text.size - begin)));
  return lines;
}

}  // namespace mote::jinja
