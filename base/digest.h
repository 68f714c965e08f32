// SHA-256 and SHA-1 (FIPS 180-4) of bytes that come in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mote {

// Collects blocks of 64 bytes for `Rules`, which mixes them into its words.
template <typename Rules>
class Digest {
 public:
  void update(std::span<const std::byte> bytes);
  // The digest in hexadecimal digits of what was given so far; more may be given after that.
  std::string hex() const;

 private:
  std::array<uint32_t, Rules::kNumWords> words_ = Rules::kInitial;
  std::array<std::byte, 64> block_{};
  uint64_t num_bytes_ = 0;
};

struct Sha256Rules {
  static constexpr size_t kNumWords = 8;
  static const std::array<uint32_t, kNumWords> kInitial;
  static void mix(std::array<uint32_t, kNumWords>& words, const std::byte* block);
};
struct Sha1Rules {
  static constexpr size_t kNumWords = 5;
  static const std::array<uint32_t, kNumWords> kInitial;
  static void mix(std::array<uint32_t, kNumWords>& words, const std::byte* block);
};

extern template class Digest<Sha256Rules>;
extern template class Digest<Sha1Rules>;

using Sha256 = Digest<Sha256Rules>;
// For names of contents that git gave; it protects from nobody.
using Sha1 = Digest<Sha1Rules>;

}  // namespace mote
