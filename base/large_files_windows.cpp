#include "base/large_files.h"
#include "base/memory.h"

namespace mote {

int64_t memory_limit_bytes() { return physical_memory_bytes(); }

void read_ahead(std::span<const std::byte>) {}  // Windows says of no page of a file whether memory has it

}  // namespace mote
