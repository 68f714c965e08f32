#include "tokenizer/normalize/precompiled.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "tokenizer/text/growth.h"
#include "tokenizer/unicode/characters.h"
#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {
namespace {

constexpr size_t kMaxWholeGrapheme = 5;  // bytes; a longer one is mapped character by character

struct Change {
  char32_t c = 0;
  int change = 0;
};

// The new characters replace the old ones one for one; what is over is inserted, what is missing is dropped behind the
// last.
void replace(std::vector<Change>& changes, std::string_view from, std::string_view to) {
  const int difference = static_cast<int>(count_characters(to)) - static_cast<int>(count_characters(from));
  while (!to.empty()) {
    const Character character = first_character(to);
    changes.push_back({character.code_point, 0});
    to.remove_prefix(character.length);
  }
  for (int i = 0; i < difference; ++i) changes[changes.size() - 1 - static_cast<size_t>(i)].change = 1;
  if (difference < 0 && !changes.empty()) changes.back().change += difference;
}

// Marks of Unicode 16 and 17, the release of Hugging Face's clusters, that utf8proc may not know yet.
constexpr std::array<CodePointRange, 20> kNewerMarks{{
    {0x897, 0x897},     {0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},   {0x10D69, 0x10D6D}, {0x10EFA, 0x10EFC},
    {0x113B8, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0},
    {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11B60, 0x11B67}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
    {0x1E5EE, 0x1E5EF}, {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6}, {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5},
}};

bool is_newer_mark(char32_t c) {
  const auto behind = [](const CodePointRange& range, char32_t value) { return range.last < value; };
  const auto found = std::lower_bound(kNewerMarks.begin(), kNewerMarks.end(), c, behind);
  return found != kNewerMarks.end() && found->first <= c;
}

bool is_line_end_or_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

size_t grapheme_length(std::string_view text) {
  Character character = first_character(text);
  size_t length = character.length;
  utf8proc_int32_t state = 0;
  while (length < text.size()) {
    const Character next = first_character(text.substr(length));
    const bool joins = is_newer_mark(next.code_point) && !is_line_end_or_control(character.code_point);
    if (!joins && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(character.code_point),
                                                   static_cast<utf8proc_int32_t>(next.code_point), &state)) {
      break;
    }
    length += next.length;
    character = next;
  }
  return length;
}

}  // namespace

Status Precompiled::apply(AlignedText& text) const {
  std::vector<Change> changes;
  changes.reserve(text.size());
  bool modified = false;
  const auto map = [&](std::string_view part) {
    const auto found = map_.shortest_prefix(part);
    if (!found.has_value()) return false;
    replace(changes, part, found->replacement);
    return modified = true;
  };
  std::string_view rest = text.text();
  while (!rest.empty()) {
    const std::string_view grapheme = rest.substr(0, grapheme_length(rest));
    rest.remove_prefix(grapheme.size());
    if (grapheme.size() <= kMaxWholeGrapheme && map(grapheme)) continue;
    for (size_t at = 0; at < grapheme.size();) {
      const Character character = first_character(grapheme.substr(at));
      if (!map(grapheme.substr(at, character.length))) changes.push_back({character.code_point, 0});
      at += character.length;
    }
    MOTE_RETURN_IF_ERROR(check_growth(changes.size(), text.limit()));
  }
  if (!modified) return {};
  TextEditor editor(text);
  for (const Change& change : changes) editor.apply(change.c, change.change);
  editor.finish();
  return {};
}

}  // namespace mote::tokenizer
