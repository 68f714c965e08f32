#include "tokenizer/process/processor.h"

#include <algorithm>

namespace mote::tokenizer {
namespace {

void insert_special(EncodingPart& part, bool in_front, int32_t id) {
  Encoding& encoding = part.encoding;
  const bool has_offsets = encoding.offsets.size() == encoding.ids.size();
  const bool has_spaces = part.spaces.size() == encoding.ids.size();
  encoding.ids.insert(in_front ? encoding.ids.begin() : encoding.ids.end(), id);
  if (has_offsets) encoding.offsets.insert(in_front ? encoding.offsets.begin() : encoding.offsets.end(), Origin{});
  if (has_spaces) part.spaces.insert(in_front ? part.spaces.begin() : part.spaces.end(), Spaces{});
}

}  // namespace

Result<Processor> Processor::make(const fb::Processor& from, int32_t num_ids) {
  Processor processor;
  processor.kind_ = from.kind();
  MOTE_REQUIRE(from.kind() <= fb::ProcessorKind::MAX, Code::kInvalidTokenizer, "processors: kind = %d: must be at most %d",
               static_cast<int>(from.kind()), static_cast<int>(fb::ProcessorKind::MAX));
  const bool may_trim = from.kind() == fb::ProcessorKind::byte_level || from.kind() == fb::ProcessorKind::roberta;
  processor.trim_offsets_ = may_trim && from.trim_offsets();
  processor.add_prefix_space_ = from.add_prefix_space();
  processor.cls_ = from.cls();
  processor.sep_ = from.sep();
  if (from.pieces() != nullptr) {
    for (const fb::TemplatePiece* piece : *from.pieces()) processor.pieces_.push_back(piece->id());
  }
  std::vector<int32_t> ids = processor.pieces_;
  ids.push_back(processor.cls_);
  ids.push_back(processor.sep_);
  for (const int32_t id : ids) {
    MOTE_REQUIRE(id >= -1 && id <= std::max(num_ids, kMaxTokenId), Code::kInvalidTokenizer, "processors: id = %d: must be at most %d",
                 id, kMaxTokenId);
  }
  return processor;
}

void Processor::trim(EncodingPart& part) const {
  std::vector<Origin>& offsets = part.encoding.offsets;
  if (part.spaces.size() != offsets.size()) return;
  for (size_t i = 0; i < offsets.size(); ++i) {
    Origin& offset = offsets[i];
    uint32_t leading = part.spaces[i].leading;
    const uint32_t trailing = part.spaces[i].trailing;
    const bool first = i == 0 || offset.begin == 0;
    if (first && add_prefix_space_ && leading == 1) leading = 0;  // the space that was put in front
    if (leading > 0) offset.begin = std::min(offset.begin + leading, offset.end);
    if (trailing > 0 && offset.end >= trailing) offset.end = std::max(offset.end - trailing, offset.begin);
  }
}

// The text stands once in a template that was compiled; each piece becomes a part.
void Processor::apply_template(std::vector<EncodingPart>& parts, bool add_special) const {
  std::vector<EncodingPart> result;
  const EncodingPart text = parts.empty() ? EncodingPart{} : std::move(parts.front());
  const bool has_offsets = text.encoding.offsets.size() == text.encoding.ids.size();
  for (const int32_t id : pieces_) {
    if (id < 0) {
      result.push_back(text);
    } else if (add_special) {
      EncodingPart special;
      special.encoding.ids.push_back(id);
      if (has_offsets) special.encoding.offsets.emplace_back();
      special.spaces.emplace_back();
      result.push_back(std::move(special));
    }
  }
  parts = std::move(result);
}

void Processor::surround(std::vector<EncodingPart>& parts) const {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == 0) insert_special(parts[i], true, cls_);
    insert_special(parts[i], false, sep_);
  }
}

void Processor::apply(std::vector<EncodingPart>& parts, bool add_special) const {
  if (trim_offsets_) {
    for (EncodingPart& part : parts) trim(part);
  }
  switch (kind_) {
    case fb::ProcessorKind::byte_level: return;
    case fb::ProcessorKind::template_: return apply_template(parts, add_special);
    case fb::ProcessorKind::bert:
    case fb::ProcessorKind::roberta:
      if (add_special) surround(parts);
      return;
  }
}

}  // namespace mote::tokenizer
