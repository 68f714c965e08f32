// Views of the tables in a compiled tokenizer. Every access is checked, so whatever bytes the file holds, nothing
// outside of them is read and every search ends.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "segment_generated.h"
#include "tokenizer/segment/hash.h"

namespace mote::tokenizer {

// The largest id that a token may have. It bounds the tables that are indexed by id.
inline constexpr int32_t kMaxTokenId = (1 << 22) - 1;

enum TokenFlag : uint8_t {
  kTokenPresent = 1,  // some token has this id
  kTokenSpecial = 2,
  kTokenUnspelled = 4,  // stored as bytes, while tokenizer files spell it in the byte-level alphabet
  kTokenWhole = 8,      // BPE turns its text into this one id
};

class StringsView {
 public:
  StringsView() = default;
  explicit StringsView(const fb::Strings& strings)
      : offsets_(strings.offsets()->data()),
        bytes_(reinterpret_cast<const char*>(strings.bytes()->data())),
        count_(strings.offsets()->size() > 0 ? strings.offsets()->size() - 1 : 0),
        num_bytes_(strings.bytes()->size()) {}

  size_t size() const { return count_; }
  // Empty for an index that is too large or a string that would leave the bytes.
  std::string_view operator[](size_t index) const {
    if (index >= count_) return {};
    const uint32_t begin = offsets_[index];
    const uint32_t end = offsets_[index + 1];
    if (begin > end || end > num_bytes_) return {};
    return {bytes_ + begin, end - begin};
  }

 private:
  const uint32_t* offsets_ = nullptr;
  const char* bytes_ = nullptr;
  size_t count_ = 0;
  size_t num_bytes_ = 0;
};

// The strings that the model knows, and their ids.
class VocabularyView {
 public:
  VocabularyView() = default;
  explicit VocabularyView(const fb::Segment& segment)
      : strings_(*segment.tokens()),
        flags_(segment.token_flags()->data()),
        num_ids_(segment.token_flags()->size()),
        slots_(reinterpret_cast<const fb::Slot*>(segment.slots()->Data())),
        num_slots_(segment.slots()->size()) {
    if (segment.alias_ids() == nullptr) return;
    alias_ids_ = segment.alias_ids()->data();
    num_aliases_ = segment.alias_ids()->size();
  }

  int32_t num_ids() const { return static_cast<int32_t>(num_ids_); }
  const StringsView& strings() const { return strings_; }
  uint8_t flags(int32_t id) const { return static_cast<size_t>(id) < num_ids_ && id >= 0 ? flags_[id] : uint8_t{0}; }

  // The id of `text`, -1: none.
  int32_t find(std::string_view text) const {
    if (num_slots_ == 0) return -1;
    const uint64_t hash = hash_string(text);
    const auto fingerprint = static_cast<uint32_t>(hash >> 32);
    size_t slot = first_slot(hash, num_slots_);
    for (size_t probe = 0; probe < kMaxProbes; ++probe) {
      const fb::Slot& entry = slots_[slot];
      if (entry.entry() == 0) return -1;
      if (entry.fingerprint() == fingerprint) {
        const size_t index = entry.entry() - 1;
        if (index < strings_.size() && strings_[index] == text) return id_of(index);
      }
      if (++slot == num_slots_) slot = 0;
    }
    return -1;
  }

 private:
  int32_t id_of(size_t index) const {
    if (index < num_ids_) return static_cast<int32_t>(index);
    if (index - num_ids_ >= num_aliases_) return -1;
    const int32_t id = alias_ids_[index - num_ids_];
    return id >= 0 && static_cast<size_t>(id) < num_ids_ ? id : -1;
  }

  StringsView strings_;
  const uint8_t* flags_ = nullptr;
  size_t num_ids_ = 0;
  const fb::Slot* slots_ = nullptr;
  size_t num_slots_ = 0;
  const int32_t* alias_ids_ = nullptr;
  size_t num_aliases_ = 0;
};

class MergesView {
 public:
  struct Found {
    uint32_t rank = 0;
    int32_t id = -1;  // -1: the pair does not merge
  };

  MergesView() = default;
  MergesView(const flatbuffers::Vector<const fb::Merge*>* merges, int32_t num_ids) : num_ids_(num_ids) {
    if (merges == nullptr) return;
    merges_ = reinterpret_cast<const fb::Merge*>(merges->Data());
    count_ = merges->size();
  }

  Found find(uint32_t left, uint32_t right) const {
    if (count_ == 0) return {};
    size_t slot = first_slot(hash_pair(left, right), count_);
    for (size_t probe = 0; probe < kMaxProbes; ++probe) {
      const fb::Merge& merge = merges_[slot];
      if (merge.left() == left && merge.right() == right) {
        return merge.id() < num_ids_ ? Found{merge.rank(), merge.id()} : Found{};
      }
      if (merge.id() < 0) return {};
      if (++slot == count_) slot = 0;
    }
    return {};
  }

 private:
  const fb::Merge* merges_ = nullptr;
  size_t count_ = 0;
  int32_t num_ids_ = 0;
};

class TrieView {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = ~uint32_t{0};

  TrieView() { children_of_root_.fill(kNone); }
  explicit TrieView(const fb::Trie* trie);

  bool empty() const { return num_edges_ == 0; }
  // The node behind the edge `label`, or kNone.
  uint32_t child(uint32_t node, uint8_t label) const {
    if (node == kRoot) return children_of_root_[label];
    return search(node, label);
  }
  // The value of the string that ends at `node`, -1: none.
  int32_t value(uint32_t node) const { return node < num_values_ ? values_[node] : -1; }

  // The longest string of the trie that `text` starts with; length 0: none.
  struct Found {
    int32_t value = -1;
    size_t length = 0;
  };
  Found longest_prefix(std::string_view text) const;

 private:
  uint32_t search(uint32_t node, uint8_t label) const;

  const uint32_t* first_edges_ = nullptr;
  const uint8_t* labels_ = nullptr;
  const int32_t* values_ = nullptr;
  size_t num_nodes_ = 0;
  size_t num_edges_ = 0;
  size_t num_values_ = 0;
  std::array<uint32_t, 256> children_of_root_;
};

}  // namespace mote::tokenizer
