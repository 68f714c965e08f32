#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/json.h"

namespace mote {
namespace {

using tokenizer::AddedToken;
using tokenizer::AddedTokens;
using tokenizer::Field;
using tokenizer::Segment;
using tokenizer::VocabularyEntry;

// How the file spells each id. An added token's own spelling counts.
Result<std::vector<std::string>> spelled_tokens(const std::vector<VocabularyEntry>& vocabulary,
                                                const AddedTokens& added) {
  int32_t largest = -1;
  for (const VocabularyEntry& entry : vocabulary) largest = std::max(largest, entry.id);
  for (const AddedToken& token : added.tokens()) largest = std::max(largest, token.id);
  std::vector<std::string> spelled(static_cast<size_t>(largest) + 1);
  for (const VocabularyEntry& entry : vocabulary) spelled[static_cast<size_t>(entry.id)] = entry.text;
  for (const AddedToken& token : added.tokens()) spelled[static_cast<size_t>(token.id)] = token.content;
  size_t num_bytes = 0;
  for (const std::string& text : spelled) num_bytes += text.size();
  MOTE_REQUIRE(num_bytes < UINT32_MAX, Code::kInvalidTokenizer, "tokenizer.json: the vocabulary has %zu bytes of text",
               num_bytes);
  return spelled;
}

bool touches(std::span<const TextRange> ranges, size_t begin, size_t end) {
  const auto first = std::partition_point(ranges.begin(), ranges.end(), [begin](const TextRange& range) { return range.end <= begin; });
  return first != ranges.end() && first->begin < end;
}

}  // namespace

Result<Tokenizer> Tokenizer::parse(std::string_view text) {
  MOTE_ASSIGN(const tokenizer::Json json, tokenizer::parse_json(text));
  const Field root(json, "");
  MOTE_ASSIGN(auto normalizer, tokenizer::make_normalizer(root["normalizer"]));
  MOTE_ASSIGN(auto pretokenizers, tokenizer::make_pretokenizers(root["pre_tokenizer"]));
  MOTE_ASSIGN(auto post_processor, tokenizer::PostProcessor::make(root["post_processor"]));
  MOTE_RETURN_IF_ERROR(tokenizer::ByteLevelDecoder::check(root["decoder"]));
  std::vector<VocabularyEntry> vocabulary;
  MOTE_ASSIGN(auto model, tokenizer::Bpe::make(root["model"], vocabulary));
  MOTE_ASSIGN(auto added, AddedTokens::make(root["added_tokens"], normalizer.get(), vocabulary));
  MOTE_ASSIGN(const auto spelled, spelled_tokens(vocabulary, added));
  Tokenizer result(std::move(model), std::move(added), std::move(post_processor), tokenizer::ByteLevelDecoder(spelled));
  result.normalizer_ = std::move(normalizer);
  result.pretokenizers_ = std::move(pretokenizers);
  return result;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const std::string valid = replace_invalid_utf8(text);
  MOTE_REQUIRE(options.plain.empty() || valid == text, Code::kInvalidArgument, "a text with plain ranges must be UTF-8");
  std::vector<int32_t> ids;
  for (const Segment& segment : added_.split(valid, false, options.parse_special, options.plain)) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    std::string part = valid.substr(segment.begin, segment.end - segment.begin);
    if (normalizer_ != nullptr) {
      MOTE_ASSIGN(part, normalizer_->normalize(std::move(part)));
    }
    EncodeOptions part_options = options;
    // Normalisation moves bytes: a part with any plain ones is plain as a whole for the few special tokens that are normalised.
    part_options.parse_special = options.parse_special && !touches(options.plain, segment.begin, segment.end);
    MOTE_RETURN_IF_ERROR(encode_normalized(part, part_options, ids));
  }
  return options.add_special ? post_processor_.apply(std::move(ids)) : std::move(ids);
}

Status Tokenizer::encode_normalized(std::string_view text, const EncodeOptions& options,
                                    std::vector<int32_t>& ids) const {
  for (const Segment& segment : added_.split(text, true, options.parse_special, {})) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
    } else {
      MOTE_RETURN_IF_ERROR(encode_words(std::string(text.substr(segment.begin, segment.end - segment.begin)), ids));
    }
  }
  return {};
}

Status Tokenizer::encode_words(std::string text, std::vector<int32_t>& ids) const {
  std::vector<std::string> pieces{std::move(text)};
  for (const auto& pretokenizer : pretokenizers_) {
    std::vector<std::string> finer;
    for (std::string& piece : pieces) MOTE_RETURN_IF_ERROR(pretokenizer->split(std::move(piece), finer));
    pieces = std::move(finer);
  }
  for (const std::string& piece : pieces) model_.encode(piece, ids);
  return {};
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!skip_special || !is_special(id)) bytes += token_bytes(id);
  }
  return replace_invalid_utf8(bytes);
}

}  // namespace mote
