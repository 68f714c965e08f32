#include "tokenizer/model/bpe.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/model/byte_ids.h"
#include "tokenizer/model/piece_cache.h"
#include "tokenizer/segment/text.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

// body(begin, end) for the parts of a text that no merge crosses.
template <typename Body>
Status for_each_part(const JunctionsView& junctions, std::string_view text, const Body& body) {
  size_t begin = 0;
  if (junctions.known()) {
    size_t length = first_character(text).length;
    for (size_t at = length; at < text.size(); at += length) {
      const std::string_view before = text.substr(at - length, length);
      length = first_character(text.substr(at)).length;
      if (junctions.may_join(before, text.substr(at, length))) continue;
      MOTE_RETURN_IF_ERROR(body(begin, at));
      begin = at;
    }
  }
  return body(begin, text.size());
}

// The token that merging makes of a text, where it is one.
int32_t merged_whole(const VocabularyView& vocabulary, std::string_view text) {
  const int32_t id = vocabulary.find(text);
  return id >= 0 && (vocabulary.flags(id) & kTokenWhole) != 0 ? id : -1;
}

void append_tokens(const std::vector<Symbol>& symbols, size_t begin, std::vector<Token>& tokens) {
  auto at = static_cast<uint32_t>(begin);
  for (const Symbol& symbol : symbols) {
    tokens.push_back({symbol.id, at, at + symbol.length});
    at += symbol.length;
  }
}

std::vector<Symbol>& symbols_of_thread() {
  thread_local std::vector<Symbol> symbols;
  symbols.clear();
  return symbols;
}

// merge(part, symbols) -> Status fills `symbols`, unless the cache knows the part.
template <typename Merge>
Status append_part_ids(uint32_t owner, std::string_view part, std::vector<int32_t>& ids, const Merge& merge) {
  PieceCache& cache = PieceCache::of_thread();
  if (cache.append(owner, part, ids)) return {};
  std::vector<Symbol>& symbols = symbols_of_thread();
  MOTE_RETURN_IF_ERROR(merge(part, symbols));
  cache.append_and_remember(owner, part, symbols, ids);
  return {};
}

}  // namespace

Bpe::Bpe(const fb::Segment& segment)
    : vocabulary_(segment),
      merges_(segment.model()->merges(), vocabulary_.num_ids()),
      junctions_(*segment.model()),
      cache_owner_(PieceCache::new_owner()),
      unk_id_(segment.model()->unk_id()),
      fuse_unk_(segment.model()->fuse_unk()),
      byte_fallback_(segment.model()->byte_fallback()),
      ignore_merges_(segment.model()->ignore_merges()),
      prefix_(text_of(segment.model()->continuing_subword_prefix())),
      suffix_(text_of(segment.model()->end_of_word_suffix())) {
  if (segment.model()->word_start() != 0)
    append_utf8(word_start_, static_cast<char32_t>(segment.model()->word_start()));
}

Result<std::unique_ptr<Model>> Bpe::make(const fb::Segment& segment) {
  std::unique_ptr<Bpe> bpe(new Bpe(segment));
  MOTE_RETURN_IF_ERROR(read_byte_ids(segment, bpe->byte_ids_));
  return std::unique_ptr<Model>(std::move(bpe));
}

int32_t Bpe::find_character(std::string_view character, bool first, bool last, std::string& spelled) const {
  const bool prefixed = !first && !prefix_.empty();
  const bool suffixed = last && !suffix_.empty();
  if (!prefixed && !suffixed) {
    spelled = character;
  } else {
    spelled = prefixed ? prefix_ : std::string();
    spelled += character;
    if (suffixed) spelled += suffix_;
  }
  return vocabulary_.find(spelled);
}

bool Bpe::append_bytes(std::string_view spelled, std::vector<Symbol>& symbols) const {
  const auto is_known = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; };
  if (!byte_fallback_ || !std::all_of(spelled.begin(), spelled.end(), is_known)) return false;
  for (const char c : spelled) symbols.push_back({byte_ids_[static_cast<unsigned char>(c)], 1});
  return true;
}

// An unknown character that is waiting to be fused with the next stays behind bytes that stand before it: Hugging Face
// does.
Status Bpe::append_symbols(std::string_view word, std::vector<Symbol>& symbols) const {
  Symbol unknown;  // length 0: none
  std::string spelled;
  for (size_t at = 0; at < word.size();) {
    const size_t length = first_character(word.substr(at)).length;
    const bool first = at == 0;
    const std::string_view character = word.substr(at, length);
    at += length;
    const int32_t id = find_character(character, first, at == word.size(), spelled);
    if (id >= 0) {
      if (unknown.length > 0) symbols.push_back(unknown);
      unknown.length = 0;
      symbols.push_back({id, static_cast<uint32_t>(length)});
      continue;
    }
    if (append_bytes(spelled, symbols)) continue;
    if (unk_id_ == kMissingId)
      return {Code::kInvalidArgument, "the text needs the unknown token, which the vocabulary lacks"};
    if (unk_id_ < 0) continue;
    if (unknown.length > 0 && !fuse_unk_) {
      symbols.push_back(unknown);
      unknown.length = 0;
    }
    unknown = {unk_id_, unknown.length + static_cast<uint32_t>(length)};
  }
  if (unknown.length > 0) symbols.push_back(unknown);
  return {};
}

template <typename Body>
Status Bpe::for_each_word(std::string_view piece, const Body& body) const {
  if (word_start_.empty()) return body(piece, 0);
  size_t begin = 0;
  while (begin < piece.size()) {
    size_t end = begin;
    while (piece.substr(end, word_start_.size()) == word_start_) end += word_start_.size();
    end = std::min(piece.find(word_start_, end), piece.size());
    MOTE_RETURN_IF_ERROR(body(piece.substr(begin, end - begin), begin));
    begin = end;
  }
  return {};
}

Status Bpe::merge(std::string_view part, std::vector<Symbol>& symbols) const {
  if (const int32_t id = merged_whole(vocabulary_, part); id >= 0) {
    symbols.push_back({id, static_cast<uint32_t>(part.size())});
    return {};
  }
  MOTE_RETURN_IF_ERROR(append_symbols(part, symbols));
  merge_symbols(merges_, symbols);
  return {};
}

Status Bpe::encode(std::string_view piece, std::vector<Token>& tokens) const {
  if (const int32_t id = unmerged(piece); id >= 0) {
    tokens.push_back({id, 0, static_cast<uint32_t>(piece.size())});
    return {};
  }
  return for_each_word(piece, [&](std::string_view word, size_t place) {
    return for_each_part(junctions_, word, [&](size_t begin, size_t end) -> Status {
      std::vector<Symbol>& symbols = symbols_of_thread();
      MOTE_RETURN_IF_ERROR(merge(word.substr(begin, end - begin), symbols));
      append_tokens(symbols, place + begin, tokens);
      return {};
    });
  });
}

Status Bpe::encode_ids(std::string_view piece, std::vector<int32_t>& ids) const {
  if (const int32_t id = unmerged(piece); id >= 0) {
    ids.push_back(id);
    return {};
  }
  return for_each_word(piece, [&](std::string_view word, size_t) {
    return for_each_part(junctions_, word, [&](size_t begin, size_t end) {
      const auto merged = [this](std::string_view part, std::vector<Symbol>& symbols) { return merge(part, symbols); };
      return append_part_ids(cache_owner_, word.substr(begin, end - begin), ids, merged);
    });
  });
}

ByteLevelBpe::ByteLevelBpe(const fb::Segment& segment)
    : vocabulary_(segment),
      merges_(segment.model()->merges(), vocabulary_.num_ids()),
      junctions_(*segment.model()),
      ignore_merges_(segment.model()->ignore_merges()),
      cache_owner_(PieceCache::new_owner()) {}

Result<std::unique_ptr<Model>> ByteLevelBpe::make(const fb::Segment& segment) {
  std::unique_ptr<ByteLevelBpe> bpe(new ByteLevelBpe(segment));
  MOTE_RETURN_IF_ERROR(read_byte_ids(segment, bpe->byte_ids_));
  return std::unique_ptr<Model>(std::move(bpe));
}

int32_t ByteLevelBpe::whole(std::string_view piece) const {
  return ignore_merges_ ? vocabulary_.find(piece) : merged_whole(vocabulary_, piece);
}

void ByteLevelBpe::merge(std::string_view part, std::vector<Symbol>& symbols) const {
  if (const int32_t id = merged_whole(vocabulary_, part); id >= 0) {
    symbols.push_back({id, static_cast<uint32_t>(part.size())});
    return;
  }
  for (const char c : part) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) symbols.push_back({id, 1});  // what a whole alphabet lacks is in no UTF-8
  }
  merge_symbols(merges_, symbols);
}

Status ByteLevelBpe::encode(std::string_view piece, std::vector<Token>& tokens) const {
  if (const int32_t id = whole(piece); id >= 0) {
    tokens.push_back({id, 0, static_cast<uint32_t>(piece.size())});
    return {};
  }
  return for_each_part(junctions_, piece, [&](size_t begin, size_t end) -> Status {
    std::vector<Symbol>& symbols = symbols_of_thread();
    merge(piece.substr(begin, end - begin), symbols);
    append_tokens(symbols, begin, tokens);
    return {};
  });
}

Status ByteLevelBpe::encode_ids(std::string_view piece, std::vector<int32_t>& ids) const {
  if (const int32_t id = whole(piece); id >= 0) {
    ids.push_back(id);
    return {};
  }
  return for_each_part(junctions_, piece, [&](size_t begin, size_t end) {
    const auto merged = [this](std::string_view part, std::vector<Symbol>& symbols) {
      merge(part, symbols);
      return Status();
    };
    return append_part_ids(cache_owner_, piece.substr(begin, end - begin), ids, merged);
  });
}

}  // namespace mote::tokenizer
