#include "base/utf8.h"
#include "tokenizer/compile/base64.h"
#include "tokenizer/compile/compile.h"
#include "tokenizer/compile/json.h"
#include "tokenizer/compile/ranks.h"

namespace mote::tokenizer {
namespace {

// The special tokens that a file from before they were listed has.
constexpr const char* kOlderSpecialTokens[] = {"<unk>",
                                               "<s>",
                                               "</s>",
                                               "[INST]",
                                               "[/INST]",
                                               "[AVAILABLE_TOOLS]",
                                               "[/AVAILABLE_TOOLS]",
                                               "[TOOL_RESULTS]",
                                               "[/TOOL_RESULTS]",
                                               "[TOOL_CALLS]",
                                               "[IMG]",
                                               "<pad>",
                                               "[IMG_BREAK]",
                                               "[IMG_END]",
                                               "[PREFIX]",
                                               "[MIDDLE]",
                                               "[SUFFIX]",
                                               "[SYSTEM_PROMPT]",
                                               "[/SYSTEM_PROMPT]",
                                               "[TOOL_CONTENT]"};

Result<std::vector<std::pair<std::string, int32_t>>> read_special(const Field& list, int64_t count) {
  std::vector<std::string> texts;
  if (list.is_null()) {
    texts.assign(std::begin(kOlderSpecialTokens), std::end(kOlderSpecialTokens));
  } else {
    MOTE_RETURN_IF_ERROR(list.require_array());
    for (size_t i = 0; i < list.json().size(); ++i) {
      MOTE_ASSIGN(const int64_t rank, list[i]["rank"].integer(0, count - 1));
      if (rank != static_cast<int64_t>(i)) return list[i]["rank"].error(std::to_string(i) + ", its place in the list");
      MOTE_ASSIGN(std::string text, list[i]["token_str"].text());
      if (text.empty()) return list[i]["token_str"].error("a text that is not empty");
      texts.push_back(std::move(text));
    }
  }
  std::vector<std::pair<std::string, int32_t>> special;
  for (int64_t id = 0; id < count; ++id) {
    const auto index = static_cast<size_t>(id);
    special.emplace_back(index < texts.size() ? texts[index] : format("<SPECIAL_%lld>", static_cast<long long>(id)),
                         static_cast<int32_t>(id));
  }
  return special;
}

Result<std::vector<std::string>> read_ranks(const Field& list, int64_t count) {
  MOTE_RETURN_IF_ERROR(list.require_array());
  if (static_cast<int64_t>(list.json().size()) < count) {
    return list.error("a list of at least " + std::to_string(count) + " tokens, as config says");
  }
  std::vector<std::string> ranks;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    MOTE_ASSIGN(const int64_t rank, list[i]["rank"].integer(0, kMaxTokenId));
    if (rank != static_cast<int64_t>(i)) return list[i]["rank"].error(std::to_string(i) + ", its place in the list");
    MOTE_ASSIGN(const std::string text, list[i]["token_bytes"].text());
    auto bytes = decode_base64(text);
    if (!bytes.has_value() || bytes->empty()) return list[i]["token_bytes"].error("base64 of at least one byte");
    ranks.push_back(*std::move(bytes));
  }
  return ranks;
}

// <s> in front, as Mistral's models are asked.
Status add_bos(const std::vector<std::pair<std::string, int32_t>>& special, Draft& draft) {
  for (const auto& [text, id] : special) {
    if (text != "<s>") continue;
    auto processor = std::make_unique<fb::ProcessorT>();
    processor->kind = fb::ProcessorKind::template_;
    processor->pieces.emplace_back(id, 0, false);
    processor->pieces.emplace_back(-1, 0, false);
    draft.segment.processors.push_back(std::move(processor));
    return {};
  }
  return {Code::kInvalidTokenizer, "tekken.json: special_tokens: must have <s>"};
}

}  // namespace

Result<std::vector<std::byte>> compile_tekken(std::string_view text) {
  MOTE_ASSIGN(const Json json, parse_json(text));
  const Field root(json, "");
  const Field config = root["config"];
  MOTE_ASSIGN(const std::string pattern, config["pattern"].text());
  MOTE_ASSIGN(const int64_t num_special, config["default_num_special_tokens"].integer(1, kMaxTokenId));
  MOTE_ASSIGN(const int64_t size, config["default_vocab_size"].integer(num_special + 1, kMaxTokenId));
  MOTE_ASSIGN(const auto special, read_special(root["special_tokens"], num_special));
  MOTE_ASSIGN(const auto ranks, read_ranks(root["vocab"], size - num_special));
  Draft draft;
  MOTE_RETURN_IF_ERROR(fill_ranks(ranks, static_cast<int32_t>(num_special), pattern, draft));
  add_special_tokens(special, draft);
  MOTE_RETURN_IF_ERROR(add_bos(special, draft));
  return finish(std::move(draft));
}

Result<std::vector<std::byte>> compile_any(std::string_view bytes, std::string_view name) {
  const auto starts_like_json = [](std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '{';
  };
  if (bytes.size() >= 8 && bytes.substr(4, 4) == fb::SegmentIdentifier()) {
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    return std::vector<std::byte>(data, data + bytes.size());
  }
  if (starts_like_json(bytes.substr(0, 256))) {
    const bool tekken = bytes.find("\"default_num_special_tokens\"") != std::string_view::npos &&
                        bytes.find("\"token_bytes\"") != std::string_view::npos;
    return tekken ? compile_tekken(bytes) : compile_json(bytes);
  }
  const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  const size_t space = line.find(' ');
  if (space != std::string_view::npos && space > 0 && decode_base64(line.substr(0, space)).has_value()) {
    return compile_tiktoken(bytes, {"", std::string(name), {}});
  }
  return compile_sentencepiece(bytes);
}

}  // namespace mote::tokenizer
