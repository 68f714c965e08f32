// Remembers what frequent pieces were merged to. One a thread, of a fixed size, shared by all tokenizers.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tokenizer/segment/hash.h"

namespace mote::tokenizer {

class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 48;
  static constexpr size_t kMaxIds = 16;

  // The calling thread's.
  static PieceCache& of_thread() {
    thread_local PieceCache cache;
    return cache;
  }
  // A number for a tokenizer, which no other one gets.
  static uint64_t new_owner();

  // Appends the ids of a piece if it is known.
  bool append(uint64_t owner, std::string_view piece, std::vector<int32_t>& ids) const {
    if (piece.size() > kMaxBytes || entries_.empty()) return false;
    const Entry& entry = entries_[slot_of(owner, piece)];
    if (entry.owner != owner || entry.num_bytes != piece.size() || std::memcmp(entry.bytes.data(), piece.data(), piece.size()) != 0) {
      return false;
    }
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.num_ids);
    return true;
  }

  // Takes the place of whatever piece falls on the same slot.
  void remember(uint64_t owner, std::string_view piece, const int32_t* ids, size_t count) {
    if (piece.size() > kMaxBytes || count > kMaxIds) return;
    if (entries_.empty()) entries_.resize(kNumEntries);
    Entry& entry = entries_[slot_of(owner, piece)];
    entry.owner = owner;
    entry.num_bytes = static_cast<uint8_t>(piece.size());
    entry.num_ids = static_cast<uint8_t>(count);
    std::memcpy(entry.bytes.data(), piece.data(), piece.size());
    std::memcpy(entry.ids.data(), ids, count * sizeof(int32_t));
  }

 private:
  static constexpr size_t kNumEntries = 4096;

  struct Entry {
    uint64_t owner = 0;  // 0: empty
    uint8_t num_bytes = 0;
    uint8_t num_ids = 0;
    std::array<char, kMaxBytes> bytes{};
    std::array<int32_t, kMaxIds> ids{};
  };

  static size_t slot_of(uint64_t owner, std::string_view piece) {
    return static_cast<size_t>(hash_string(piece) + owner) % kNumEntries;
  }

  std::vector<Entry> entries_;
};

}  // namespace mote::tokenizer
