#include "tokenizer/normalize/normalizer.h"

#include "base/parts.h"
#include "tokenizer/normalize/bert.h"
#include "tokenizer/normalize/byte_level.h"
#include "tokenizer/normalize/lowercase.h"
#include "tokenizer/normalize/nmt.h"
#include "tokenizer/normalize/precompiled.h"
#include "tokenizer/normalize/prepend.h"
#include "tokenizer/normalize/replace.h"
#include "tokenizer/normalize/sentencepiece.h"
#include "tokenizer/normalize/strip.h"
#include "tokenizer/normalize/strip_accents.h"
#include "tokenizer/normalize/unicode_form.h"
#include "tokenizer/parts.h"
#include "tokenizer/segment/text.h"

namespace mote::tokenizer {
namespace {

using fb::NormalizerKind;
using MadeNormalizer = Result<std::unique_ptr<Normalizer>>;

template <NormalizerKind kKind, typename T, typename... Arguments>
MadeNormalizer made_normalizer(Arguments&&... arguments) {
  MOTE_REQUIRE_PART(part_of(kKind), Code::kInvalidTokenizer);
  return std::unique_ptr<Normalizer>(std::make_unique<T>(std::forward<Arguments>(arguments)...));
}

Result<Charsmap> charsmap_of(const fb::Normalizer& from) {
  if (from.charsmap() == nullptr) return Charsmap();
  return Charsmap::open({from.charsmap()->data(), from.charsmap()->size()});
}

MadeNormalizer make_replace(const fb::Normalizer& from) {
  MOTE_ASSIGN(Pattern pattern, Pattern::make(text_of(from.pattern()), from.is_regex()));
  return made_normalizer<NormalizerKind::replace, Replace>(std::move(pattern), std::string(text_of(from.content())));
}

MadeNormalizer make_sentencepiece(const fb::Normalizer& from) {
  MOTE_ASSIGN(const Charsmap map, charsmap_of(from));
  const SentencePieceNormalizer::Options options{from.add_dummy_prefix(), from.remove_extra_whitespaces(),
                                                 from.escape_whitespaces(), from.whitespace_as_suffix()};
  return made_normalizer<NormalizerKind::sentencepiece, SentencePieceNormalizer>(options, map,
                                                                                 TrieView(from.user_defined()));
}

}  // namespace

MadeNormalizer make_normalizer(const fb::Normalizer& from) {
  switch (from.kind()) {
    case NormalizerKind::nfc: return made_normalizer<NormalizerKind::nfc, UnicodeForm>(false, true);
    case NormalizerKind::nfd: return made_normalizer<NormalizerKind::nfd, UnicodeForm>(false, false);
    case NormalizerKind::nfkc: return made_normalizer<NormalizerKind::nfkc, UnicodeForm>(true, true);
    case NormalizerKind::nfkd: return made_normalizer<NormalizerKind::nfkd, UnicodeForm>(true, false);
    case NormalizerKind::lowercase: return made_normalizer<NormalizerKind::lowercase, Lowercase>();
    case NormalizerKind::strip: return made_normalizer<NormalizerKind::strip, Strip>(from.left(), from.right());
    case NormalizerKind::strip_accents: return made_normalizer<NormalizerKind::strip_accents, StripAccents>();
    case NormalizerKind::replace: return make_replace(from);
    case NormalizerKind::prepend:
      return made_normalizer<NormalizerKind::prepend, Prepend>(std::string(text_of(from.content())));
    case NormalizerKind::precompiled: {
      MOTE_ASSIGN(const Charsmap map, charsmap_of(from));
      return made_normalizer<NormalizerKind::precompiled, Precompiled>(map);
    }
    case NormalizerKind::bert:
      return made_normalizer<NormalizerKind::bert, BertNormalizer>(BertNormalizer::Options{
          from.clean_text(), from.handle_chinese_chars(), from.strip_accents(), from.lowercase()});
    case NormalizerKind::nmt: return made_normalizer<NormalizerKind::nmt, Nmt>();
    case NormalizerKind::byte_level: return made_normalizer<NormalizerKind::byte_level, ByteLevelNormalizer>();
    case NormalizerKind::sentencepiece: return make_sentencepiece(from);
  }
  return Status(Code::kInvalidTokenizer, format("normalizers: kind = %d: must be at most %d",
                                                static_cast<int>(from.kind()), static_cast<int>(NormalizerKind::MAX)));
}

}  // namespace mote::tokenizer
