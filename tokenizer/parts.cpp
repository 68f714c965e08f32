#include "tokenizer/parts.h"

#include <algorithm>

#include "tokenizer/pretokenize/scanner.h"
#include "tokenizer/segment/text.h"
#include "tokenizer/segment/verify.h"

namespace mote::tokenizer {
namespace {

// Pattern::make compiles what is no literal.
template <typename Stage>
bool has_regex(const Stage& stage) {
  return stage.is_regex() || text_of(stage.pattern()).empty();
}

bool is_compiled(const fb::Pretokenizer& stage) {
  if (stage.kind() != fb::PretokenizerKind::split || !has_regex(stage)) return false;
  return stage.behavior() != fb::Behavior::isolated || scanner_for(text_of(stage.pattern())) == nullptr;
}

}  // namespace

Result<std::vector<std::string_view>> parts_of(std::span<const std::byte> segment) {
  MOTE_ASSIGN(const fb::Segment* from, verify_segment(segment));
  std::vector<std::string_view> parts = {part_of(from->model()->kind())};
  bool has_regexes = std::ranges::any_of(*from->pretokenizers(), [](const auto* stage) { return is_compiled(*stage); });
  for (const fb::Normalizer* stage : *from->normalizers()) {
    parts.push_back(part_of(stage->kind()));
    has_regexes = has_regexes || (stage->kind() == fb::NormalizerKind::replace && has_regex(*stage));
  }
  for (const fb::Decoder* stage : *from->decoders())
    has_regexes = has_regexes || (stage->kind() == fb::DecoderKind::replace && has_regex(*stage));
  if (has_regexes) parts.push_back(kRegexPart);
  std::ranges::sort(parts);
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::erase(parts, std::string_view());
  return parts;
}

}  // namespace mote::tokenizer
