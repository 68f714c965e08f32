#include "runner/program/weights_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/path.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

struct WeightsHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t weights_bytes;
  uint64_t file_bytes;
  uint32_t weights_crc32;
  uint8_t reserved[28];
};
static_assert(sizeof(WeightsHeader) == 64);

constexpr char kWeightsMagic[8] = {'M', 'O', 'T', 'W', '\r', '\n', '\x1a', '\n'};
constexpr uint32_t kWeightsVersion = 1;
constexpr std::string_view kEnding = ".motew";

// The name may come from anybody: it must not lead out of the program's folder.
Status check_name(const Path& path, const flatbuffers::String& name) {
  MOTE_RETURN_IF_ERROR(check_text(path, name, kMaxNameBytes));
  const std::string_view text = text_of(name);
  if (text.find_first_of("/\\:") == std::string_view::npos && text.ends_with(kEnding) && text.size() > kEnding.size())
    return {};
  return invalid(path, "= %s: must be a name that ends in .motew, of a file in the same folder", name.c_str());
}

// Of a file in a folder beside the program's.
Status check_asset_name(const Path& path, const flatbuffers::String& name) {
  MOTE_RETURN_IF_ERROR(check_text(path, name, kMaxNameBytes));
  const std::string_view text = text_of(name);
  bool is_good = text.find_first_of("\\:") == std::string_view::npos && text.find('/') != std::string_view::npos;
  for (size_t begin = 0; begin <= text.size() && is_good;) {
    const size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    is_good = !part.empty() && part != "." && part != "..";
    begin = end + 1;
  }
  if (is_good) return {};
  return invalid(path, "= %s: must be a path of names within a folder beside the file", name.c_str());
}

}  // namespace

Status check_weights_header(const SourceBytes& file, const Mapped& program, const fb::Segment& segment) {
  const Path path{nullptr, file.name().c_str(), -1};
  WeightsHeader header{};
  if (file.bytes().size() < sizeof header)
    return invalid(path, "the file has %zu bytes: a .motew file starts with a header of 64", file.bytes().size());
  std::memcpy(&header, file.bytes().data(), sizeof header);
  if (std::memcmp(header.magic, kWeightsMagic, sizeof kWeightsMagic) != 0)
    return invalid(path, "is no .motew file: `mote export --weights-file` makes one beside a .mote file");
  MOTE_REQUIRE(header.version == kWeightsVersion, Code::kUnsupportedVersion,
               "%s: version = %u: this runner reads version %u; export the model again or use another runner",
               file.name().c_str(), header.version, kWeightsVersion);
  if (header.header_bytes != sizeof header) return invalid(path, "header_bytes = %u: must be 64", header.header_bytes);
  if (header.file_bytes != file.bytes().size())
    return invalid(path, "file_bytes = %llu: the file has %zu bytes, so it was truncated or appended to",
                   static_cast<unsigned long long>(header.file_bytes), file.bytes().size());
  if (header.file_bytes < kWeightsOffset || header.weights_bytes != header.file_bytes - kWeightsOffset)
    return invalid(path, "weights_bytes = %llu: the file has %zu bytes, with weights from %llu on",
                   static_cast<unsigned long long>(header.weights_bytes), file.bytes().size(),
                   static_cast<unsigned long long>(kWeightsOffset));
  if (std::ranges::any_of(header.reserved, [](uint8_t byte) { return byte != 0; }))
    return invalid(path, "header.reserved: must be zero");
  if (header.weights_crc32 != segment.crc32() || header.weights_bytes != segment.bytes())
    return invalid(path,
                   "weights_crc32 = %08x of %llu bytes: %s was exported with weights of checksum %08x and %llu "
                   "bytes; give the file that was made with it",
                   header.weights_crc32, static_cast<unsigned long long>(header.weights_bytes), program.name().c_str(),
                   segment.crc32(), static_cast<unsigned long long>(segment.bytes()));
  return {};
}

std::array<std::byte, kHeaderBytes> weights_header(const fb::Segment& segment) {
  WeightsHeader header{};
  std::memcpy(header.magic, kWeightsMagic, sizeof kWeightsMagic);
  header.version = kWeightsVersion;
  header.header_bytes = sizeof header;
  header.weights_bytes = segment.bytes();
  header.file_bytes = kWeightsOffset + segment.bytes();
  header.weights_crc32 = segment.crc32();
  return std::bit_cast<std::array<std::byte, kHeaderBytes>>(header);
}

Result<std::string> place_of_weights(const Mapped& mapped, const fb::Segment& segment, const std::string& given) {
  if (!given.empty()) return given;
  const std::string name = segment.file()->str();
  MOTE_REQUIRE(mapped.has_path(), Code::kInvalidArgument,
               "%s: its weights are in %s: say where that is with the option weights_file", mapped.name().c_str(),
               name.c_str());
  return to_text(to_path(mapped.name()).parent_path() / to_path(name));
}

Status add_weights_file(Mapped& mapped, const fb::Program& program, const WeightsFrom& from) {
  const Path file{nullptr, mapped.name().c_str(), -1};
  const fb::Segment* weights = nullptr;
  for (uint32_t i = 0; i < program.segments()->size(); ++i) {
    const fb::Segment* segment = program.segments()->Get(i);
    if (segment->file() == nullptr) continue;
    const Path path{&file, "segments", i};
    if (segment->kind() != fb::SegmentKind::weights || weights != nullptr)
      return invalid(path, "file: only weights may be in another file, and only once");
    const Path name{&path, "file", -1};
    MOTE_RETURN_IF_ERROR(program.asset() == nullptr ? check_name(name, *segment->file())
                                                    : check_asset_name(name, *segment->file()));
    if (segment->offset() != kWeightsOffset)
      return invalid(path, "offset = %llu: must be %llu, where the weights of a .motew file begin",
                     static_cast<unsigned long long>(segment->offset()),
                     static_cast<unsigned long long>(kWeightsOffset));
    weights = segment;
  }
  if (weights == nullptr) {
    MOTE_REQUIRE(from.path.empty(), Code::kInvalidArgument,
                 "weights_file = %s: must not be given for %s, which has its weights in itself", from.path.c_str(),
                 mapped.name().c_str());
    return {};
  }
  if (program.asset() != nullptr) return {};
  MOTE_ASSIGN(const std::string place, place_of_weights(mapped, *weights, from.path));
  Result<SourceBytes> taken = SourceBytes::take(place, from.mode, from.progress);
  if (!taken.ok())
    return Status(taken.status().code(),
                  format("%s (the weights of %s)", taken.status().message().c_str(), mapped.name().c_str()));
  const Status checked = check_weights_header(*taken, mapped, *weights);
  MOTE_RETURN_IF_ERROR(taken->check_readable());  // says more than that zeros are no header
  MOTE_RETURN_IF_ERROR(checked);
  mapped.add_weights_file(std::move(*taken));
  return {};
}

}  // namespace mote
