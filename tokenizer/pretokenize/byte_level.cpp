#include "tokenizer/pretokenize/byte_level.h"

namespace mote::tokenizer {
namespace {

constexpr std::string_view kWordPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

Result<std::unique_ptr<Pretokenizer>> ByteLevelPretokenizer::make(const Field& field) {
  MOTE_ASSIGN(const bool add_prefix_space, field["add_prefix_space"].boolean(true));
  MOTE_ASSIGN(const bool use_regex, field["use_regex"].boolean(true));
  std::optional<Regex> regex;
  if (use_regex) {
    MOTE_ASSIGN(regex, Regex::compile(kWordPattern));
  }
  return std::unique_ptr<Pretokenizer>(std::make_unique<ByteLevelPretokenizer>(add_prefix_space, std::move(regex)));
}

Status ByteLevelPretokenizer::split(std::string text, std::vector<std::string>& pieces) const {
  if (add_prefix_space_ && text[0] != ' ') text.insert(text.begin(), ' ');
  if (!regex_.has_value()) {
    pieces.push_back(std::move(text));
    return {};
  }
  MOTE_ASSIGN(const std::vector<Span> spans, regex_->spans(text));
  for (const Span& span : spans) {
    if (span.end > span.begin) pieces.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return {};
}

}  // namespace mote::tokenizer
