#include "tokenizer/pretokenize/pattern.h"

#include "base/parts.h"
#include "tokenizer/parts.h"

namespace mote::tokenizer {

Result<Pattern> Pattern::make(std::string_view pattern, bool is_regex, RegexSyntax syntax) {
  Pattern made;
  if (is_regex || pattern.empty()) {
    MOTE_REQUIRE_PART(kRegexPart, Code::kInvalidTokenizer);
    MOTE_ASSIGN(made.regex_, Regex::compile(pattern, syntax));
  } else {
    made.literal_ = pattern;
  }
  return made;
}

Result<std::vector<Span>> Pattern::spans(std::string_view text) const {
  if constexpr (is_built(kRegexPart)) {
    if (regex_.has_value()) return regex_->spans(text);
  }
  std::vector<Span> spans;
  size_t end = 0;
  for (size_t found = text.find(literal_); found != std::string_view::npos; found = text.find(literal_, end)) {
    if (found > end) spans.push_back({end, found, false});
    end = found + literal_.size();
    spans.push_back({found, end, true});
  }
  if (end < text.size()) spans.push_back({end, text.size(), false});
  return spans;
}

}  // namespace mote::tokenizer
