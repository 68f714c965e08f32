// What each token adds to a text, for who must know what a token would write before it is written.
#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/tokenizer.h"

namespace mote {
namespace {

using tokenizer::fb::DecoderKind;

// Decoders under which the text of tokens is that of each one behind another, but for the first.
bool joins_plainly(DecoderKind kind) {
  switch (kind) {
    case DecoderKind::byte_level:
    case DecoderKind::byte_fallback:
    case DecoderKind::fuse:
    case DecoderKind::metaspace:
    case DecoderKind::replace:
    case DecoderKind::sentencepiece:
    case DecoderKind::strip: return true;
    case DecoderKind::bpe:
    case DecoderKind::ctc:
    case DecoderKind::wordpiece: return false;
  }
  return false;
}

int hexadecimal_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The byte of "<0x0A>", -1: another token.
int named_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = hexadecimal_value(token[3]);
  const int low = hexadecimal_value(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace

Result<std::vector<std::string>> Tokenizer::token_texts() const {
  const auto& decoders = *pipeline_->segment().decoders();
  bool has_named_bytes = false;
  for (const tokenizer::fb::Decoder* decoder : decoders) {
    has_named_bytes |= decoder->kind() == DecoderKind::byte_fallback || decoder->kind() == DecoderKind::sentencepiece;
    MOTE_REQUIRE(joins_plainly(decoder->kind()), Code::kInvalidArgument,
                 "the tokenizer's decoder %s writes a token in different ways beside different others, so it cannot be "
                 "told what a token adds to a text",
                 EnumNameDecoderKind(decoder->kind()));
  }
  MOTE_REQUIRE(decoders.size() > 0, Code::kInvalidArgument,
               "the tokenizer has no decoder: its tokens have spaces between them");
  const bool spells_bytes = decoders.size() == 1 && decoders.Get(0)->kind() == DecoderKind::byte_level;
  int32_t anchor = 0;  // stands in front, as the first token may be written differently
  while (anchor < num_ids() && (decode({anchor}, true).size() != 1 || decode({anchor, anchor}, true).size() != 2))
    ++anchor;
  MOTE_REQUIRE(anchor < num_ids() || spells_bytes, Code::kInvalidArgument, "the tokenizer has no token of one letter");
  std::vector<std::string> texts(static_cast<size_t>(num_ids()));
  for (int32_t id = 0; id < num_ids(); ++id) {
    std::string& text = texts[static_cast<size_t>(id)];
    if (!has_token(id) || is_special(id) || id == pipeline_->segment().model()->unk_id()) continue;
    if (is_byte_level()) {
      text = token_bytes(id);
    } else if (spells_bytes) {
      text = tokenizer::spelled_bytes(token_text(id)).value_or(token_text(id));
    } else if (const int byte = has_named_bytes ? named_byte(token_text(id)) : -1; byte >= 0) {
      text = static_cast<char>(byte);
    } else if (const std::string both = decode({anchor, id}, true); !both.empty()) {
      text = both.substr(1);
    }
  }
  return texts;
}

}  // namespace mote
