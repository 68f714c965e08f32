#include "tokenizer/normalize/precompiled.h"

#include <utf8proc.h>

#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

constexpr size_t kMaxWholeGrapheme = 5;  // bytes; a longer one is mapped character by character

struct Change {
  char32_t c = 0;
  int change = 0;
};

int count_characters(std::string_view text) {
  int count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

// The new characters replace the old ones one for one; what is over is inserted, what is missing is dropped behind the last.
void replace(std::vector<Change>& changes, std::string_view from, std::string_view to) {
  const int difference = count_characters(to) - count_characters(from);
  while (!to.empty()) {
    const Character character = first_character(to);
    changes.push_back({character.code_point, 0});
    to.remove_prefix(character.length);
  }
  for (int i = 0; i < difference; ++i) changes[changes.size() - 1 - static_cast<size_t>(i)].change = 1;
  if (difference < 0 && !changes.empty()) changes.back().change += difference;
}

size_t grapheme_length(std::string_view text) {
  Character character = first_character(text);
  size_t length = character.length;
  utf8proc_int32_t state = 0;
  while (length < text.size()) {
    const Character next = first_character(text.substr(length));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(character.code_point),
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
  }
  if (!modified) return {};
  TextEditor editor(text);
  for (const Change& change : changes) editor.apply(change.c, change.change);
  editor.finish();
  return {};
}

}  // namespace mote::tokenizer
