#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <new>
#include <utility>

#include "base/crc32.h"
#include "base/utf8.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

constexpr uint32_t kMaxMethods = 64;
constexpr uint32_t kMaxDepth = 32;
constexpr uint32_t kMaxTables = 1'000'000;

// Empty: they are not made yet.
std::span<const std::byte> bytes_of(const Mapped& mapped, const fb::Segment& segment) {
  if (segment.file() != nullptr && mapped.weights_file() == nullptr) return {};
  const std::span<const std::byte> file =
      segment.file() == nullptr ? mapped.file_bytes() : mapped.weights_file()->bytes();
  return file.subspan(static_cast<size_t>(segment.offset()), static_cast<size_t>(segment.bytes()));
}

}  // namespace

std::string Path::text() const {
  if (parent == nullptr) return std::string(name) + ":";
  std::string text = parent->text();
  text += text.back() == ':' ? " " : ".";
  text += name;
  if (index >= 0) text += "[" + std::to_string(index) + "]";
  return text;
}

Status invalid(const Path& path, const char* pattern, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer, sizeof(buffer), pattern, arguments);
  va_end(arguments);
  return Status(Code::kInvalidProgram, path.text() + " " + buffer);
}

Status check_text(const Path& path, const flatbuffers::String& text, uint32_t max_bytes) {
  if (text.size() > max_bytes) return invalid(path, "has %u bytes: must have at most %u", text.size(), max_bytes);
  const std::string_view view = text_of(text);
  const size_t valid = valid_utf8_prefix(view);
  if (valid != view.size()) return invalid(path, "is not UTF-8 at byte %zu", valid);
  if (view.find('\0') != std::string_view::npos) return invalid(path, "contains a NUL character");
  return {};
}

Status check_dim(const Path& path, const fb::Dim& dim, const TokenRange& range, int64_t low, int64_t high) {
  for (const int64_t tokens : {range.min, range.max}) {
    int64_t value = 0;
    const bool fits = checked_multiply_add(dim.tokens(), tokens, dim.constant(), &value);
    if (fits && value >= low && value <= high) continue;
    if (dim.tokens() == 0) {
      return invalid(path, "= %lld: must be %lld..%lld", static_cast<long long>(dim.constant()),
                     static_cast<long long>(low), static_cast<long long>(high));
    }
    return invalid(path, "= %lld * T + %lld: must be %lld..%lld, also for T = %lld",
                   static_cast<long long>(dim.tokens()), static_cast<long long>(dim.constant()),
                   static_cast<long long>(low), static_cast<long long>(high), static_cast<long long>(tokens));
  }
  return {};
}

int64_t evaluate(const fb::Dim& dim, int64_t tokens) { return dim.tokens() * tokens + dim.constant(); }

const fb::Segment* find_segment(const fb::Program& program, fb::SegmentKind kind) {
  for (const fb::Segment* segment : *program.segments()) {
    if (segment->kind() == kind) return segment;
  }
  return nullptr;
}

std::span<const std::byte> Verified::segment(fb::SegmentKind kind) const {
  const fb::Segment* segment = find_segment(*program_, kind);
  return segment == nullptr ? std::span<const std::byte>() : bytes_of(mapped_, *segment);
}

Result<std::vector<std::byte>> Verified::copy(fb::SegmentKind kind) const {
  MOTE_RETURN_IF_ERROR(mapped_.check_unchanged());
  const std::span<const std::byte> bytes = segment(kind);
  std::vector<std::byte> copied(bytes.begin(), bytes.end());
  MOTE_RETURN_IF_ERROR(mapped_.check_readable());
  return copied;
}

TileScales tile_scales(const fb::Weight& weight) {
  return {weight.scale_columns(), static_cast<WeightOffset>(weight.low()), weight.row_scales(),
          weight.codebook() == nullptr ? nullptr : weight.codebook()->data()};
}

std::span<const std::byte> Verified::weight(uint32_t index) const {
  const fb::Weight* weight = program_->weights()->Get(index);
  if (!has_weights()) return {};
  return segment(fb::SegmentKind::weights)
      .subspan(static_cast<size_t>(weight->offset()), static_cast<size_t>(weight->bytes()));
}

bool Verified::has_weights() const { return program_->asset() == nullptr || mapped_.weights_file() != nullptr; }

Tensor Verified::weight_tensor(uint32_t index) const {
  const fb::Weight& weight = *program_->weights()->Get(index);
  Tensor tensor;
  tensor.dtype = static_cast<DType>(weight.dtype());
  tensor.bits = weight.bits();
  tensor.group_size = weight.group_size();
  tensor.scales = tile_scales(weight);
  tensor.rank = static_cast<int>(weight.shape()->size());
  std::ranges::copy(*weight.shape(), tensor.sizes.begin());
  tensor.set_contiguous_strides();
  // A tensor has one type of data; nothing writes into those that are weights.
  tensor.data = const_cast<std::byte*>(this->weight(index).data());
  return tensor;
}

std::span<const std::byte> Verified::delegate(uint32_t index) const {
  const fb::Delegate* delegate = program_->delegates()->Get(index);
  return segment(fb::SegmentKind::delegates)
      .subspan(static_cast<size_t>(delegate->offset()), static_cast<size_t>(delegate->bytes()));
}

std::string_view target_of(const fb::Method& method) {
  return method.target() == nullptr ? kCpu : text_of(*method.target());
}

std::optional<size_t> head_depth(const fb::Method& method) {
  const auto* found = std::ranges::find(kHeadMethods, text_of(*method.name()));
  if (found == std::end(kHeadMethods)) return std::nullopt;
  return static_cast<size_t>(found - std::begin(kHeadMethods));
}

std::vector<std::string_view> targets_of(const fb::Program& program) {
  std::vector<std::string_view> names;
  for (const fb::Method* method : *program.methods()) {
    const std::string_view name = target_of(*method);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

Result<Verified> verify(Mapped mapped, const WeightsFrom& weights) try {
  const std::span<const std::byte> bytes = mapped.program_bytes();
  const auto* buffer = reinterpret_cast<const uint8_t*>(bytes.data());
  const Path file{nullptr, mapped.name().c_str(), -1};
  flatbuffers::Verifier verifier(buffer, bytes.size(), kMaxDepth, kMaxTables, true);
  if (bytes.size() < 16 || !fb::VerifyProgramBuffer(verifier)) {
    return invalid(file, "program: is not a well-formed flatbuffer \"%s\"", fb::ProgramIdentifier());
  }
  const fb::Program* program = fb::GetProgram(buffer);
  MOTE_RETURN_IF_ERROR(add_weights_file(mapped, *program, weights));
  MOTE_RETURN_IF_ERROR(verify_tables(file, mapped, *program));
  MOTE_RETURN_IF_ERROR(verify_asset(file, *program));
  if (program->methods()->size() > kMaxMethods)
    return invalid(file, "has %u methods: must have at most %u", program->methods()->size(), kMaxMethods);
  for (uint32_t i = 0; i < program->methods()->size(); ++i) {
    MOTE_RETURN_IF_ERROR(verify_method(Path{&file, "methods", i}, *program, *program->methods()->Get(i)));
  }
  MOTE_RETURN_IF_ERROR(verify_method_set(file, *program));
  return Verified(std::move(mapped), program, {.path = weights.path, .mode = weights.mode});
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "the system has no memory to verify the program"); }

Status check_segments(const Verified& verified) {
  const Path file{nullptr, verified.file().name().c_str(), -1};
  const auto& segments = *verified.program().segments();
  for (uint32_t i = 0; i < segments.size(); ++i) {
    if (segments[i]->kind() == fb::SegmentKind::weights && !verified.has_weights()) continue;
    const uint32_t checksum = crc32(bytes_of(verified.file(), *segments[i]));
    MOTE_RETURN_IF_ERROR(verified.file().check_readable());
    if (checksum == segments[i]->crc32()) continue;
    const bool is_here = segments[i]->file() == nullptr;
    return invalid(Path{&file, "segments", i}, "(%s): crc32 = %08x: its bytes have checksum %08x, so %s is damaged",
                   fb::EnumNameSegmentKind(segments[i]->kind()), segments[i]->crc32(), checksum,
                   is_here ? "the file" : verified.file().weights_file()->name().c_str());
  }
  return {};
}

}  // namespace mote
