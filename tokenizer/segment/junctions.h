// A filter that tells between which characters the merges of a byte pair encoding can join tokens. A text can be cut
// where they cannot: its parts give the same tokens, and recur more often than whole texts do, so that a cache of parts
// pays.
#pragma once

#include <cstdint>
#include <string_view>

#include "segment_generated.h"
#include "tokenizer/segment/hash.h"

namespace mote::tokenizer {

// Of two whole characters, or of the 1 to 3 bytes of one that a token ends or begins with.
inline uint64_t junction_hash(std::string_view left, std::string_view right) {
  uint64_t key = 0;
  for (const char c : left) key = key << 8 | static_cast<unsigned char>(c);
  for (const char c : right) key = key << 8 | static_cast<unsigned char>(c);
  return mix(mix(key ^ static_cast<uint64_t>(right.size()) << 62));
}

// A bit for how many bytes of each of the two characters a token has; 0 stands for the whole character.
inline uint32_t junction_kind(uint32_t left, uint32_t right) { return uint32_t{1} << (4 * left + right); }

class JunctionsView {
 public:
  JunctionsView() = default;
  explicit JunctionsView(const fb::Model& model) {
    if (model.junctions() == nullptr) return;
    const uint64_t count = model.junctions()->size();
    if (count == 0 || (count & (count - 1)) != 0) return;
    words_ = model.junctions()->data();
    mask_ = 64 * count - 1;
    kinds_ = model.junction_kinds();
  }

  bool known() const { return words_ != nullptr; }

  // Whether a merge may lead across the place between two whole characters. Never wrongly false.
  bool may_join(std::string_view left, std::string_view right) const {
    if (contains(left, right)) return true;
    if (kinds_ == junction_kind(0, 0)) return false;
    for (uint32_t l = 0; l < 4 && l < left.size(); ++l) {
      for (uint32_t r = 0; r < 4 && r < right.size(); ++r) {
        if (l + r == 0 || (kinds_ & junction_kind(l, r)) == 0) continue;
        if (contains(l == 0 ? left : left.substr(left.size() - l), r == 0 ? right : right.substr(0, r))) return true;
      }
    }
    return false;
  }

 private:
  bool contains(std::string_view left, std::string_view right) const {
    const uint64_t bit = junction_hash(left, right) & mask_;
    return (words_[bit / 64] >> (bit % 64) & 1) != 0;
  }
  const uint64_t* words_ = nullptr;
  uint64_t mask_ = 0;
  uint32_t kinds_ = 0;
};

}  // namespace mote::tokenizer
