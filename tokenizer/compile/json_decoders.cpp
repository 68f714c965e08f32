#include "tokenizer/compile/json_parts.h"
#include "tokenizer/compile/json_pattern.h"

namespace mote::tokenizer {
namespace {

constexpr int64_t kMaxStrip = 1024;
constexpr const char* kSupportedDecoders =
    "ByteLevel, WordPiece, Metaspace, BPEDecoder, CTC, Replace, Fuse, Strip, ByteFallback or Sequence";

Status read_strip(const Field& field, fb::DecoderT& made) {
  made.kind = fb::DecoderKind::strip;
  MOTE_ASSIGN(const char32_t content, field["content"].character());
  made.character = content;
  MOTE_ASSIGN(const int64_t start, field["start"].integer(0, kMaxStrip));
  MOTE_ASSIGN(const int64_t stop, field["stop"].integer(0, kMaxStrip));
  made.start = static_cast<uint32_t>(start);
  made.stop = static_cast<uint32_t>(stop);
  return {};
}

Status read_ctc(const Field& field, fb::DecoderT& made) {
  made.kind = fb::DecoderKind::ctc;
  MOTE_ASSIGN(made.pattern, field["pad_token"].text());
  MOTE_ASSIGN(made.content, field["word_delimiter_token"].text());
  MOTE_ASSIGN(made.cleanup, field["cleanup"].boolean(true));
  return {};
}

Status read_metaspace(const Field& field, fb::DecoderT& made) {
  made.kind = fb::DecoderKind::metaspace;
  MOTE_ASSIGN(const char32_t replacement, field["replacement"].character());
  made.character = replacement;
  MOTE_ASSIGN(made.prepend_scheme, read_prepend_scheme(field));
  return {};
}

Status read_one_decoder(const Field& field, const std::string& type, fb::DecoderT& made) {
  if (type == "Strip") return read_strip(field, made);
  if (type == "CTC") return read_ctc(field, made);
  if (type == "Metaspace") return read_metaspace(field, made);
  if (type == "WordPiece") {
    made.kind = fb::DecoderKind::wordpiece;
    MOTE_ASSIGN(made.pattern, field["prefix"].text());
    MOTE_ASSIGN(made.cleanup, field["cleanup"].boolean(true));
    return {};
  }
  if (type == "BPEDecoder") {
    made.kind = fb::DecoderKind::bpe;
    MOTE_ASSIGN(made.pattern, field["suffix"].text());
    return {};
  }
  if (type == "Replace") {
    made.kind = fb::DecoderKind::replace;
    MOTE_RETURN_IF_ERROR(read_pattern(field["pattern"], made.pattern, made.is_regex));
    MOTE_ASSIGN(made.content, field["content"].text());
    return {};
  }
  if (type == "ByteLevel")
    made.kind = fb::DecoderKind::byte_level;
  else if (type == "Fuse")
    made.kind = fb::DecoderKind::fuse;
  else if (type == "ByteFallback")
    made.kind = fb::DecoderKind::byte_fallback;
  else
    return field["type"].error(kSupportedDecoders);
  return {};
}

}  // namespace

Status read_decoders(const Field& field, std::vector<std::unique_ptr<fb::DecoderT>>& decoders) {
  MOTE_RETURN_IF_ERROR(read_components(field, "decoders", decoders, read_one_decoder));
  if (field.is_null() || !decoders.empty()) return {};
  // Without a decoder tokens have spaces between them, behind an empty Sequence they have none.
  decoders.push_back(std::make_unique<fb::DecoderT>());
  decoders.back()->kind = fb::DecoderKind::fuse;
  return {};
}

}  // namespace mote::tokenizer
