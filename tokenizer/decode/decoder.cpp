#include "tokenizer/decode/decoder.h"

#include "tokenizer/decode/decoders.h"
#include "tokenizer/decode/sentencepiece.h"
#include "tokenizer/segment/text.h"

namespace mote::tokenizer {
namespace {

using MadeDecoder = Result<std::unique_ptr<Decoder>>;

template <typename T, typename... Arguments>
MadeDecoder made_decoder(Arguments&&... arguments) {
  return std::unique_ptr<Decoder>(std::make_unique<T>(std::forward<Arguments>(arguments)...));
}

}  // namespace

MadeDecoder make_decoder(const fb::Decoder& from, const fb::Segment& segment) {
  std::string pattern(text_of(from.pattern()));
  std::string content(text_of(from.content()));
  switch (from.kind()) {
    case fb::DecoderKind::byte_level: return made_decoder<ByteLevelDecoder>();
    case fb::DecoderKind::wordpiece: return made_decoder<WordPieceDecoder>(std::move(pattern), from.cleanup());
    case fb::DecoderKind::metaspace:
      return made_decoder<MetaspaceDecoder>(static_cast<char32_t>(from.character()),
                                            from.prepend_scheme() != fb::PrependScheme::never);
    case fb::DecoderKind::bpe: return made_decoder<BpeDecoder>(std::move(pattern));
    case fb::DecoderKind::ctc: return made_decoder<CtcDecoder>(std::move(pattern), std::move(content), from.cleanup());
    case fb::DecoderKind::replace: {
      MOTE_ASSIGN(Pattern compiled, Pattern::make(pattern, from.is_regex()));
      return made_decoder<ReplaceDecoder>(std::move(compiled), std::move(content));
    }
    case fb::DecoderKind::fuse: return made_decoder<FuseDecoder>();
    case fb::DecoderKind::strip:
      return made_decoder<StripDecoder>(static_cast<char32_t>(from.character()), from.start(), from.stop());
    case fb::DecoderKind::byte_fallback: return made_decoder<ByteFallbackDecoder>();
    case fb::DecoderKind::sentencepiece:
      return made_decoder<SentencePieceDecoder>(
          SentencePieceDecoder::Options{from.add_dummy_prefix(), from.remove_extra_whitespaces(), std::move(content)},
          segment);
  }
  return Status(Code::kInvalidTokenizer, format("decoders: kind = %d: must be at most %d",
                                                static_cast<int>(from.kind()), static_cast<int>(fb::DecoderKind::MAX)));
}

}  // namespace mote::tokenizer
