#include "tokenizer/normalize/charsmap.h"

#include <cstring>
#include <vector>

#include "base/utf8.h"

namespace mote::tokenizer {
namespace {

// The fields of a unit of darts-clone.
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFFu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FFu; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::open(std::span<const uint8_t> bytes) {
  Charsmap map;
  if (bytes.empty()) return map;
  uint32_t trie_bytes = 0;
  if (bytes.size() > 4) std::memcpy(&trie_bytes, bytes.data(), 4);
  MOTE_REQUIRE(
      bytes.size() > 4 && trie_bytes % 4 == 0 && trie_bytes >= 4 && trie_bytes < bytes.size() - 4,
      Code::kInvalidTokenizer,
      "precompiled_charsmap: a map of %zu bytes says that %u are its trie: must be a multiple of 4 that leaves room",
      bytes.size(), trie_bytes);
  map.units_ = bytes.data() + 4;
  map.num_units_ = trie_bytes / 4;
  map.replacements_ = {reinterpret_cast<const char*>(bytes.data()) + 4 + trie_bytes, bytes.size() - 4 - trie_bytes};
  return map;
}

uint32_t Charsmap::unit(size_t index) const {
  uint32_t value = 0;
  std::memcpy(&value, units_ + 4 * index, 4);
  return value;
}

std::string_view Charsmap::replacement_at(uint32_t value) const {
  if (value >= replacements_.size()) return {};
  const std::string_view rest = replacements_.substr(value);
  const std::string_view text = rest.substr(0, rest.find('\0'));
  return is_valid_utf8(text) ? text : std::string_view();
}

std::optional<Charsmap::Found> Charsmap::prefix(std::string_view text, bool longest) const {
  if (num_units_ == 0) return std::nullopt;
  std::optional<Found> found;
  size_t node = offset_of(unit(0));
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto label = static_cast<uint8_t>(text[i]);
    node ^= label;
    if (node >= num_units_) break;
    const uint32_t here = unit(node);
    if (label_of(here) != label) break;
    node ^= offset_of(here);
    if (!has_leaf(here)) continue;
    if (node >= num_units_) break;
    found = Found{i + 1, replacement_at(value_of(unit(node)))};
    if (!longest) break;
  }
  return found;
}

Status Charsmap::check_replacement(size_t index) const {
  MOTE_REQUIRE(index < num_units_, Code::kInvalidTokenizer,
               "precompiled_charsmap: a leaf at unit %zu: must be below %zu", index, num_units_);
  const uint32_t value = value_of(unit(index));
  MOTE_REQUIRE(value < replacements_.size() && (replacements_[value] == '\0' || !replacement_at(value).empty()),
               Code::kInvalidTokenizer,
               "precompiled_charsmap: unit %zu names replacement %u: must be the start of UTF-8 in %zu bytes", index,
               value, replacements_.size());
  return {};
}

Status Charsmap::check() const {
  if (num_units_ == 0) return {};
  std::vector<bool> seen(num_units_);
  std::vector<size_t> todo{offset_of(unit(0))};  // where the children of a node are found
  while (!todo.empty()) {
    const size_t children = todo.back();
    todo.pop_back();
    for (uint32_t label = 1; label < 256; ++label) {
      const size_t child = children ^ label;
      if (child >= num_units_ || seen[child]) continue;
      const uint32_t here = unit(child);
      if (label_of(here) != label) continue;
      seen[child] = true;
      const size_t next = child ^ offset_of(here);
      if (has_leaf(here)) MOTE_RETURN_IF_ERROR(check_replacement(next));
      todo.push_back(next);
    }
  }
  return {};
}

}  // namespace mote::tokenizer
