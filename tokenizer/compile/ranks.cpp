#include "tokenizer/compile/ranks.h"

#include <unordered_map>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/compile/table_builder.h"
#include "tokenizer/pretokenize/pattern.h"
#include "tokenizer/pretokenize/scanner.h"

namespace mote::tokenizer {
namespace {

std::string spelled(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += byte_spelling(static_cast<unsigned char>(c));
  return text;
}

using Ranks = std::unordered_map<std::string_view, uint32_t>;

std::vector<fb::Merge> merges_of(const std::vector<std::string>& ranks, const Ranks& known, int32_t first_id) {
  std::vector<fb::Merge> merges;
  const auto base = static_cast<uint32_t>(first_id);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string_view text = ranks[rank];
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = known.find(text.substr(0, cut));
      const auto right = known.find(text.substr(cut));
      if (left == known.end() || right == known.end()) continue;
      merges.emplace_back(base + left->second, base + right->second, static_cast<uint32_t>(rank),
                          static_cast<int32_t>(base + rank));
    }
  }
  return build_merges(merges);
}

// What the pattern matches is encoded, and what lies between is dropped. The patterns of scanners match everything.
Status add_split(const std::string& pattern, Draft& draft) {
  auto split = std::make_unique<fb::PretokenizerT>();
  split->kind = fb::PretokenizerKind::split;
  split->pattern = pattern;
  split->is_regex = true;
  if (scanner_for(pattern) == nullptr) {
    const auto regex = Regex::compile(pattern, RegexSyntax::kFancy);
    const Status status = regex.ok() ? regex->check_backtracking() : regex.status();
    MOTE_REQUIRE(status.ok(), Code::kInvalidTokenizer, "pattern: %s", status.message().c_str());
    split->fancy_syntax = true;
    split->behavior = fb::Behavior::removed;
    split->invert = true;
  }
  draft.segment.pretokenizers.push_back(std::move(split));
  return {};
}

}  // namespace

Status fill_ranks(const std::vector<std::string>& ranks, int32_t first_id, const std::string& pattern, Draft& draft) {
  Ranks known;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].empty()) continue;
    MOTE_REQUIRE(ranks[rank].size() <= 4096, Code::kInvalidTokenizer, "rank %zu has %zu bytes: at most 4096", rank,
                 ranks[rank].size());
    const auto [found, is_new] = known.try_emplace(ranks[rank], static_cast<uint32_t>(rank));
    MOTE_REQUIRE(is_new, Code::kInvalidTokenizer,
                 "rank %zu has the bytes of rank %u: must be bytes that no other rank has", rank, found->second);
    draft.set_model_token(first_id + static_cast<int32_t>(rank), spelled(ranks[rank]));
  }
  draft.unspell = true;
  draft.segment.kind = "byte-level BPE";
  draft.segment.model = std::make_unique<fb::ModelT>();
  fb::ModelT& model = *draft.segment.model;
  model.kind = fb::ModelKind::byte_level_bpe;
  model.ignore_merges = true;  // a piece that is a token is that token
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(static_cast<unsigned char>(byte));
    const auto found = known.find(std::string_view(&c, 1));
    MOTE_REQUIRE(found != known.end(), Code::kInvalidTokenizer, "the byte 0x%02X has no rank: all 256 are needed",
                 static_cast<unsigned>(byte));
    model.byte_ids.push_back(first_id + static_cast<int32_t>(found->second));
  }
  model.merges = merges_of(ranks, known, first_id);
  MOTE_RETURN_IF_ERROR(add_split(pattern, draft));
  auto decoder = std::make_unique<fb::DecoderT>();
  decoder->kind = fb::DecoderKind::byte_level;
  draft.segment.decoders.push_back(std::move(decoder));
  return {};
}

void add_special_tokens(const std::vector<std::pair<std::string, int32_t>>& tokens, Draft& draft) {
  std::vector<std::pair<std::string, int32_t>> strings;
  for (const auto& [text, id] : tokens) {
    strings.emplace_back(text, static_cast<int32_t>(draft.segment.added.size()));
    draft.segment.added.emplace_back(id, true, false, false, false);
    draft.set_added_token(id, text);
    draft.mark_special(id);
  }
  draft.segment.raw_added = build_trie(std::move(strings));
}

}  // namespace mote::tokenizer
