#include "base/crc32.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace mote {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The check value of the CRC catalogue (CRC-32/ISO-HDLC) and values that zlib.crc32 gives.
TEST(Crc32, agrees_with_zlib) {
  EXPECT_EQ(crc32({}), 0u);
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32(bytes_of("a")), 0xE8B7BE43u);
  EXPECT_EQ(crc32(bytes_of("The quick brown fox jumps over the lazy dog")), 0x414FA339u);
  EXPECT_EQ(crc32(std::vector<std::byte>(32)), 0x190A55ADu);
}

TEST(Crc32, continues_at_any_cut) {
  std::vector<std::byte> bytes(67);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  const std::span<const std::byte> all(bytes);
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    EXPECT_EQ(crc32(all.subspan(cut), crc32(all.first(cut))), crc32(all)) << cut;
  }
}

}  // namespace
}  // namespace mote
