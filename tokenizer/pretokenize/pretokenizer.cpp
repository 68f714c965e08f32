#include "tokenizer/pretokenize/pretokenizer.h"

#include "tokenizer/pretokenize/byte_level.h"
#include "tokenizer/pretokenize/character_split.h"
#include "tokenizer/pretokenize/fixed_length.h"
#include "tokenizer/pretokenize/metaspace.h"
#include "tokenizer/pretokenize/split.h"
#include "tokenizer/pretokenize/unicode_scripts.h"
#include "tokenizer/segment/text.h"
#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {
namespace {

using MadePretokenizer = Result<std::unique_ptr<Pretokenizer>>;

template <typename T, typename... Arguments>
MadePretokenizer made_pretokenizer(Arguments&&... arguments) {
  return std::unique_ptr<Pretokenizer>(std::make_unique<T>(std::forward<Arguments>(arguments)...));
}

MadePretokenizer make_split(const fb::Pretokenizer& from) {
  if (from.is_regex() && from.behavior() == fb::Behavior::isolated) {
    if (auto scanner = scanner_for(text_of(from.pattern()))) return made_pretokenizer<ScannerSplit>(std::move(scanner));
  }
  MOTE_ASSIGN(Pattern pattern, Pattern::make(text_of(from.pattern()), from.is_regex(),
                                             from.fancy_syntax() ? RegexSyntax::kFancy : RegexSyntax::kOniguruma));
  return made_pretokenizer<Split>(std::move(pattern), from.behavior(), from.invert());
}

MadePretokenizer make_byte_level(const fb::Pretokenizer& from, bool spell_bytes) {
  if (!spell_bytes && !from.add_prefix_space()) return made_pretokenizer<ByteLevelSplit>(from.use_regex());
  return made_pretokenizer<ByteLevel>(from.add_prefix_space(), from.use_regex(), spell_bytes);
}

}  // namespace

Status Cutter::apply(Pieces& pieces) const {
  std::vector<Piece> finer;
  const std::string_view text = pieces.text.text();
  for (const Piece& piece : pieces.pieces) {
    const size_t first = finer.size();
    MOTE_RETURN_IF_ERROR(cut(text.substr(piece.begin, piece.end - piece.begin), finer));
    size_t kept = first;
    for (size_t i = first; i < finer.size(); ++i) {
      if (finer[i].begin >= finer[i].end) continue;
      finer[kept++] = {finer[i].begin + piece.begin, finer[i].end + piece.begin};
    }
    finer.resize(kept);
  }
  pieces.pieces = std::move(finer);
  return {};
}

Status Rewriter::apply(Pieces& pieces) const {
  AlignedText all = pieces.text.slice(0, 0);
  std::vector<Piece> finer;
  for (const Piece& piece : pieces.pieces) {
    AlignedText part = pieces.text.slice(piece.begin, piece.end);
    const auto start = static_cast<uint32_t>(all.size());
    const size_t first = finer.size();
    MOTE_RETURN_IF_ERROR(change(part, finer));
    size_t kept = first;
    for (size_t i = first; i < finer.size(); ++i) {
      if (finer[i].begin < finer[i].end) finer[kept++] = {finer[i].begin + start, finer[i].end + start};
    }
    finer.resize(kept);
    if (pieces.pieces.size() == 1)
      all = std::move(part);
    else
      all.append(part);
  }
  pieces = {std::move(all), std::move(finer)};
  return {};
}

MadePretokenizer make_pretokenizer(const fb::Pretokenizer& from, bool spell_bytes) {
  switch (from.kind()) {
    case fb::PretokenizerKind::byte_level: return make_byte_level(from, spell_bytes);
    case fb::PretokenizerKind::split: return make_split(from);
    case fb::PretokenizerKind::whitespace: return made_pretokenizer<WordOrSignSplit>();
    case fb::PretokenizerKind::whitespace_split:
      return made_pretokenizer<CharacterSplit>(&is_space, fb::Behavior::removed);
    case fb::PretokenizerKind::punctuation: return made_pretokenizer<CharacterSplit>(&is_punctuation, from.behavior());
    case fb::PretokenizerKind::digits:
      return made_pretokenizer<CharacterSplit>(
          &is_numeric, from.individual_digits() ? fb::Behavior::isolated : fb::Behavior::contiguous);
    case fb::PretokenizerKind::metaspace:
      return made_pretokenizer<Metaspace>(static_cast<char32_t>(from.character()), from.prepend_scheme(), from.split());
    case fb::PretokenizerKind::bert: return made_pretokenizer<BertSplit>();
    case fb::PretokenizerKind::char_delimiter:
      return made_pretokenizer<DelimiterSplit>(static_cast<char32_t>(from.character()));
    case fb::PretokenizerKind::unicode_scripts: return made_pretokenizer<UnicodeScripts>();
    case fb::PretokenizerKind::fixed_length:
      MOTE_REQUIRE(from.length() > 0, Code::kInvalidTokenizer, "FixedLength: length = 0: must be at least 1");
      return made_pretokenizer<FixedLength>(from.length());
  }
  return Status(Code::kInvalidTokenizer,
                format("pretokenizers: kind = %d: must be at most %d", static_cast<int>(from.kind()),
                       static_cast<int>(fb::PretokenizerKind::MAX)));
}

}  // namespace mote::tokenizer
