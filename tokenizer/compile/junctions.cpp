#include "tokenizer/compile/junctions.h"

#include <optional>
#include <unordered_set>

#include "tokenizer/segment/junctions.h"

namespace mote::tokenizer {
namespace {

// What a token has of the character at one of its ends.
struct JunctionSide {
  std::string_view bytes;
  uint32_t kind = 0;  // as in junction_kind: 0: all of it, else the number of bytes
};

constexpr size_t kBitsPerJunction = 40;  // up to 15 looks into the filter decide about a place

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the character that begins with `lead`; 0: none does.
size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xC2 || byte > 0xF4) return 0;
  return byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// What a token that ends a character has of it.
std::optional<JunctionSide> tail(std::string_view token) {
  size_t count = 1;
  while (count < token.size() && count < 4 && is_continuation(token[token.size() - count])) ++count;
  const std::string_view bytes = token.substr(token.size() - count);
  if (character_bytes(bytes[0]) == count) return JunctionSide{bytes, 0};
  const bool is_part = is_continuation(bytes[0]) && count == token.size() && count < 4;
  if (!is_part) return std::nullopt;
  return JunctionSide{bytes, static_cast<uint32_t>(count)};
}

// What a token that begins a character has of it.
std::optional<JunctionSide> head(std::string_view token) {
  const size_t whole = character_bytes(token[0]);
  size_t count = 1;
  while (count < whole && count < token.size() && is_continuation(token[count])) ++count;
  if (whole == 0 || (count < whole && count < token.size())) return std::nullopt;
  return JunctionSide{token.substr(0, count), count == whole ? 0 : static_cast<uint32_t>(count)};
}

}  // namespace

void build_junctions(const std::function<std::string(uint32_t)>& text_of, fb::ModelT& model) {
  std::unordered_set<uint64_t> junctions;
  uint32_t kinds = junction_kind(0, 0);
  for (const fb::Merge& merge : model.merges) {
    if (merge.id() < 0) continue;
    const std::string left = text_of(merge.left());
    const std::string right = text_of(merge.right());
    if (left.empty() || right.empty() || left + right != text_of(static_cast<uint32_t>(merge.id()))) return;
    const auto end = tail(left);
    const auto begin = head(right);
    if (!end.has_value() || !begin.has_value()) continue;  // inside of a character, or in no UTF-8
    kinds |= junction_kind(end->kind, begin->kind);
    junctions.insert(junction_hash(end->bytes, begin->bytes));
  }
  size_t words = 1;
  while (64 * words < kBitsPerJunction * junctions.size()) words *= 2;
  model.junctions.assign(words, 0);
  for (const uint64_t hash : junctions) {
    const uint64_t bit = hash & (64 * words - 1);
    model.junctions[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  model.junction_kinds = kinds;
}

}  // namespace mote::tokenizer
