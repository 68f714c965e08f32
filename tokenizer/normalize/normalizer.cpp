#include "tokenizer/normalize/normalizer.h"

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
#include "tokenizer/segment/text.h"

namespace mote::tokenizer {
namespace {

using MadeNormalizer = Result<std::unique_ptr<Normalizer>>;

template <typename T, typename... Arguments>
MadeNormalizer made_normalizer(Arguments&&... arguments) {
  return std::unique_ptr<Normalizer>(std::make_unique<T>(std::forward<Arguments>(arguments)...));
}

Result<Charsmap> charsmap_of(const fb::Normalizer& from) {
  if (from.charsmap() == nullptr) return Charsmap();
  return Charsmap::open({from.charsmap()->data(), from.charsmap()->size()});
}

MadeNormalizer make_replace(const fb::Normalizer& from) {
  MOTE_ASSIGN(Pattern pattern, Pattern::make(text_of(from.pattern()), from.is_regex()));
  return made_normalizer<Replace>(std::move(pattern), std::string(text_of(from.content())));
}

MadeNormalizer make_sentencepiece(const fb::Normalizer& from) {
  MOTE_ASSIGN(const Charsmap map, charsmap_of(from));
  const SentencePieceNormalizer::Options options{from.add_dummy_prefix(), from.remove_extra_whitespaces(),
                                                 from.escape_whitespaces(), from.whitespace_as_suffix()};
  return made_normalizer<SentencePieceNormalizer>(options, map, TrieView(from.user_defined()));
}

}  // namespace

MadeNormalizer make_normalizer(const fb::Normalizer& from) {
  switch (from.kind()) {
    case fb::NormalizerKind::nfc: return made_normalizer<UnicodeForm>(false, true);
    case fb::NormalizerKind::nfd: return made_normalizer<UnicodeForm>(false, false);
    case fb::NormalizerKind::nfkc: return made_normalizer<UnicodeForm>(true, true);
    case fb::NormalizerKind::nfkd: return made_normalizer<UnicodeForm>(true, false);
    case fb::NormalizerKind::lowercase: return made_normalizer<Lowercase>();
    case fb::NormalizerKind::strip: return made_normalizer<Strip>(from.left(), from.right());
    case fb::NormalizerKind::strip_accents: return made_normalizer<StripAccents>();
    case fb::NormalizerKind::replace: return make_replace(from);
    case fb::NormalizerKind::prepend: return made_normalizer<Prepend>(std::string(text_of(from.content())));
    case fb::NormalizerKind::precompiled: {
      MOTE_ASSIGN(const Charsmap map, charsmap_of(from));
      return made_normalizer<Precompiled>(map);
    }
    case fb::NormalizerKind::bert:
      return made_normalizer<BertNormalizer>(BertNormalizer::Options{from.clean_text(), from.handle_chinese_chars(),
                                                                     from.strip_accents(), from.lowercase()});
    case fb::NormalizerKind::nmt: return made_normalizer<Nmt>();
    case fb::NormalizerKind::byte_level: return made_normalizer<ByteLevelNormalizer>();
    case fb::NormalizerKind::sentencepiece: return make_sentencepiece(from);
  }
  return Status(Code::kInvalidTokenizer,
                format("normalizers: kind = %d: must be at most %d", static_cast<int>(from.kind()),
                       static_cast<int>(fb::NormalizerKind::MAX)));
}

}  // namespace mote::tokenizer
