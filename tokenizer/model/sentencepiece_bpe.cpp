#include "tokenizer/model/sentencepiece_bpe.h"

#include <algorithm>
#include <unordered_map>

#include "tokenizer/model/byte_ids.h"
#include "tokenizer/model/piece_type.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

struct Symbol {
  uint32_t begin = 0;
  uint32_t end = 0;
  int32_t previous = -1;
  int32_t next = -1;
  bool frozen = false;
};

struct ScoredPair {
  double score = 0;
  int32_t left = 0;
  int32_t right = 0;
  uint32_t size = 0;  // bytes of both

  bool operator<(const ScoredPair& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

using Halves = std::pair<uint32_t, uint32_t>;  // sizes of what an unused piece was merged from

class Merger {
 public:
  Merger(std::string_view text, const VocabularyView& vocabulary, const flatbuffers::Vector<double>& scores,
         const flatbuffers::Vector<uint8_t>& types)
      : text_(text), vocabulary_(vocabulary), scores_(scores), types_(types) {}

  void cut(const TrieView& user_defined) {
    for (size_t at = 0; at < text_.size();) {
      const TrieView::Found found = user_defined.longest_prefix(text_.substr(at));
      const size_t length = found.length > 0 ? found.length : first_character(text_.substr(at)).length;
      const auto index = static_cast<int32_t>(symbols_.size());
      if (index > 0) symbols_.back().next = index;
      symbols_.push_back(
          {static_cast<uint32_t>(at), static_cast<uint32_t>(at + length), index - 1, -1, found.length > 0});
      at += length;
    }
  }

  void run() {
    for (size_t i = 1; i < symbols_.size(); ++i) push(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const ScoredPair candidate = queue_.back();
      queue_.pop_back();
      apply(candidate);
    }
  }

  // Calls append(id, text, begin) for every piece; unused ones fall back into what they were merged from.
  template <typename Append>
  void for_each(Append append) const {
    std::vector<std::string_view> todo;
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[static_cast<size_t>(i)].next) {
      todo.push_back(view(symbols_[static_cast<size_t>(i)]));
      while (!todo.empty()) {
        const std::string_view piece = todo.back();
        todo.pop_back();
        const int32_t id = vocabulary_.find(piece);
        const auto halves = unused_.find(piece);
        if (id >= 0 && types_.Get(static_cast<uint32_t>(id)) == kPieceUnused && halves != unused_.end()) {
          todo.push_back(piece.substr(halves->second.first));
          todo.push_back(piece.substr(0, halves->second.first));
        } else {
          append(id, piece, static_cast<size_t>(piece.data() - text_.data()));
        }
      }
    }
  }

 private:
  Symbol& symbol(int32_t index) { return symbols_[static_cast<size_t>(index)]; }
  std::string_view view(const Symbol& from) const { return text_.substr(from.begin, from.end - from.begin); }

  void push(int32_t left, int32_t right) {
    if (left < 0 || right < 0 || symbol(left).frozen || symbol(right).frozen) return;
    const uint32_t begin = symbol(left).begin;
    const std::string_view piece = text_.substr(begin, symbol(right).end - begin);
    const int32_t id = vocabulary_.find(piece);
    if (id < 0) return;
    queue_.push_back({scores_.Get(static_cast<uint32_t>(id)), left, right, static_cast<uint32_t>(piece.size())});
    std::push_heap(queue_.begin(), queue_.end());
    if (types_.Get(static_cast<uint32_t>(id)) == kPieceUnused) {
      unused_[piece] = {static_cast<uint32_t>(view(symbol(left)).size()),
                        static_cast<uint32_t>(view(symbol(right)).size())};
    }
  }

  // A candidate is stale when a side has merged since it was queued.
  void apply(const ScoredPair& candidate) {
    Symbol& left = symbol(candidate.left);
    Symbol& right = symbol(candidate.right);
    const bool gone = left.begin == left.end || right.begin == right.end;
    if (gone || view(left).size() + view(right).size() != candidate.size) return;
    left.end = right.end;
    left.next = right.next;
    if (right.next >= 0) symbol(right.next).previous = candidate.left;
    right.end = right.begin;
    push(left.previous, candidate.left);
    push(candidate.left, left.next);
  }

  std::string_view text_;
  const VocabularyView& vocabulary_;
  const flatbuffers::Vector<double>& scores_;
  const flatbuffers::Vector<uint8_t>& types_;
  std::vector<Symbol> symbols_;
  std::vector<ScoredPair> queue_;
  std::unordered_map<std::string_view, Halves> unused_;
};

}  // namespace

SentencePieceBpe::SentencePieceBpe(const fb::Segment& segment)
    : vocabulary_(segment),
      user_defined_(segment.model()->user_defined()),
      scores_(segment.model()->scores()),
      types_(segment.model()->piece_types()),
      unk_id_(segment.model()->unk_id()),
      byte_fallback_(segment.model()->byte_fallback()) {}

Result<std::unique_ptr<Model>> SentencePieceBpe::make(const fb::Segment& segment) {
  MOTE_RETURN_IF_ERROR(check_piece_types(segment));
  std::unique_ptr<SentencePieceBpe> bpe(new SentencePieceBpe(segment));
  MOTE_REQUIRE(bpe->scores_ != nullptr && bpe->scores_->size() == segment.token_flags()->size(),
               Code::kInvalidTokenizer, "model.scores: must have %u entries, one an id", segment.token_flags()->size());
  MOTE_RETURN_IF_ERROR(read_byte_ids(segment, bpe->byte_ids_));
  return std::unique_ptr<Model>(std::move(bpe));
}

Status SentencePieceBpe::encode(std::string_view piece, std::vector<Token>& tokens) const {
  Merger merger(piece, vocabulary_, *scores_, *types_);
  merger.cut(user_defined_);
  merger.run();
  UnknownAppender unknown(unk_id_, byte_fallback_, byte_ids_);
  merger.for_each([&](int32_t id, std::string_view text, size_t begin) { unknown.append(id, text, begin, tokens); });
  return {};
}

}  // namespace mote::tokenizer
