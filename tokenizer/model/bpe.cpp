#include "tokenizer/model/bpe.h"

#include <bit>
#include <queue>

#include "tokenizer/byte_alphabet.h"

namespace mote::tokenizer {
namespace {

using Ids = std::unordered_map<std::string, int32_t>;

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// One symbol of the piece being merged; neighbours are linked so that a merge costs O(1).
struct Symbol {
  int32_t id = -1;
  int32_t previous = -1;
  int32_t next = -1;
};

struct Candidate {
  uint32_t rank = 0;
  int32_t position = 0;  // of the left symbol
  int32_t id = 0;        // that the pair becomes

  // The lowest rank first, then the leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

class Merger {
 public:
  Merger(const MergeTable& table, std::vector<Symbol> symbols) : table_(table), symbols_(std::move(symbols)) {}

  void run(std::vector<int32_t>& ids) {
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) push(static_cast<int32_t>(i));
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      apply(candidate);
    }
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
  }

 private:
  Symbol& at(int32_t index) { return symbols_[static_cast<size_t>(index)]; }

  void push(int32_t left) {
    if (left < 0 || at(left).next < 0) return;
    const MergeTable::Merge merge = table_.find(at(left).id, at(at(left).next).id);
    if (merge.id >= 0) queue_.push({merge.rank, left, merge.id});
  }

  // A candidate is stale when either side has merged since it was queued.
  void apply(const Candidate& candidate) {
    Symbol& left = at(candidate.position);
    if (left.id < 0 || left.next < 0) return;
    const MergeTable::Merge merge = table_.find(left.id, at(left.next).id);
    if (merge.id != candidate.id || merge.rank != candidate.rank) return;
    Symbol& right = at(left.next);
    left.id = candidate.id;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = candidate.position;
    push(left.previous);
    push(candidate.position);
  }

  const MergeTable& table_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

Status check_options(const Field& field) {
  const std::string type = field["type"].is_null() ? "BPE" : field.type();
  if (type != "BPE") return field["type"].error("BPE");
  MOTE_RETURN_IF_ERROR(field["dropout"].require_off());
  MOTE_RETURN_IF_ERROR(field["continuing_subword_prefix"].require_off());
  MOTE_RETURN_IF_ERROR(field["end_of_word_suffix"].require_off());
  MOTE_ASSIGN(const bool byte_fallback, field["byte_fallback"].boolean(false));
  if (byte_fallback) return field["byte_fallback"].error("false: only byte-level BPE is supported");
  return {};
}

Status read_vocabulary(const Field& field, std::vector<VocabularyEntry>& vocabulary, Ids& ids) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  vocabulary.reserve(field.json().size());
  ids.reserve(field.json().size());
  for (const auto& [text, id] : field.json().items()) {
    MOTE_ASSIGN(const int64_t value, Field(id, field.path() + "." + text).integer(0, kMaxTokenId));
    vocabulary.push_back({text, static_cast<int32_t>(value)});
    ids.emplace(text, static_cast<int32_t>(value));
  }
  return {};
}

// A merge is ["left", "right"] or "left right".
Result<std::pair<std::string, std::string>> read_merge(const Field& field) {
  const Json& json = field.json();
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return std::pair(json[0].get<std::string>(), json[1].get<std::string>());
  }
  const std::string text = json.is_string() ? json.get<std::string>() : std::string();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    return field.error("[\"left\", \"right\"] or \"left right\"");
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

}  // namespace

void MergeTable::reserve(size_t num_merges) { slots_.assign(std::bit_ceil(num_merges * 2 + 1), Slot{}); }

size_t MergeTable::slot_of(uint64_t key) const {
  const uint64_t hash = (key ^ (key >> 29)) * 0x9E3779B97F4A7C15u;
  size_t slot = static_cast<size_t>(hash >> 17) & (slots_.size() - 1);
  while (slots_[slot].key != kEmpty && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = pair_key(left, right);
  slots_[slot_of(key)] = {key, merge};
}

MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  return slots_[slot_of(pair_key(left, right))].merge;
}

Result<Bpe> Bpe::make(const Field& field, std::vector<VocabularyEntry>& vocabulary) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  MOTE_RETURN_IF_ERROR(check_options(field));
  Bpe bpe;
  MOTE_ASSIGN(bpe.ignore_merges_, field["ignore_merges"].boolean(false));
  Ids ids;
  MOTE_RETURN_IF_ERROR(read_vocabulary(field["vocab"], vocabulary, ids));
  bool complete = true;
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(byte_spelling(static_cast<unsigned char>(byte)));
    if (found != ids.end()) bpe.byte_ids_[byte] = found->second;
    complete = complete && found != ids.end();
  }
  if (!complete && !field["unk_token"].is_null()) {
    return field["unk_token"].error("null where the vocabulary lacks single bytes");
  }
  if (bpe.ignore_merges_) {
    for (const VocabularyEntry& entry : vocabulary) {
      if (auto bytes = spelled_bytes(entry.text)) bpe.whole_pieces_.emplace(*std::move(bytes), entry.id);
    }
  }
  MOTE_RETURN_IF_ERROR(bpe.read_merges(field["merges"], ids));
  return bpe;
}

Status Bpe::read_merges(const Field& field, const Ids& ids) {
  MOTE_RETURN_IF_ERROR(field.require_array());
  const size_t num_merges = field.json().size();
  merges_.reserve(num_merges);
  for (size_t i = 0; i < num_merges; ++i) {
    MOTE_ASSIGN(const auto merge, read_merge(field[i]));
    const auto left = ids.find(merge.first);
    const auto right = ids.find(merge.second);
    const auto merged = ids.find(merge.first + merge.second);
    if (left == ids.end() || right == ids.end() || merged == ids.end()) {
      return field[i].error("a pair of tokens whose concatenation is a token too");
    }
    merges_.insert(left->second, right->second, {static_cast<uint32_t>(i), merged->second});
  }
  return {};
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    const auto whole = whole_pieces_.find(std::string(piece));
    if (whole != whole_pieces_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (const char c : piece) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id < 0) continue;
    const auto index = static_cast<int32_t>(symbols.size());
    if (index > 0) symbols.back().next = index;
    symbols.push_back({id, index - 1, -1});
  }
  Merger(merges_, std::move(symbols)).run(ids);
}

}  // namespace mote::tokenizer
