#include "tokenizer/decode/sentencepiece.h"

#include "base/utf8.h"
#include "tokenizer/model/piece_type.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

// Every byte that begins no character becomes U+FFFD on its own.
std::string characters_of(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Character character = first_utf8_character(bytes);
    const bool valid = character.kind == Utf8Kind::kValid;
    text += valid ? bytes.substr(0, character.length) : kReplacementCharacter;
    bytes.remove_prefix(valid ? character.length : 1);
  }
  return text;
}

}  // namespace

SentencePieceDecoder::SentencePieceDecoder(Options options, const fb::Segment& segment)
    : options_(std::move(options)), types_(segment.model()->piece_types()), byte_ids_(segment.model()->byte_ids()) {}

uint8_t SentencePieceDecoder::type_of(int32_t id) const {
  if (types_ == nullptr || id < 0 || static_cast<uint32_t>(id) >= types_->size()) return kPieceNormal;
  return types_->Get(static_cast<uint32_t>(id));
}

Status SentencePieceDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  std::string text;
  std::string bytes;
  const bool drops = options_.add_dummy_prefix || options_.remove_extra_whitespaces;
  bool at_start = true;
  bool dropped = false;
  const auto flush = [&] {
    text += characters_of(bytes);
    bytes.clear();
  };
  for (const TokenText& token : tokens) {
    const uint8_t type = type_of(token.id);
    if (type == kPieceByte && byte_ids_ != nullptr) {
      for (uint32_t byte = 0; byte < byte_ids_->size(); ++byte) {
        if (byte_ids_->Get(byte) == token.id) bytes += static_cast<char>(static_cast<unsigned char>(byte));
      }
      continue;
    }
    flush();
    if (dropped || !text.empty()) at_start = false;
    dropped = false;
    if (type == kPieceControl) continue;
    if (type == kPieceUnknown) {
      text += options_.unknown_surface;
      continue;
    }
    std::string_view piece = token.text;
    if (at_start && drops && piece.substr(0, kSpaceSymbol.size()) == kSpaceSymbol) {
      piece.remove_prefix(kSpaceSymbol.size());
      dropped = !options_.remove_extra_whitespaces;
    }
    text += replace_all(piece, kSpaceSymbol, " ");
  }
  flush();
  tokens = {{std::move(text), -1}};
  return {};
}

}  // namespace mote::tokenizer
