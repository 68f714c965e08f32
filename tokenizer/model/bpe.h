// Byte-level byte pair encoding.
// Source: arXiv 1508.07909; tokenizers models/bpe/{model,word}.rs
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "tokenizer/json.h"

namespace mote::tokenizer {

// Ids of a vocabulary are below this; it bounds tables that are indexed by id.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;

struct VocabularyEntry {
  std::string text;  // as the file spells it
  int32_t id = 0;
};

// What rank a pair of neighbours merges with, and into which id. Open addressing, 16 bytes a slot.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = 0;
    int32_t id = -1;  // -1: the pair does not merge
  };

  void reserve(size_t num_merges);
  void insert(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  size_t slot_of(uint64_t key) const;

  std::vector<Slot> slots_;
};

// Immutable after make; may be used from any number of threads.
class Bpe {
 public:
  // Reads the `model` object. `vocabulary` receives its entries.
  static Result<Bpe> make(const Field& field, std::vector<VocabularyEntry>& vocabulary);

  // Appends the ids of one piece of bytes. Bytes that the vocabulary lacks are dropped, as Hugging Face does.
  // Cost: O(n log n) in the piece's bytes.
  void encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  Bpe() { byte_ids_.fill(-1); }
  Status read_merges(const Field& field, const std::unordered_map<std::string, int32_t>& ids);

  std::array<int32_t, 256> byte_ids_;
  MergeTable merges_;
  bool ignore_merges_ = false;
  std::unordered_map<std::string, int32_t> whole_pieces_;  // only with ignore_merges: bytes of every token
};

}  // namespace mote::tokenizer
