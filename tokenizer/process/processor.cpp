#include "tokenizer/process/processor.h"

#include <algorithm>

namespace mote::tokenizer {
namespace {

void insert_special(EncodingPart& part, bool in_front, int32_t id, uint32_t type_id) {
  Encoding& encoding = part.encoding;
  if (encoding.type_ids.size() == encoding.ids.size()) {
    encoding.type_ids.insert(in_front ? encoding.type_ids.begin() : encoding.type_ids.end(), type_id);
  }
  const bool has_offsets = encoding.offsets.size() == encoding.ids.size();
  const bool has_spaces = part.spaces.size() == encoding.ids.size();
  encoding.ids.insert(in_front ? encoding.ids.begin() : encoding.ids.end(), id);
  if (has_offsets) encoding.offsets.insert(in_front ? encoding.offsets.begin() : encoding.offsets.end(), Origin{});
  if (has_spaces) part.spaces.insert(in_front ? part.spaces.begin() : part.spaces.end(), Spaces{});
}

// What a special token of a template becomes; `like` says what is kept of each id.
EncodingPart special_part(int32_t id, uint32_t type_id, const EncodingPart& like) {
  EncodingPart part;
  part.encoding.ids.push_back(id);
  if (like.encoding.offsets.size() == like.encoding.ids.size()) part.encoding.offsets.emplace_back();
  if (like.encoding.type_ids.size() == like.encoding.ids.size()) part.encoding.type_ids.push_back(type_id);
  part.spaces.emplace_back();
  return part;
}

void append(const EncodingPart& from, EncodingPart& to) {
  const auto add = [](const auto& source, auto& target) { target.insert(target.end(), source.begin(), source.end()); };
  add(from.encoding.ids, to.encoding.ids);
  add(from.encoding.offsets, to.encoding.offsets);
  add(from.encoding.type_ids, to.encoding.type_ids);
  add(from.spaces, to.spaces);
}

}  // namespace

Result<Processor> Processor::make(const fb::Processor& from, int32_t num_ids) {
  Processor processor;
  processor.kind_ = from.kind();
  MOTE_REQUIRE(from.kind() <= fb::ProcessorKind::MAX, Code::kInvalidTokenizer,
               "processors: kind = %d: must be at most %d", static_cast<int>(from.kind()),
               static_cast<int>(fb::ProcessorKind::MAX));
  const bool may_trim = from.kind() == fb::ProcessorKind::byte_level || from.kind() == fb::ProcessorKind::roberta;
  processor.trim_offsets_ = may_trim && from.trim_offsets();
  processor.add_prefix_space_ = from.add_prefix_space();
  processor.cls_ = from.cls();
  processor.sep_ = from.sep();
  std::vector<int32_t> ids{processor.cls_, processor.sep_};
  const auto read = [&](const flatbuffers::Vector<const fb::TemplatePiece*>* list,
                        std::vector<fb::TemplatePiece>& pieces) {
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      pieces.push_back(*list->Get(static_cast<uint32_t>(i)));
      ids.push_back(pieces.back().id());
    }
  };
  read(from.pieces(), processor.pieces_);
  read(from.pair_pieces(), processor.pair_pieces_);
  for (const int32_t id : ids) {
    MOTE_REQUIRE(id >= -2 && id <= std::max(num_ids, kMaxTokenId), Code::kInvalidTokenizer,
                 "processors: id = %d: must be at most %d", id, kMaxTokenId);
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

// Each piece becomes a part.
void Processor::apply_template(std::vector<EncodingPart>& parts, bool add_special) const {
  parts.resize(std::max<size_t>(parts.size(), 1));
  std::vector<EncodingPart> result;
  bool was_special = false;
  for (const fb::TemplatePiece& piece : parts.size() == 1 ? pieces_ : pair_pieces_) {
    if (piece.id() >= 0) {
      if (!add_special) continue;
      EncodingPart special = special_part(piece.id(), piece.type_id(), parts.front());
      if (piece.joined() && was_special)
        append(special, result.back());
      else
        result.push_back(std::move(special));
      was_special = true;
      continue;
    }
    EncodingPart& part = parts[std::min<size_t>(piece.id() == -1 ? 0 : 1, parts.size() - 1)];
    std::fill(part.encoding.type_ids.begin(), part.encoding.type_ids.end(), piece.type_id());
    result.push_back(part);
    was_special = false;
  }
  parts = std::move(result);
}

void Processor::surround(std::vector<EncodingPart>& parts) const {
  const bool is_roberta = kind_ == fb::ProcessorKind::roberta;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == 0)
      insert_special(parts[i], true, cls_, 0);
    else if (is_roberta)
      insert_special(parts[i], true, sep_, 0);
    insert_special(parts[i], false, sep_, i == 0 || is_roberta ? 0 : 1);
  }
}

void Processor::apply(std::vector<EncodingPart>& parts, bool add_special) const {
  if (trim_offsets_) {
    for (EncodingPart& part : parts) trim(part);
  }
  switch (kind_) {
    case fb::ProcessorKind::byte_level: return;
    case fb::ProcessorKind::template_: return apply_template(parts, add_special);
    case fb::ProcessorKind::roberta:
      for (EncodingPart& part : parts) std::fill(part.encoding.type_ids.begin(), part.encoding.type_ids.end(), 0u);
      break;
    case fb::ProcessorKind::bert: break;
  }
  if (add_special) surround(parts);
}

}  // namespace mote::tokenizer
