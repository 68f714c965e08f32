#include <algorithm>

#include "tokenizer/compile/compile.h"
#include "tokenizer/compile/json_parts.h"

namespace mote::tokenizer {
namespace {

// Templates may only name ids that some token has.
Status check_template_ids(const Draft& draft) {
  const auto num_ids = static_cast<int32_t>(std::max(draft.model_tokens.size(), draft.added_tokens.size()));
  for (const auto& processor : draft.segment.processors) {
    std::vector<int32_t> ids{processor->cls, processor->sep};
    if (processor->kind == fb::ProcessorKind::template_) ids.clear();
    if (processor->kind == fb::ProcessorKind::byte_level) ids.clear();
    for (const fb::TemplatePiece& piece : processor->pieces) ids.push_back(piece.id());
    for (const fb::TemplatePiece& piece : processor->pair_pieces) ids.push_back(piece.id());
    for (const int32_t id : ids) {
      MOTE_REQUIRE(id < num_ids, Code::kInvalidTokenizer,
                   "tokenizer.json: post_processor: id %d: must be below %d, the number of ids", id, num_ids);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> compile_json(std::string_view text) {
  MOTE_ASSIGN(const Json json, parse_json(text));
  const Field root(json, "");
  Draft draft;
  MOTE_RETURN_IF_ERROR(read_normalizers(root["normalizer"], draft.segment.normalizers));
  MOTE_RETURN_IF_ERROR(read_pretokenizers(root["pre_tokenizer"], draft.segment.pretokenizers));
  MOTE_RETURN_IF_ERROR(read_processors(root["post_processor"], draft.segment.processors));
  MOTE_RETURN_IF_ERROR(read_decoders(root["decoder"], draft.segment.decoders));
  MOTE_RETURN_IF_ERROR(read_model(root["model"], draft));
  const auto is_present = [](const std::optional<std::string>& token) { return token.has_value(); };
  const auto size =
      static_cast<size_t>(std::count_if(draft.model_tokens.begin(), draft.model_tokens.end(), is_present));
  MOTE_RETURN_IF_ERROR(read_added_tokens(root["added_tokens"], size, draft));
  MOTE_RETURN_IF_ERROR(check_template_ids(draft));
  return finish(std::move(draft));
}

}  // namespace mote::tokenizer
