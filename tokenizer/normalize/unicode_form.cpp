#include "tokenizer/normalize/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "tokenizer/unicode/characters.h"
#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {
namespace {

// A character of the new text and what became of those of the old one (TextEditor::apply).
struct ClassedChange {
  char32_t c = 0;
  int change = 0;
  int combining_class = 0;
};

void append_decomposition(char32_t c, bool compatibility, std::vector<ClassedChange>& changes) {
  utf8proc_int32_t buffer[32];
  int last_class = 0;
  utf8proc_ssize_t length = 0;
  if (decomposition_is_known(c, compatibility)) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
    length = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), buffer, 32, options, &last_class);
  }
  if (length < 1 || length > 32) {
    changes.push_back({c, 0, combining_class(c)});
    return;
  }
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    const auto part = static_cast<char32_t>(buffer[i]);
    changes.push_back({part, i > 0 ? 1 : 0, combining_class(part)});
  }
}

std::vector<ClassedChange> decomposed(std::string_view text, bool compatibility) {
  std::vector<ClassedChange> changes;
  changes.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    append_decomposition(character.code_point, compatibility, changes);
    text.remove_prefix(character.length);
  }
  const auto is_starter = [](const ClassedChange& change) { return change.combining_class == 0; };
  for (auto run = changes.begin(); run != changes.end();) {
    run = std::find_if_not(run, changes.end(), is_starter);
    const auto end = std::find_if(run, changes.end(), is_starter);
    std::stable_sort(
        run, end, [](const ClassedChange& a, const ClassedChange& b) { return a.combining_class < b.combining_class; });
    run = end;
  }
  return changes;
}

// What the two characters compose to.
std::optional<char32_t> composition(char32_t first, char32_t second) {
  if (second < 0x300) return std::nullopt;
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair, 2, options) != 1) return std::nullopt;
  const auto composed = static_cast<char32_t>(pair[0]);
  if (!decomposition_is_known(composed, false)) return std::nullopt;
  return composed;
}

std::vector<ClassedChange> composed(const std::vector<ClassedChange>& changes) {
  std::vector<ClassedChange> result;
  result.reserve(changes.size());
  std::optional<size_t> starter;  // of what follows, in `result`
  int last_class = -1;            // of the characters behind the starter that did not compose; -1: none
  for (const ClassedChange& next : changes) {
    const bool blocked = last_class >= 0 && last_class >= next.combining_class;
    if (starter.has_value() && !blocked) {
      if (const auto both = composition(result[*starter].c, next.c)) {
        result[*starter].c = *both;
        result[*starter].change += next.change - 1;
        continue;
      }
    }
    if (next.combining_class == 0) {
      starter = result.size();
      last_class = -1;
    } else if (starter.has_value()) {
      last_class = next.combining_class;
    }
    result.push_back(next);
  }
  return result;
}

void write(AlignedText& text, const std::vector<ClassedChange>& changes) {
  TextEditor editor(text);
  for (const ClassedChange& change : changes) editor.apply(change.c, change.change);
  editor.finish();
}

}  // namespace

void decompose(AlignedText& text, bool compatibility) { write(text, decomposed(text.text(), compatibility)); }

Status UnicodeForm::apply(AlignedText& text) const {
  if (leaves_alone(text.text())) return {};
  const std::vector<ClassedChange> changes = decomposed(text.text(), compatibility_);
  write(text, compose_ ? composed(changes) : changes);
  return {};
}

bool UnicodeForm::leaves_alone(std::string_view text) const {
  size_t at = 0;
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  if (at == text.size()) return true;
  if (compatibility_ || !compose_) return false;
  const CharacterTable& table = CharacterTable::get();
  while (at < text.size()) {
    const Character character = first_character(text.substr(at));
    if (table.may_change_in_nfc(character.code_point)) return false;
    at += character.length;
  }
  return true;
}

}  // namespace mote::tokenizer
