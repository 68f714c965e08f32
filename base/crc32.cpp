#include "base/crc32.h"

#include <array>

namespace mote {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;
constexpr size_t kSlices = 8;

// tables[s][b] is what byte b does to the checksum when s more bytes follow it, so that a step takes eight bytes
// instead of one.
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;
Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1u) != 0 ? (value >> 1) ^ kPolynomial : value >> 1;
    tables[0][byte] = value;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xFFu];
    }
  }
  return tables;
}

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous) {
  static const Tables tables = make_tables();  // made in microseconds, and 8 kB less of a library
  uint32_t value = ~previous;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= kSlices; data += kSlices, left -= kSlices) {
    uint32_t next = 0;
    for (size_t i = 0; i < kSlices; ++i) {
      const uint32_t mixed = i < 4 ? data[i] ^ ((value >> (8 * i)) & 0xFFu) : data[i];
      next ^= tables[kSlices - 1 - i][mixed];
    }
    value = next;
  }
  for (; left > 0; ++data, --left) value = (value >> 8) ^ tables[0][(value ^ *data) & 0xFFu];
  return ~value;
}

}  // namespace mote
