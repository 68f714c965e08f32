#include "tokenizer/pretokenize/character_split.h"

#include "tokenizer/pretokenize/split_behavior.h"
#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {
namespace {

// Every character that passes the test is a match of its own.
template <typename Test>
std::vector<Span> spans_of(std::string_view text, Test test) {
  std::vector<Span> spans;
  size_t rest = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    const size_t end = at + character.length;
    if (test(character.code_point)) {
      if (rest < at) spans.push_back({rest, at, false});
      spans.push_back({at, end, true});
      rest = end;
    }
    at = end;
  }
  if (rest < text.size()) spans.push_back({rest, text.size(), false});
  return spans;
}

// Appends the runs of characters of one kind; kind 0 is left out.
template <typename Kind>
void append_runs(std::string_view text, std::vector<Piece>& parts, Kind kind_of) {
  int previous = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    const int kind = kind_of(character.code_point);
    const size_t end = at + character.length;
    if (kind != 0 && kind == previous)
      parts.back().end = static_cast<uint32_t>(end);
    else if (kind != 0)
      parts.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
    previous = kind;
    at = end;
  }
}

}  // namespace

Status CharacterSplit::cut(std::string_view text, std::vector<Piece>& parts) const {
  append_parts(behavior_, spans_of(text, test_), parts);
  return {};
}

Status DelimiterSplit::cut(std::string_view text, std::vector<Piece>& parts) const {
  append_parts(fb::Behavior::removed, spans_of(text, [this](char32_t c) { return c == delimiter_; }), parts);
  return {};
}

Status BertSplit::cut(std::string_view text, std::vector<Piece>& parts) const {
  int sign = 1;  // every sign is a kind of its own
  append_runs(text, parts, [&](char32_t c) { return is_space(c) ? 0 : is_punctuation(c) ? ++sign : 1; });
  return {};
}

Status WordOrSignSplit::cut(std::string_view text, std::vector<Piece>& parts) const {
  const CharacterTable& table = CharacterTable::get();
  append_runs(text, parts, [&](char32_t c) { return table.is_space(c) ? 0 : table.is_word(c) ? 1 : 2; });
  return {};
}

}  // namespace mote::tokenizer
