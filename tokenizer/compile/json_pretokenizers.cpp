#include "tokenizer/compile/json_parts.h"
#include "tokenizer/compile/json_pattern.h"

namespace mote::tokenizer {
namespace {

constexpr int64_t kMaxLength = 1 << 20;
constexpr const char* kSupportedPretokenizers =
    "ByteLevel, Split, Whitespace, WhitespaceSplit, Punctuation, Digits, Metaspace, BertPreTokenizer, "
    "CharDelimiterSplit, "
    "UnicodeScripts, FixedLength or Sequence";

Result<fb::Behavior> read_behavior(const Field& field) {
  MOTE_ASSIGN(const std::string name, field.text());
  if (name == "Isolated") return fb::Behavior::isolated;
  if (name == "Removed") return fb::Behavior::removed;
  if (name == "MergedWithPrevious") return fb::Behavior::merged_with_previous;
  if (name == "MergedWithNext") return fb::Behavior::merged_with_next;
  if (name == "Contiguous") return fb::Behavior::contiguous;
  return field.error("Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
}

Status read_split(const Field& field, fb::PretokenizerT& made) {
  made.kind = fb::PretokenizerKind::split;
  MOTE_RETURN_IF_ERROR(read_pattern(field["pattern"], made.pattern, made.is_regex));
  MOTE_ASSIGN(made.behavior, read_behavior(field["behavior"]));
  MOTE_ASSIGN(made.invert, field["invert"].boolean(false));
  return {};
}

Status read_byte_level(const Field& field, fb::PretokenizerT& made) {
  made.kind = fb::PretokenizerKind::byte_level;
  MOTE_ASSIGN(made.add_prefix_space, field["add_prefix_space"].boolean(true));
  MOTE_ASSIGN(made.use_regex, field["use_regex"].boolean(true));
  return {};
}

Status read_metaspace(const Field& field, fb::PretokenizerT& made) {
  made.kind = fb::PretokenizerKind::metaspace;
  MOTE_ASSIGN(const char32_t replacement, field["replacement"].character());
  made.character = replacement;
  MOTE_ASSIGN(made.prepend_scheme, read_prepend_scheme(field));
  MOTE_ASSIGN(made.split, field["split"].boolean(true));
  return {};
}

Status read_fixed_length(const Field& field, fb::PretokenizerT& made) {
  made.kind = fb::PretokenizerKind::fixed_length;
  const Field length = field["length"];
  made.length = 5;
  if (length.is_null()) return {};
  MOTE_ASSIGN(const int64_t value, length.integer(1, kMaxLength));
  made.length = static_cast<uint32_t>(value);
  return {};
}

Status read_one_pretokenizer(const Field& field, const std::string& type, fb::PretokenizerT& made) {
  if (type == "ByteLevel") return read_byte_level(field, made);
  if (type == "Split") return read_split(field, made);
  if (type == "Metaspace") return read_metaspace(field, made);
  if (type == "FixedLength") return read_fixed_length(field, made);
  if (type == "Punctuation") {
    made.kind = fb::PretokenizerKind::punctuation;
    if (field["behavior"].is_null()) return {};
    MOTE_ASSIGN(made.behavior, read_behavior(field["behavior"]));
    return {};
  }
  if (type == "Digits") {
    made.kind = fb::PretokenizerKind::digits;
    MOTE_ASSIGN(made.individual_digits, field["individual_digits"].boolean(false));
    return {};
  }
  if (type == "CharDelimiterSplit" || type == "Delimiter") {
    made.kind = fb::PretokenizerKind::char_delimiter;
    MOTE_ASSIGN(const char32_t delimiter, field["delimiter"].character());
    made.character = delimiter;
    return {};
  }
  if (type == "Whitespace")
    made.kind = fb::PretokenizerKind::whitespace;
  else if (type == "WhitespaceSplit")
    made.kind = fb::PretokenizerKind::whitespace_split;
  else if (type == "BertPreTokenizer")
    made.kind = fb::PretokenizerKind::bert;
  else if (type == "UnicodeScripts")
    made.kind = fb::PretokenizerKind::unicode_scripts;
  else
    return field["type"].error(kSupportedPretokenizers);
  return {};
}

}  // namespace

Result<fb::PrependScheme> read_prepend_scheme(const Field& field) {
  fb::PrependScheme scheme = fb::PrependScheme::always;
  const Field given = field["prepend_scheme"];
  if (!given.is_null()) {
    MOTE_ASSIGN(const std::string name, given.text());
    if (name == "never")
      scheme = fb::PrependScheme::never;
    else if (name == "first")
      scheme = fb::PrependScheme::first;
    else if (name != "always")
      return given.error("always, never or first");
  }
  MOTE_ASSIGN(const bool add_prefix_space, field["add_prefix_space"].boolean(true));
  if (!add_prefix_space && scheme != fb::PrependScheme::never)
    return field["add_prefix_space"].error("true unless prepend_scheme is never");
  return scheme;
}

Status read_pretokenizers(const Field& field, std::vector<std::unique_ptr<fb::PretokenizerT>>& pretokenizers) {
  return read_components(field, "pretokenizers", pretokenizers, read_one_pretokenizer);
}

}  // namespace mote::tokenizer
