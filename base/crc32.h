// CRC-32 as zlib and PNG compute it (reflected polynomial 0xEDB88320).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mote {

// Checksum of `bytes`; pass the checksum of what came before to continue it.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous = 0);

}  // namespace mote
