// The hash of the tables in a compiled tokenizer. Part of the format: a change needs another version.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace mote::tokenizer {

inline constexpr uint64_t kHashMultiplier = 0x9E3779B97F4A7C15u;

inline uint64_t mix(uint64_t value) {
  value *= kHashMultiplier;
  return value ^ (value >> 32);
}

inline uint64_t hash_string(std::string_view text) {
  const char* data = text.data();
  size_t left = text.size();
  uint64_t hash = left * 0xC2B2AE3D27D4EB4Fu;
  uint64_t word = 0;
  for (; left >= 8; left -= 8, data += 8) {
    std::memcpy(&word, data, 8);
    hash = mix(hash ^ word);
  }
  word = 0;
  if (left >= 4) {
    uint32_t low = 0;
    uint32_t high = 0;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + left - 4, 4);
    word = static_cast<uint64_t>(high) << 32 | low;
  } else if (left > 0) {
    word = static_cast<uint64_t>(static_cast<unsigned char>(data[0])) |
           static_cast<uint64_t>(static_cast<unsigned char>(data[left / 2])) << 8 |
           static_cast<uint64_t>(static_cast<unsigned char>(data[left - 1])) << 16;
  }
  return mix(mix(hash ^ word));
}

inline uint64_t hash_pair(uint32_t left, uint32_t right) { return mix(mix(static_cast<uint64_t>(left) << 32 | right)); }

// Where a search starts in a table of `count` slots.
inline size_t first_slot(uint64_t hash, size_t count) {
  return static_cast<size_t>(((hash & 0xFFFFFFFFu) * static_cast<uint64_t>(count)) >> 32);
}

// A search ends after this many slots. The compiler enlarges a table until no entry is farther from its first slot.
inline constexpr size_t kMaxProbes = 64;

}  // namespace mote::tokenizer
