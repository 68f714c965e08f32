#include "base/digest.h"

#include <algorithm>
#include <bit>

#include "base/status.h"

namespace mote {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kLengthAt = 56;  // in the last block

constexpr std::array<uint32_t, 64> kRoundWords = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint32_t>(bytes[i]);
  return value;
}

}  // namespace

const std::array<uint32_t, 8> Sha256Rules::kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
const std::array<uint32_t, 5> Sha1Rules::kInitial = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

void Sha256Rules::mix(std::array<uint32_t, kNumWords>& words, const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = words;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundWords[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, kNumWords> mixed = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < kNumWords; ++i) words[i] += mixed[i];
}

void Sha1Rules::mix(std::array<uint32_t, kNumWords>& words, const std::byte* block) {
  std::array<uint32_t, 80> w;
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = words;
  for (size_t i = 0; i < 80; ++i) {
    uint32_t t = std::rotl(a, 5) + e + w[i];
    if (i < 20)
      t += ((b & c) | (~b & d)) + 0x5a827999;
    else if (i < 40)
      t += (b ^ c ^ d) + 0x6ed9eba1;
    else if (i < 60)
      t += ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    else
      t += (b ^ c ^ d) + 0xca62c1d6;
    e = d, d = c, c = std::rotl(b, 30), b = a, a = t;
  }
  const std::array<uint32_t, kNumWords> mixed = {a, b, c, d, e};
  for (size_t i = 0; i < kNumWords; ++i) words[i] += mixed[i];
}

template <typename Rules>
void Digest<Rules>::update(std::span<const std::byte> bytes) {
  const size_t held = num_bytes_ % kBlockBytes;
  num_bytes_ += bytes.size();
  if (held > 0) {
    const size_t count = std::min(kBlockBytes - held, bytes.size());
    std::copy_n(bytes.begin(), count, block_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(count);
    if (held + count < kBlockBytes) return;
    Rules::mix(words_, block_.data());
  }
  for (; bytes.size() >= kBlockBytes; bytes = bytes.subspan(kBlockBytes)) Rules::mix(words_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), block_.begin());
}

template <typename Rules>
std::string Digest<Rules>::hex() const {
  Digest whole = *this;
  std::array<std::byte, 2 * kBlockBytes> end{std::byte{0x80}};
  const size_t held = num_bytes_ % kBlockBytes;
  const size_t length_at = (held < kLengthAt ? kLengthAt : kBlockBytes + kLengthAt) - held;
  for (size_t i = 0; i < 8; ++i) end[length_at + i] = static_cast<std::byte>(num_bytes_ * 8 >> (56 - 8 * i));
  whole.update(std::span(end).first(length_at + 8));
  std::string text;
  for (const uint32_t word : whole.words_) text += format("%08x", word);
  return text;
}

template class Digest<Sha256Rules>;
template class Digest<Sha1Rules>;

}  // namespace mote
