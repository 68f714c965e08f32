#include "tokenizer/normalize/sentencepiece.h"

#include "tokenizer/text/growth.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

// One step of the character map: what the next characters become, and their number of bytes.
struct Step {
  std::string_view text;
  size_t length = 0;
};

Step next_step(std::string_view text, const Charsmap& map, const TrieView& user_defined) {
  if (const TrieView::Found found = user_defined.longest_prefix(text); found.length > 0) {
    return {text.substr(0, found.length), found.length};
  }
  if (const auto found = map.longest_prefix(text)) return {found->replacement, found->length};
  const size_t length = first_character(text).length;
  return {text.substr(0, length), length};
}

}  // namespace

Status SentencePieceNormalizer::apply(AlignedText& text) const {
  const std::string_view source = text.text();
  size_t consumed = 0;
  if (options_.remove_extra_whitespaces) {
    while (consumed < source.size()) {
      const Step step = next_step(source.substr(consumed), map_, user_defined_);
      if (step.text != " ") break;
      consumed += step.length;
    }
  }
  AlignedWriter writer(text);
  if (consumed == source.size()) {
    writer.finish(0);
    return {};
  }
  const std::string_view space = options_.escape_whitespaces ? kSpaceSymbol : " ";
  if (options_.add_dummy_prefix && !options_.whitespace_as_suffix) writer.append(space, consumed);
  bool after_space = options_.remove_extra_whitespaces;
  while (consumed < source.size()) {
    const Step step = next_step(source.substr(consumed), map_, user_defined_);
    std::string_view part = step.text;
    while (after_space && part.substr(0, 1) == " ") part.remove_prefix(1);
    for (const char& c : part) writer.append(c == ' ' ? space : std::string_view(&c, 1), consumed);
    if (!part.empty()) after_space = part.back() == ' ';
    MOTE_RETURN_IF_ERROR(check_growth(writer.text().size(), text.limit()));
    consumed += step.length;
    if (!options_.remove_extra_whitespaces) after_space = false;
  }
  if (options_.remove_extra_whitespaces) {
    while (writer.text().size() >= space.size() && writer.text().substr(writer.text().size() - space.size()) == space) {
      writer.drop(space.size());
      consumed = writer.dropped_from();
    }
  }
  if (options_.add_dummy_prefix && options_.whitespace_as_suffix) writer.append(space, consumed);
  writer.finish(consumed);
  return {};
}

}  // namespace mote::tokenizer
