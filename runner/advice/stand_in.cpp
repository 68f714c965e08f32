#include "runner/advice/stand_in.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "base/memory.h"
#include "runner/program/mapped.h"
#include "schema_generated.h"

namespace mote {
namespace {

constexpr size_t kSegmentAlignment = 65536;        // a multiple of every system's pages
constexpr int64_t kLeastRing = int64_t{64} << 20;  // also where the system does not tell its caches
constexpr int64_t kMostRing = int64_t{512} << 20;

struct Beginning {
  FileSizes sizes;
  std::span<const std::byte> bytes;  // header and program
  uint64_t weights_offset = 0, weights_bytes = 0;
  uint64_t tokenizer_bytes = 0;
};

// Errors: those of open_stand_in. What is wrong with the program beyond its structure is found when it is verified.
Result<Beginning> read_beginning(const SourceBytes& source) {
  Beginning read;
  const char* name = source.name().c_str();
  MOTE_ASSIGN(read.sizes, file_sizes(source.name(), source.bytes()));
  const uint64_t needed = kHeaderBytes + read.sizes.program_bytes;
  MOTE_REQUIRE(source.bytes().size() >= needed, Code::kInvalidArgument,
               "%s: %zu bytes are there: the program ends at byte %llu, and at least so much is needed", name,
               source.bytes().size(), static_cast<unsigned long long>(needed));
  read.bytes = source.bytes().first(static_cast<size_t>(needed));
  const std::span<const std::byte> program = read.bytes.subspan(kHeaderBytes);
  const AlignedMemory copy = allocate_aligned(program.size());
  MOTE_REQUIRE(copy != nullptr, Code::kOutOfMemory, "%s: no memory for the program (%zu bytes)", name, program.size());
  std::ranges::copy(program, copy.get());
  const auto* buffer = reinterpret_cast<const uint8_t*>(copy.get());
  flatbuffers::Verifier verifier(buffer, program.size());
  MOTE_REQUIRE(fb::VerifyProgramBuffer(verifier), Code::kInvalidProgram,
               "%s: program: is not a well-formed flatbuffer \"%s\"", name, fb::ProgramIdentifier());
  for (const fb::Segment* segment : *fb::GetProgram(buffer)->segments()) {
    if (segment->kind() == fb::SegmentKind::tokenizer) read.tokenizer_bytes = segment->bytes();
    if (segment->kind() != fb::SegmentKind::weights) continue;
    MOTE_REQUIRE(segment->file() == nullptr, Code::kInvalidArgument,
                 "%s: its weights are in %s: advice is given of files that hold them; `mote bench` measures this one",
                 name, segment->file()->c_str());
    read.weights_offset = segment->offset();
    read.weights_bytes = segment->bytes();
  }
  return read;
}

// The least that no cache keeps from one step to the next, or all weights if they are fewer.
size_t ring_bytes(uint64_t weights_bytes) {
  const auto wanted = static_cast<uint64_t>(std::clamp(2 * last_cache_bytes(), kLeastRing, kMostRing));
  return static_cast<size_t>(std::min(wanted, weights_bytes) / kSegmentAlignment * kSegmentAlignment);
}

// Address space of the file's size: its beginning, its weights as repetitions of a ring, the rest zeros.
Result<ReservedPages> make_file(const std::string& name, const Beginning& read) {
  const uint64_t end = read.weights_offset + read.weights_bytes;
  MOTE_REQUIRE(read.weights_offset % kSegmentAlignment == 0 && end >= read.weights_bytes &&
                   end <= read.sizes.file_bytes && read.bytes.size() <= read.sizes.file_bytes,
               Code::kInvalidProgram, "%s: segments: the weights must begin at a multiple of 65536 and end in the file",
               name.c_str());
  const auto bytes = static_cast<size_t>(read.sizes.file_bytes);
  ReservedPages file(reserve_addresses(bytes), ReleasePages{bytes});
  MOTE_REQUIRE(file != nullptr, Code::kOutOfMemory, "%s: the system has no address space for its %zu bytes",
               name.c_str(), bytes);
  std::ranges::copy(read.bytes, file.get());
  std::byte* weights = file.get() + read.weights_offset;
  size_t repeated = static_cast<size_t>(read.weights_bytes) / kSegmentAlignment * kSegmentAlignment;
  const size_t ring = ring_bytes(read.weights_bytes);
  if (ring == 0 || !repeat_pages(weights, repeated, ring)) {
    MOTE_REQUIRE(read.weights_bytes <= static_cast<uint64_t>(physical_memory_bytes()) / 2, Code::kOutOfMemory,
                 "%s: on this system weights that stand in for its own need as much memory as they do, %llu bytes",
                 name.c_str(), static_cast<unsigned long long>(read.weights_bytes));
    repeated = 0;
  }
  fill_with_small_numbers({weights, repeated == 0 ? static_cast<size_t>(read.weights_bytes) : ring});
  return file;
}

}  // namespace

void fill_with_small_numbers(std::span<std::byte> memory) {
  constexpr uint64_t kBase = 0x3030303030303030, kRandom = 0x8787878787878787;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < memory.size(); i += sizeof(uint64_t)) {
    const uint64_t word = kBase | (random() & kRandom);
    std::memcpy(memory.data() + i, &word, std::min(sizeof word, memory.size() - i));
  }
}

Result<StandIn> open_stand_in(const Source& beginning) {
  MOTE_ASSIGN(const SourceBytes source, SourceBytes::take(beginning, LoadMode::kMap, {}));
  const Result<Beginning> read = read_beginning(source);
  MOTE_RETURN_IF_ERROR(source.check_readable());
  MOTE_RETURN_IF_ERROR(read.status());
  MOTE_ASSIGN(ReservedPages made, make_file(source.name(), *read));
  const auto file = std::make_shared<const ReservedPages>(std::move(made));
  const std::span<const std::byte> bytes(file->get(), static_cast<size_t>(read->sizes.file_bytes));
  OpenOptions options;
  options.backend = kCpu;
  MOTE_ASSIGN(auto model, Model::open(MemoryBytes{source.name(), bytes, file}, options));
  return StandIn{std::move(model), read->tokenizer_bytes};
}

}  // namespace mote
