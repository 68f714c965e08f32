// Remembers what frequent pieces were merged to. One a thread, of a fixed size, shared by all tokenizers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tokenizer/model/merge.h"
#include "tokenizer/segment/hash.h"

namespace mote::tokenizer {

class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 26;
  static constexpr size_t kMaxIds = 8;

  // The calling thread's.
  static PieceCache& of_thread() {
    thread_local PieceCache cache;
    return cache;
  }
  // A number for a tokenizer, which no other one gets.
  static uint32_t new_owner();

  // Appends the ids of a piece if it is known.
  bool append(uint32_t owner, std::string_view piece, std::vector<int32_t>& ids) const {
    if (piece.size() > kMaxBytes || entries_.empty()) return false;
    const Entry& entry = entries_[slot_of(owner, piece)];
    if (entry.owner != owner || entry.num_bytes != piece.size() ||
        std::memcmp(entry.bytes.data(), piece.data(), piece.size()) != 0) {
      return false;
    }
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.num_ids);
    return true;
  }

  // Appends the ids of symbols, and takes the place of whatever piece falls on the same slot.
  void append_and_remember(uint32_t owner, std::string_view piece, const std::vector<Symbol>& symbols,
                           std::vector<int32_t>& ids) {
    const size_t before = ids.size();
    for (const Symbol& symbol : symbols) ids.push_back(symbol.id);
    if (piece.size() > kMaxBytes || symbols.size() > kMaxIds) return;
    if (entries_.empty()) entries_.resize(kNumEntries);
    Entry& entry = entries_[slot_of(owner, piece)];
    entry.owner = owner;
    entry.num_bytes = static_cast<uint8_t>(piece.size());
    entry.num_ids = static_cast<uint8_t>(symbols.size());
    std::memcpy(entry.bytes.data(), piece.data(), piece.size());
    std::copy(ids.begin() + static_cast<ptrdiff_t>(before), ids.end(), entry.ids.begin());
  }

 private:
  static constexpr size_t kNumEntries = 8192;

  struct alignas(64) Entry {  // a line of the nearest cache
    uint32_t owner = 0;       // 0: empty
    uint8_t num_bytes = 0;
    uint8_t num_ids = 0;
    std::array<char, kMaxBytes> bytes{};
    std::array<int32_t, kMaxIds> ids{};
  };

  static size_t slot_of(uint32_t owner, std::string_view piece) {
    return static_cast<size_t>(hash_string(piece) + owner) % kNumEntries;
  }

  std::vector<Entry> entries_;
};

}  // namespace mote::tokenizer
