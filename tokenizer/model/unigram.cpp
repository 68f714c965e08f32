#include "tokenizer/model/unigram.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "tokenizer/model/byte_ids.h"
#include "tokenizer/model/piece_type.h"
#include "tokenizer/model/viterbi.h"

namespace mote::tokenizer {
namespace {

constexpr double kUnknownPenalty = 10.0;
constexpr double kUserDefinedBonus = 0.1;  // for each byte but the first
constexpr size_t kLongestToken = 4096;     // bytes; the compiler refuses longer ones

Status check_tables(const fb::Segment& segment) {
  const auto* scores = segment.model()->scores();
  MOTE_REQUIRE(scores != nullptr && scores->size() == segment.token_flags()->size(), Code::kInvalidTokenizer,
               "model.scores has %u entries: must be %u, one an id", scores == nullptr ? 0 : scores->size(),
               segment.token_flags()->size());
  return {};
}

}  // namespace

Unigram::Unigram(const fb::Segment& segment)
    : vocabulary_(segment),
      trie_(segment.model()->trie()),
      scores_(segment.model()->scores()),
      unk_score_(segment.model()->min_score() - kUnknownPenalty),
      unk_id_(segment.model()->unk_id()),
      byte_fallback_(segment.model()->byte_fallback()) {}

Result<std::unique_ptr<Model>> Unigram::make(const fb::Segment& segment) {
  MOTE_RETURN_IF_ERROR(check_tables(segment));
  std::unique_ptr<Unigram> unigram(new Unigram(segment));
  MOTE_RETURN_IF_ERROR(read_byte_ids(segment, unigram->byte_ids_));
  return std::unique_ptr<Model>(std::move(unigram));
}

Status Unigram::append(std::string_view text, uint32_t begin, std::vector<Token>& tokens) const {
  const auto end = begin + static_cast<uint32_t>(text.size());
  if (const int32_t id = vocabulary_.find(text); id >= 0) {
    tokens.push_back({id, begin, end});
    return {};
  }
  const auto is_known = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), is_known)) {
    for (const char c : text) tokens.push_back({byte_ids_[static_cast<unsigned char>(c)], begin, end});
    return {};
  }
  MOTE_REQUIRE(unk_id_ >= 0, Code::kInvalidArgument, "the text needs the unknown token, but unk_id is missing");
  tokens.push_back({unk_id_, begin, end});
  return {};
}

Status Unigram::encode(std::string_view piece, std::vector<Token>& tokens) const {
  const auto score_of = [this](int32_t id, size_t) -> std::optional<double> {
    if (static_cast<uint32_t>(id) >= scores_->size()) return std::nullopt;
    return scores_->Get(static_cast<uint32_t>(id));
  };
  const auto path = best_path<double>(trie_, piece, unk_id_, unk_score_, kLongestToken, score_of);
  for (size_t i = 0; i < path.size();) {
    MOTE_REQUIRE(path[i].id >= 0, Code::kInvalidArgument, "the text needs the unknown token, but unk_id is missing");
    size_t next = i + 1;
    while (path[i].id == unk_id_ && next < path.size() && path[next].id == unk_id_) ++next;
    const auto begin = static_cast<size_t>(path[i].begin);
    const size_t end = next < path.size() ? static_cast<size_t>(path[next].begin) : piece.size();
    MOTE_RETURN_IF_ERROR(append(piece.substr(begin, end - begin), static_cast<uint32_t>(begin), tokens));
    i = next;
  }
  return {};
}

SentencePieceUnigram::SentencePieceUnigram(const fb::Segment& segment)
    : trie_(segment.model()->trie()),
      scores_(segment.model()->scores()),
      types_(segment.model()->piece_types()),
      unk_score_(static_cast<float>(segment.model()->min_score()) - static_cast<float>(kUnknownPenalty)),
      unk_id_(segment.model()->unk_id()),
      byte_fallback_(segment.model()->byte_fallback()) {}

Result<std::unique_ptr<Model>> SentencePieceUnigram::make(const fb::Segment& segment) {
  MOTE_RETURN_IF_ERROR(check_tables(segment));
  MOTE_RETURN_IF_ERROR(check_piece_types(segment));
  std::unique_ptr<SentencePieceUnigram> unigram(new SentencePieceUnigram(segment));
  MOTE_RETURN_IF_ERROR(read_byte_ids(segment, unigram->byte_ids_));
  return std::unique_ptr<Model>(std::move(unigram));
}

Status SentencePieceUnigram::encode(std::string_view piece, std::vector<Token>& tokens) const {
  const auto score_of = [this](int32_t id, size_t bytes) -> std::optional<double> {
    const auto index = static_cast<uint32_t>(id);
    if (index >= scores_->size() || types_->Get(index) == kPieceUnused) return std::nullopt;
    // As sentencepiece since 0.2.3: no other path is better, whatever the scores of its pieces.
    if (types_->Get(index) == kPieceUserDefined)
      return static_cast<float>(kUserDefinedBonus * static_cast<double>(bytes - 1));
    return scores_->Get(index);
  };
  const auto path = best_path<float>(trie_, piece, unk_id_, unk_score_, kLongestToken, score_of);
  UnknownAppender unknown(unk_id_, byte_fallback_, byte_ids_);
  for (size_t i = 0; i < path.size(); ++i) {
    const auto begin = static_cast<size_t>(path[i].begin);
    const size_t end = i + 1 < path.size() ? static_cast<size_t>(path[i + 1].begin) : piece.size();
    unknown.append(path[i].id, piece.substr(begin, end - begin), begin, tokens);
  }
  return {};
}

}  // namespace mote::tokenizer
