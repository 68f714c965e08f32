#include "tokenizer/compile/json_pattern.h"

#include "tokenizer/pretokenize/pattern.h"
#include "tokenizer/pretokenize/scanner.h"

namespace mote::tokenizer {

Status read_pattern(const Field& field, std::string& pattern, bool& is_regex) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  is_regex = field["String"].is_null();
  const Field text = is_regex ? field["Regex"] : field["String"];
  MOTE_ASSIGN(pattern, text.text());
  if (is_regex && scanner_for(pattern) != nullptr) return {};
  const auto compiled = Pattern::make(pattern, is_regex);
  if (!compiled.ok()) return text.error("a pattern that can be matched: " + compiled.status().message());
  if (!is_regex) return {};
  MOTE_ASSIGN(const Regex regex, Regex::compile(pattern));
  if (const Status status = regex.check_backtracking(); !status.ok()) {
    return text.error("a pattern that does not backtrack without end: " + status.message());
  }
  return {};
}

}  // namespace mote::tokenizer
