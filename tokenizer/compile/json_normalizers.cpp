#include "tokenizer/compile/base64.h"
#include "tokenizer/compile/json_parts.h"
#include "tokenizer/compile/json_pattern.h"
#include "tokenizer/normalize/charsmap.h"

namespace mote::tokenizer {
namespace {

constexpr const char* kSupportedNormalizers =
    "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, Prepend, Precompiled, BertNormalizer, Nmt, "
    "ByteLevel or Sequence";

struct Simple {
  std::string_view type;
  fb::NormalizerKind kind;
};
constexpr Simple kSimple[] = {{"NFC", fb::NormalizerKind::nfc},
                              {"NFD", fb::NormalizerKind::nfd},
                              {"NFKC", fb::NormalizerKind::nfkc},
                              {"NFKD", fb::NormalizerKind::nfkd},
                              {"Lowercase", fb::NormalizerKind::lowercase},
                              {"StripAccents", fb::NormalizerKind::strip_accents},
                              {"Nmt", fb::NormalizerKind::nmt},
                              {"ByteLevel", fb::NormalizerKind::byte_level}};

Status read_precompiled(const Field& field, fb::NormalizerT& made) {
  made.kind = fb::NormalizerKind::precompiled;
  MOTE_ASSIGN(const std::string text, field["precompiled_charsmap"].text());
  auto bytes = decode_base64(text);
  if (!bytes.has_value()) return field["precompiled_charsmap"].error("base64");
  made.charsmap.assign(bytes->begin(), bytes->end());
  const auto map = Charsmap::open(made.charsmap);
  Status status = map.ok() ? (*map).check() : map.status();
  if (!status.ok()) return field["precompiled_charsmap"].error("a map of SentencePiece (" + status.message() + ")");
  return {};
}

Status read_bert(const Field& field, fb::NormalizerT& made) {
  made.kind = fb::NormalizerKind::bert;
  MOTE_ASSIGN(made.clean_text, field["clean_text"].boolean(true));
  MOTE_ASSIGN(made.handle_chinese_chars, field["handle_chinese_chars"].boolean(true));
  MOTE_ASSIGN(made.lowercase, field["lowercase"].boolean(true));
  MOTE_ASSIGN(made.strip_accents, field["strip_accents"].boolean(made.lowercase));
  return {};
}

Status read_one_normalizer(const Field& field, const std::string& type, fb::NormalizerT& made) {
  for (const Simple& simple : kSimple) {
    if (simple.type != type) continue;
    made.kind = simple.kind;
    return {};
  }
  if (type == "Strip") {
    made.kind = fb::NormalizerKind::strip;
    MOTE_ASSIGN(made.left, field["strip_left"].boolean(true));
    MOTE_ASSIGN(made.right, field["strip_right"].boolean(true));
    return {};
  }
  if (type == "Replace") {
    made.kind = fb::NormalizerKind::replace;
    MOTE_RETURN_IF_ERROR(read_pattern(field["pattern"], made.pattern, made.is_regex));
    MOTE_ASSIGN(made.content, field["content"].text());
    return {};
  }
  if (type == "Prepend") {
    made.kind = fb::NormalizerKind::prepend;
    MOTE_ASSIGN(made.content, field["prepend"].text());
    return {};
  }
  if (type == "Precompiled") return read_precompiled(field, made);
  if (type == "BertNormalizer" || type == "Bert") return read_bert(field, made);
  return field["type"].error(kSupportedNormalizers);
}

}  // namespace

Status read_normalizers(const Field& field, std::vector<std::unique_ptr<fb::NormalizerT>>& normalizers) {
  return read_components(field, "normalizers", normalizers, read_one_normalizer);
}

}  // namespace mote::tokenizer
