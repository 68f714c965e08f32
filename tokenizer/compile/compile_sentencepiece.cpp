#include <algorithm>
#include <cmath>
#include <map>

#include "base/utf8.h"
#include "tokenizer/compile/compile.h"
#include "tokenizer/compile/draft.h"
#include "tokenizer/compile/protobuf.h"
#include "tokenizer/compile/table_builder.h"
#include "tokenizer/model/piece_type.h"
#include "tokenizer/normalize/charsmap.h"

namespace mote::tokenizer {
namespace {

constexpr size_t kMaxPieceBytes = 4096;

struct SentencePiece {
  std::string text;
  float score = 0;
  uint8_t type = kPieceNormal;
};

// What encoding and decoding need of a ModelProto. Numbers of fields are those of sentencepiece_model.proto.
struct ModelProto {
  std::vector<SentencePiece> pieces;
  uint64_t model_type = 1;  // 1: Unigram, 2: BPE
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool has_denormalizer = false;
};

Status damaged(const std::string& where) {
  return {Code::kInvalidTokenizer, "SentencePiece model: " + where + " is no protocol buffer of this kind"};
}

Status read_piece(std::string_view message, ModelProto& model) {
  const std::string where = "pieces[" + std::to_string(model.pieces.size()) + "]";
  SentencePiece piece;
  ProtobufReader reader(message);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 1 && field.wire_type == 2) piece.text = field.bytes;
    if (field.number == 2 && field.wire_type == 5) piece.score = field.as_float();
    if (field.number == 3 && field.wire_type == 0) {
      MOTE_REQUIRE(field.value >= kPieceNormal && field.value <= kPieceByte, Code::kInvalidTokenizer,
                   "SentencePiece model: %s.type = %llu: must be 1 to 6", where.c_str(),
                   static_cast<unsigned long long>(field.value));
      piece.type = static_cast<uint8_t>(field.value);
    }
  }
  if (!reader.ok()) return damaged(where);
  MOTE_REQUIRE(!piece.text.empty() && piece.text.size() <= kMaxPieceBytes && is_valid_utf8(piece.text),
               Code::kInvalidTokenizer, "SentencePiece model: %s.piece has %zu bytes: must be 1 to %zu of UTF-8",
               where.c_str(), piece.text.size(), kMaxPieceBytes);
  MOTE_REQUIRE(std::isfinite(piece.score), Code::kInvalidTokenizer, "SentencePiece model: %s.score: must be finite",
               where.c_str());
  model.pieces.push_back(std::move(piece));
  return {};
}

Status read_trainer(std::string_view message, ModelProto& model) {
  ProtobufReader reader(message);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 3 && field.wire_type == 0) model.model_type = field.value;
    if (field.number == 24 && field.wire_type == 0) model.whitespace_as_suffix = field.value != 0;
    if (field.number == 35 && field.wire_type == 0) model.byte_fallback = field.value != 0;
    if (field.number == 44 && field.wire_type == 2) model.unknown_surface = replace_invalid_utf8(field.bytes);
  }
  return reader.ok() ? Status() : damaged("trainer_spec");
}

Status read_normalizer(std::string_view message, ModelProto& model) {
  ProtobufReader reader(message);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 2 && field.wire_type == 2) model.charsmap = field.bytes;
    if (field.number == 3 && field.wire_type == 0) model.add_dummy_prefix = field.value != 0;
    if (field.number == 4 && field.wire_type == 0) model.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5 && field.wire_type == 0) model.escape_whitespaces = field.value != 0;
  }
  return reader.ok() ? Status() : damaged("normalizer_spec");
}

Status read_denormalizer(std::string_view message, ModelProto& model) {
  ProtobufReader reader(message);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 2 && !field.bytes.empty()) model.has_denormalizer = true;
  }
  return reader.ok() ? Status() : damaged("denormalizer_spec");
}

Result<ModelProto> read_model(std::string_view bytes) {
  ModelProto model;
  ProtobufReader reader(bytes);
  for (ProtobufField field; reader.next(field);) {
    if (field.wire_type != 2) continue;
    if (field.number == 1) MOTE_RETURN_IF_ERROR(read_piece(field.bytes, model));
    if (field.number == 2) MOTE_RETURN_IF_ERROR(read_trainer(field.bytes, model));
    if (field.number == 3) MOTE_RETURN_IF_ERROR(read_normalizer(field.bytes, model));
    if (field.number == 5) MOTE_RETURN_IF_ERROR(read_denormalizer(field.bytes, model));
  }
  if (!reader.ok()) return damaged("the file");
  MOTE_REQUIRE(!model.pieces.empty(), Code::kInvalidTokenizer, "SentencePiece model: pieces: must be at least one");
  MOTE_REQUIRE(model.pieces.size() <= static_cast<size_t>(kMaxTokenId), Code::kInvalidTokenizer,
               "SentencePiece model: %zu pieces: at most %d", model.pieces.size(), kMaxTokenId);
  MOTE_REQUIRE(model.model_type == 1 || model.model_type == 2, Code::kInvalidTokenizer,
               "SentencePiece model: trainer_spec.model_type = %llu: must be 1 (Unigram) or 2 (BPE)",
               static_cast<unsigned long long>(model.model_type));
  MOTE_REQUIRE(!model.has_denormalizer, Code::kInvalidTokenizer,
               "SentencePiece model: denormalizer_spec.precompiled_charsmap: must be empty");
  return model;
}

bool is_matched(uint8_t type) { return type == kPieceNormal || type == kPieceUserDefined || type == kPieceUnused; }

int named_byte(const std::string& text) {
  for (int byte = 0; byte < 256; ++byte) {
    if (text == format("<0x%02X>", static_cast<unsigned>(byte))) return byte;
  }
  return -1;
}

// Fills the tables of the model. Two kinds of pieces have a space of names each.
class PieceTables {
 public:
  Status add(const SentencePiece& piece, int32_t id, bool byte_fallback, fb::ModelT& model) {
    const std::string where = "SentencePiece model: pieces[" + std::to_string(id) + "]";
    const bool matched = is_matched(piece.type);
    MOTE_REQUIRE((matched ? matched_ : reserved_).emplace(piece.text, id).second, Code::kInvalidTokenizer,
                 "%s.piece = \"%s\": must be a text that no other piece has", where.c_str(), piece.text.c_str());
    if (matched) strings_.emplace_back(piece.text, id);
    if (piece.type == kPieceUserDefined) user_defined_.emplace_back(piece.text, id);
    if (piece.type == kPieceUnknown) {
      MOTE_REQUIRE(model.unk_id < 0, Code::kInvalidTokenizer,
                   "%s.type = 2: must be the unknown piece of one piece only", where.c_str());
      model.unk_id = id;
    }
    if (piece.type == kPieceByte) {
      const int byte = named_byte(piece.text);
      MOTE_REQUIRE(byte_fallback && byte >= 0, Code::kInvalidTokenizer,
                   "%s.piece = \"%s\": must be <0x00> to <0xFF>, in a model with byte_fallback", where.c_str(),
                   piece.text.c_str());
      model.byte_ids[static_cast<size_t>(byte)] = id;
    }
    model.scores.push_back(static_cast<double>(piece.score));
    model.piece_types.push_back(piece.type);
    if (piece.type != kPieceNormal) return {};
    model.min_score = std::min(model.min_score, static_cast<double>(piece.score));
    return {};
  }

  std::unique_ptr<fb::TrieT> trie() const { return build_trie(strings_); }
  std::unique_ptr<fb::TrieT> user_defined() const { return build_trie(user_defined_); }

 private:
  std::map<std::string, int32_t> matched_;
  std::map<std::string, int32_t> reserved_;
  std::vector<std::pair<std::string, int32_t>> strings_;
  std::vector<std::pair<std::string, int32_t>> user_defined_;
};

Status fill_model(const ModelProto& proto, Draft& draft, PieceTables& tables) {
  draft.segment.model = std::make_unique<fb::ModelT>();
  fb::ModelT& model = *draft.segment.model;
  const bool bpe = proto.model_type == 2;
  model.kind = bpe ? fb::ModelKind::sentencepiece_bpe : fb::ModelKind::sentencepiece_unigram;
  draft.segment.kind = bpe ? "SentencePiece BPE" : "SentencePiece Unigram";
  model.byte_fallback = proto.byte_fallback;
  model.byte_ids.assign(256, -1);
  model.min_score = HUGE_VAL;
  for (size_t i = 0; i < proto.pieces.size(); ++i) {
    const SentencePiece& piece = proto.pieces[i];
    const auto id = static_cast<int32_t>(i);
    MOTE_RETURN_IF_ERROR(tables.add(piece, id, proto.byte_fallback, model));
    if (is_matched(piece.type))
      draft.set_model_token(id, piece.text);
    else
      draft.set_added_token(id, piece.text);
    if (piece.type == kPieceControl) draft.mark_special(id);
  }
  MOTE_REQUIRE(model.unk_id >= 0, Code::kInvalidTokenizer, "SentencePiece model: no piece of type 2, the unknown one");
  if (proto.byte_fallback) {
    const auto missing = std::find(model.byte_ids.begin(), model.byte_ids.end(), -1);
    MOTE_REQUIRE(missing == model.byte_ids.end(), Code::kInvalidTokenizer,
                 "SentencePiece model: <0x%02X> is missing: byte_fallback needs all 256",
                 static_cast<unsigned>(missing - model.byte_ids.begin()));
  }
  if (!bpe) model.trie = tables.trie();
  model.user_defined = tables.user_defined();
  return {};
}

Status fill_normalizer(const ModelProto& proto, const PieceTables& tables, Draft& draft) {
  auto normalizer = std::make_unique<fb::NormalizerT>();
  normalizer->kind = fb::NormalizerKind::sentencepiece;
  normalizer->charsmap.assign(proto.charsmap.begin(), proto.charsmap.end());
  MOTE_ASSIGN(const Charsmap map, Charsmap::open(normalizer->charsmap));
  MOTE_RETURN_IF_ERROR(map.check());
  normalizer->add_dummy_prefix = proto.add_dummy_prefix;
  normalizer->remove_extra_whitespaces = proto.remove_extra_whitespaces;
  normalizer->escape_whitespaces = proto.escape_whitespaces;
  normalizer->whitespace_as_suffix = proto.whitespace_as_suffix;
  normalizer->user_defined = tables.user_defined();
  draft.segment.normalizers.push_back(std::move(normalizer));
  return {};
}

}  // namespace

Result<std::vector<std::byte>> compile_sentencepiece(std::string_view bytes) {
  MOTE_ASSIGN(const ModelProto proto, read_model(bytes));
  Draft draft;
  PieceTables tables;
  MOTE_RETURN_IF_ERROR(fill_model(proto, draft, tables));
  MOTE_RETURN_IF_ERROR(fill_normalizer(proto, tables, draft));
  auto decoder = std::make_unique<fb::DecoderT>();
  decoder->kind = fb::DecoderKind::sentencepiece;
  decoder->add_dummy_prefix = proto.add_dummy_prefix;
  decoder->remove_extra_whitespaces = proto.remove_extra_whitespaces;
  decoder->content = proto.unknown_surface;
  draft.segment.decoders.push_back(std::move(decoder));
  return finish(std::move(draft));
}

}  // namespace mote::tokenizer
