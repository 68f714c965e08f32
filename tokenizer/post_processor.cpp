#include "tokenizer/post_processor.h"

#include "tokenizer/model/bpe.h"

namespace mote::tokenizer {
namespace {

Status append_special(const Field& piece, const Field& special_tokens, std::vector<int32_t>& ids) {
  MOTE_ASSIGN(const std::string name, piece["id"].text());
  const Field list = special_tokens[name.c_str()]["ids"];
  MOTE_RETURN_IF_ERROR(list.require_array());
  for (size_t i = 0; i < list.json().size(); ++i) {
    MOTE_ASSIGN(const int64_t id, list[i].integer(0, kMaxTokenId));
    ids.push_back(static_cast<int32_t>(id));
  }
  return {};
}

}  // namespace

Result<PostProcessor> PostProcessor::make(const Field& field) {
  PostProcessor processor;
  MOTE_RETURN_IF_ERROR(processor.append(field));
  return processor;
}

Status PostProcessor::append(const Field& field) {
  if (field.is_null()) return {};
  MOTE_RETURN_IF_ERROR(field.require_object());
  const std::string type = field.type();
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") {
    MOTE_ASSIGN(Template layout, read_template(field));
    templates_.push_back(std::move(layout));
    return {};
  }
  if (type != "Sequence") return field["type"].error("ByteLevel, TemplateProcessing or a Sequence of these");
  const Field list = field["processors"];
  MOTE_RETURN_IF_ERROR(list.require_array());
  for (size_t i = 0; i < list.json().size(); ++i) MOTE_RETURN_IF_ERROR(append(list[i]));
  return {};
}

Result<PostProcessor::Template> PostProcessor::read_template(const Field& field) {
  Template layout;
  const Field single = field["single"];
  MOTE_RETURN_IF_ERROR(single.require_array());
  bool seen_text = false;
  for (size_t i = 0; i < single.json().size(); ++i) {
    const Field special = single[i]["SpecialToken"];
    if (!special.is_null()) {
      MOTE_RETURN_IF_ERROR(append_special(special, field["special_tokens"], seen_text ? layout.behind : layout.before));
      continue;
    }
    const Field sequence = single[i]["Sequence"]["id"];
    MOTE_ASSIGN(const std::string id, sequence.text());
    if (id != "A" || seen_text) return sequence.error("A, once");
    seen_text = true;
  }
  if (!seen_text) return single.error("a list with the sequence A");
  return layout;
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> ids) const {
  for (const Template& layout : templates_) {
    ids.insert(ids.begin(), layout.before.begin(), layout.before.end());
    ids.insert(ids.end(), layout.behind.begin(), layout.behind.end());
  }
  return ids;
}

}  // namespace mote::tokenizer
