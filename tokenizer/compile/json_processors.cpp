#include "tokenizer/compile/json_parts.h"

namespace mote::tokenizer {
namespace {

constexpr const char* kSupportedProcessors =
    "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing or Sequence";

using TemplatePieces = std::vector<fb::TemplatePiece>;

constexpr int64_t kMaxTypeId = 0xFFFFFFFF;

Status append_special(const Field& piece, const Field& special_tokens, TemplatePieces& pieces) {
  MOTE_ASSIGN(const std::string name, piece["id"].text());
  MOTE_ASSIGN(const int64_t type_id, piece["type_id"].integer(0, kMaxTypeId));
  const Field list = special_tokens[name.c_str()]["ids"];
  MOTE_RETURN_IF_ERROR(list.require_array());
  for (size_t i = 0; i < list.json().size(); ++i) {
    MOTE_ASSIGN(const int64_t id, list[i].integer(0, kMaxTokenId));
    pieces.emplace_back(static_cast<int32_t>(id), static_cast<uint32_t>(type_id), i > 0);
  }
  return {};
}

Status append_sequence(const Field& piece, bool of_pair, TemplatePieces& pieces) {
  MOTE_ASSIGN(const std::string id, piece["id"].text());
  MOTE_ASSIGN(const int64_t type_id, piece["type_id"].integer(0, kMaxTypeId));
  if (id != "A" && !(of_pair && id == "B"))
    return piece["id"].error(of_pair ? "A or B" : "A, the only sequence of `single`");
  pieces.emplace_back(id == "A" ? -1 : -2, static_cast<uint32_t>(type_id), false);
  return {};
}

Status read_template(const Field& list, const Field& special_tokens, bool of_pair, TemplatePieces& pieces) {
  MOTE_RETURN_IF_ERROR(list.require_array());
  for (size_t i = 0; i < list.json().size(); ++i) {
    const Field special = list[i]["SpecialToken"];
    if (!special.is_null()) {
      MOTE_RETURN_IF_ERROR(append_special(special, special_tokens, pieces));
      continue;
    }
    MOTE_RETURN_IF_ERROR(append_sequence(list[i]["Sequence"], of_pair, pieces));
  }
  return {};
}

Status read_templates(const Field& field, fb::ProcessorT& made) {
  made.kind = fb::ProcessorKind::template_;
  MOTE_RETURN_IF_ERROR(read_template(field["single"], field["special_tokens"], false, made.pieces));
  return read_template(field["pair"], field["special_tokens"], true, made.pair_pieces);
}

// ["[SEP]", 102]
Result<int32_t> read_token_id(const Field& field) {
  if (!field.json().is_array() || field.json().size() != 2) return field.error("[token, id]");
  MOTE_ASSIGN(const int64_t id, field[size_t{1}].integer(0, kMaxTokenId));
  return static_cast<int32_t>(id);
}

Status read_surrounding(const Field& field, fb::ProcessorT& made) {
  MOTE_ASSIGN(made.cls, read_token_id(field["cls"]));
  MOTE_ASSIGN(made.sep, read_token_id(field["sep"]));
  return {};
}

Status read_trimming(const Field& field, fb::ProcessorT& made) {
  MOTE_ASSIGN(made.trim_offsets, field["trim_offsets"].boolean(true));
  MOTE_ASSIGN(made.add_prefix_space, field["add_prefix_space"].boolean(true));
  return {};
}

Status read_one_processor(const Field& field, const std::string& type, fb::ProcessorT& made) {
  if (type == "TemplateProcessing") return read_templates(field, made);
  if (type == "ByteLevel") {
    made.kind = fb::ProcessorKind::byte_level;
    return read_trimming(field, made);
  }
  if (type == "BertProcessing") {
    made.kind = fb::ProcessorKind::bert;
    return read_surrounding(field, made);
  }
  if (type != "RobertaProcessing") return field["type"].error(kSupportedProcessors);
  made.kind = fb::ProcessorKind::roberta;
  MOTE_RETURN_IF_ERROR(read_surrounding(field, made));
  return read_trimming(field, made);
}

}  // namespace

Status read_processors(const Field& field, std::vector<std::unique_ptr<fb::ProcessorT>>& processors) {
  return read_components(field, "processors", processors,
                         [&](const Field& part, const std::string& type, fb::ProcessorT& made) -> Status {
                           // Behind a template a text is no longer one sequence, so a second template would have to put
                           // it together as a pair.
                           for (const auto& earlier : processors) {
                             const bool splits = earlier->kind == fb::ProcessorKind::template_ &&
                                                 (earlier->pieces.size() != 1 || earlier->pair_pieces.size() > 2);
                             if (splits && type == "TemplateProcessing")
                               return part["type"].error("no second TemplateProcessing");
                           }
                           return read_one_processor(part, type, made);
                         });
}

}  // namespace mote::tokenizer
