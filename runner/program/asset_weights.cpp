#include "runner/program/asset_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/crc32.h"
#include "base/kept_file.h"
#include "base/log.h"
#include "kernels/formats.h"
#include "runner/program/delegates.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

constexpr int kHalfZero = 8;  // of codes in half bytes

using Bytes = std::span<const std::byte>;
using Offsets = flatbuffers::Vector<uint64_t>;
using Sink = std::function<Status(Bytes)>;

// A row of a part whose pieces lie in the asset.
Bytes row_of(Bytes asset, const Offsets& offsets, uint64_t rows, uint64_t row_bytes, uint64_t row) {
  const uint64_t each = rows_of_piece(rows, offsets.size());
  const uint64_t begin = offsets[static_cast<uint32_t>(row / each)] + row % each * row_bytes;
  return asset.subspan(static_cast<size_t>(begin), static_cast<size_t>(row_bytes));
}

// The digits of a row, as they are stored: code + 2^(bits - 1), or (code + 1) / 2 for 1 bit.
void read_digits(Bytes row, fb::AssetLayout layout, int bits, std::span<uint8_t> digits) {
  const auto digit = [bits](int code) {
    return static_cast<uint8_t>(bits == 1 ? (code + 1) / 2 : code + (1 << (bits - 1)));
  };
  const auto nibble = [&](size_t i, int shift) { return std::to_integer<int>(row[i] >> shift & std::byte{15}); };
  for (size_t i = 0; i < row.size(); ++i) {
    switch (layout) {
      case fb::AssetLayout::int8: digits[i] = digit(std::to_integer<int8_t>(row[i])); break;
      case fb::AssetLayout::int4:
        digits[2 * i] = digit((nibble(i, 0) ^ kHalfZero) - kHalfZero);
        digits[2 * i + 1] = digit((nibble(i, 4) ^ kHalfZero) - kHalfZero);
        break;
      default: digits[i] = digit(nibble(i, 0) - kHalfZero); digits[i + row.size()] = digit(nibble(i, 4) - kHalfZero);
    }
  }
}

// The planes of a tile's codes. digits: of its columns in each of 16 rows, which are `stride` apart
void write_planes(const uint8_t* digits, size_t stride, int bits, int64_t columns, std::byte* tile) {
  int shift = 0;
  for (const int width : weight_format(bits).plane_bits) {
    if (width == 0) break;
    const int64_t per_block = 32 / width;
    for (int64_t at = 0; at < plane_bytes(width, columns); ++at) {
      const int64_t first = at / 64 * per_block + at % 4, row = at % 64 / 4;
      unsigned byte = 0;
      for (int h = 0; h < 8 / width; ++h) {
        const unsigned digit = digits[static_cast<size_t>(row) * stride + static_cast<size_t>(first + 4 * h)];
        byte |= (digit >> shift & ((1u << width) - 1)) << (width * h);
      }
      *tile++ = static_cast<std::byte>(byte);
    }
    shift += width;
  }
}

std::byte multiplier_of(float product, float scale) {
  const float ratio = std::nearbyint(product / scale);
  return static_cast<std::byte>(ratio >= -128.0f && ratio <= 127.0f ? static_cast<int8_t>(ratio) : int8_t{0});
}

// Makes the 16-row blocks of one weight, one after the other.
class Repacker {
 public:
  Repacker(const fb::Weight& weight, const fb::AssetWeight& place, Bytes asset, Bytes rest)
      : place_(place),
        asset_(asset),
        rest_(rest),
        size_(asset_rows(weight, place)),
        bits_(weight.bits()),
        group_(weight.group_size()),
        matrix_rows_(static_cast<uint64_t>(weight.shape()->Get(weight.shape()->size() - 2))),
        digits_(static_cast<size_t>(kTileRows) * size_.columns),
        block_(static_cast<size_t>(block_bytes(bits_, group_, static_cast<int64_t>(size_.groups)))) {}

  Status write(const Sink& sink) {
    for (uint64_t matrix = 0; matrix < size_.rows; matrix += matrix_rows_) {
      for (uint64_t row = 0; row < matrix_rows_; row += kTileRows) {
        make(matrix + row, std::min<uint64_t>(kTileRows, matrix_rows_ - row));
        MOTE_RETURN_IF_ERROR(sink(block_));
      }
    }
    return {};
  }

 private:
  // Rows beyond `count` have codes, multipliers and scales of zero; no code of 1 bit is.
  void make(uint64_t first, uint64_t count) {
    std::ranges::fill(block_, std::byte{0});
    std::ranges::fill(digits_, static_cast<uint8_t>(bits_ == 1 ? 0 : 1 << (bits_ - 1)));
    for (uint64_t r = 0; r < count; ++r) {
      const std::span digits = std::span(digits_).subspan(static_cast<size_t>(r * size_.columns), size_.columns);
      read_digits(row_of(asset_, *place_.pieces(), size_.rows, size_.piece_bytes, first + r), place_.layout(), bits_,
                  digits);
      write_scales(first + r, r);
    }
    const auto tile = static_cast<size_t>(tile_bytes(bits_, group_));
    for (size_t g = 0; g < size_.groups; ++g) {
      write_planes(digits_.data() + g * static_cast<size_t>(group_), size_.columns, bits_, group_,
                   block_.data() + g * tile);
    }
  }

  void write_scales(uint64_t row, uint64_t in_block) {
    const auto tile = static_cast<size_t>(tile_bytes(bits_, group_));
    std::byte* multipliers = block_.data() + code_bytes(bits_, group_) + in_block;
    const Bytes scales = row_of(asset_, *place_.scales(), size_.rows, size_.scale_bytes, row);
    float scale = 0.0f;
    const Bytes own = size_.rest_bytes == 0 ? scales : rest_.subspan(static_cast<size_t>(row * sizeof scale));
    std::memcpy(&scale, own.data(), sizeof scale);
    for (size_t g = 0; g < size_.groups; ++g) {
      if (size_.rest_bytes == 0) {
        multipliers[g * tile] = row_of(asset_, *place_.multipliers(), size_.rows, size_.groups, row)[g];
      } else {
        float product = 0.0f;
        std::memcpy(&product, scales.data() + g * sizeof product, sizeof product);
        multipliers[g * tile] = multiplier_of(product, scale);
      }
    }
    std::memcpy(block_.data() + size_.groups * tile + in_block * sizeof scale, &scale, sizeof scale);
  }

  const fb::AssetWeight& place_;
  Bytes asset_, rest_;
  AssetRows size_;
  int bits_;
  int64_t group_;
  uint64_t matrix_rows_;
  std::vector<uint8_t> digits_;
  std::vector<std::byte> block_;
};

Status write_weight(const fb::Weight& weight, const fb::AssetWeight& place, Bytes asset, Bytes rest, const Sink& sink) {
  const AssetRows size = asset_rows(weight, place);
  rest = rest.subspan(static_cast<size_t>(place.rest()), static_cast<size_t>(size.rest_bytes));
  if (weight.bytes() == 0) return {};
  if (place.pieces()->size() == 0) return sink(rest);
  if (weight.bits() != 0) return Repacker(weight, place, asset, rest).write(sink);
  const uint64_t each = rows_of_piece(size.rows, place.pieces()->size());
  for (uint32_t i = 0; i < place.pieces()->size(); ++i) {
    const uint64_t bytes = std::min(each, size.rows - each * i) * size.piece_bytes;
    MOTE_RETURN_IF_ERROR(sink(asset.subspan(static_cast<size_t>(place.pieces()->Get(i)), static_cast<size_t>(bytes))));
  }
  return {};
}

// One program's weights on their way from an asset to where they are kept.
class Maker {
 public:
  Maker(const Verified& verified, const BindOptions& options)
      : verified_(verified),
        program_(verified.program()),
        segment_(*find_segment(program_, fb::SegmentKind::weights)),
        options_(options) {}

  Result<SourceBytes> make() {
    const Mapped& file = verified_.file();
    std::string path = cache_prefix(file.name(), file.has_path(), options_.cache_dir, crc32(file.program_bytes()));
    if (path.empty()) return in_memory();
    path += ".cpu-cache";
    if (Result<SourceBytes> kept = open(path); kept.ok()) return kept;
    MOTE_RETURN_IF_ERROR(open_asset());
    const Status status = write_file(path);
    if (status.code() != Code::kFileUnwritable) {
      MOTE_RETURN_IF_ERROR(status);
      if (Result<SourceBytes> kept = open(path); kept.ok()) return kept;
    }
    MOTE_LOG_LINE(kInfo, "%s: weights of the CPU are kept in memory: %s", file.name().c_str(),
                  status.message().c_str());
    return in_memory();
  }

 private:
  Result<SourceBytes> open(const std::string& path) const {
    MOTE_ASSIGN(const OpenedFile opened, open_regular_file(path, Links::kRefuse));
    MOTE_RETURN_IF_ERROR(require_trusted_owner(path, opened.info, verified_.file().owner()));
    MOTE_ASSIGN(SourceBytes kept, SourceBytes::take(FilePart{path, opened.descriptor.get()}, mapped_mode(), {}));
    MOTE_RETURN_IF_ERROR(check_weights_header(kept, verified_.file(), segment_));
    MOTE_RETURN_IF_ERROR(kept.check_readable());
    return kept;
  }

  Status open_asset() {
    if (!place_.empty()) return {};
    MOTE_ASSIGN(place_, place_of_weights(verified_.file(), segment_, verified_.weights_from().path));
    Result<SourceBytes> taken = SourceBytes::take(place_, mapped_mode(), {});
    if (!taken.ok())
      return Status(taken.status().code(), format("%s (the asset that holds the weights of %s)",
                                                  taken.status().message().c_str(), verified_.file().name().c_str()));
    asset_ = std::move(*taken);
    if (asset_->bytes().size() != program_.asset()->bytes())
      return invalid(Path{nullptr, place_.c_str(), -1},
                     "has %zu bytes: %s was exported with an asset of %llu; put that one there", asset_->bytes().size(),
                     verified_.file().name().c_str(), static_cast<unsigned long long>(program_.asset()->bytes()));
    return {};
  }

  LoadMode mapped_mode() const { return options_.guards_pages ? LoadMode::kMap : LoadMode::kMapUnguarded; }

  // Gives the weights segment to `sink`, zeros between weights included.
  Status write_segment(const Sink& sink) {
    uint32_t checksum = 0;
    uint64_t position = 0;
    const Sink counted = [&](Bytes bytes) {
      checksum = crc32(bytes, checksum);
      position += bytes.size();
      MOTE_RETURN_IF_ERROR(
          report(options_.progress, static_cast<double>(position) / static_cast<double>(segment_.bytes())));
      return sink(bytes);
    };
    const std::vector<std::byte> zeros(size_t{1} << 16);
    const auto fill_up_to = [&](uint64_t end) {
      while (position < end)
        MOTE_RETURN_IF_ERROR(
            counted(Bytes(zeros).first(static_cast<size_t>(std::min<uint64_t>(end - position, zeros.size())))));
      return Status();
    };
    const Bytes rest = verified_.segment(fb::SegmentKind::asset_rest);
    for (uint32_t i = 0; i < program_.weights()->size(); ++i) {
      const fb::Weight& weight = *program_.weights()->Get(i);
      MOTE_RETURN_IF_ERROR(fill_up_to(weight.offset()));
      MOTE_RETURN_IF_ERROR(write_weight(weight, *program_.asset()->weights()->Get(i), asset_->bytes(), rest, counted));
    }
    MOTE_RETURN_IF_ERROR(fill_up_to(segment_.bytes()));
    MOTE_RETURN_IF_ERROR(asset_->check_readable());
    if (checksum == segment_.crc32()) return {};
    return invalid(Path{nullptr, place_.c_str(), -1},
                   "is not the asset that %s was exported with: its weights have checksum %08x, not %08x; "
                   "put the right one there, or export again",
                   verified_.file().name().c_str(), checksum, segment_.crc32());
  }

  Status write_file(const std::string& path) {
    MOTE_ASSIGN(AtomicFile file, AtomicFile::create(path, AtomicFile::Access::kOwner,
                                                    {Links::kRefuse, AtomicFile::Temporary::kUnnamed}));
    MOTE_RETURN_IF_ERROR(file.write(std::vector<std::byte>(kWeightsOffset)));
    MOTE_RETURN_IF_ERROR(write_segment([&](Bytes bytes) { return file.write(bytes); }));
    MOTE_RETURN_IF_ERROR(file.overwrite_start(weights_header(segment_)));
    return file.commit();
  }

  Result<SourceBytes> in_memory() {
    MOTE_RETURN_IF_ERROR(open_asset());
    const uint64_t bytes = kWeightsOffset + segment_.bytes();
    std::shared_ptr<std::byte> memory = allocate_aligned(bytes);
    MOTE_REQUIRE(memory != nullptr, Code::kOutOfMemory, "%s: no memory for its weights (%llu bytes)", place_.c_str(),
                 static_cast<unsigned long long>(bytes));
    std::byte* end = memory.get() + kWeightsOffset;
    MOTE_RETURN_IF_ERROR(write_segment([&](Bytes part) {
      end = std::ranges::copy(part, end).out;
      return Status();
    }));
    const Bytes all(memory.get(), static_cast<size_t>(bytes));
    return SourceBytes::take(MemoryBytes{place_, all, std::move(memory)}, LoadMode::kMap, {});
  }

  const Verified& verified_;
  const fb::Program& program_;
  const fb::Segment& segment_;
  const BindOptions& options_;
  std::string place_;  // of the asset, once it is open
  std::optional<SourceBytes> asset_;
};

}  // namespace

Status load_asset_weights(const Verified& verified, const BindOptions& options) {
  return verified.file().require_weights_file([&] { return Maker(verified, options).make(); });
}

}  // namespace mote
