#include "kernels/vendor/kleidiai/packing.h"

#include <cstring>

#include "kernels/support/float_bits.h"

namespace mote::kleidiai {

namespace {

// 16 rows of a range, row-major, as KleidiAI's packing functions read them.
struct PlainRange {
  uint8_t codes[kTileRows * kRangeColumns / 2];     // codes + 8, two a byte, the even column low
  uint16_t scales[kTileRows * kRangeColumns / 32];  // multipliers as bfloat16, which holds every byte exactly
};

int64_t sum_of_codes(const uint8_t* pairs, int64_t columns) {
  int64_t sum = -code_offset(kBits) * columns;
  for (int64_t i = 0; i < columns / 2; ++i) sum += (pairs[i] & 15) + (pairs[i] >> 4);
  return sum;
}

// Reads the codes and the multiplier of one row of a tile. Returns the sum of multiplier * code.
int64_t read_group(const std::byte* tile, int64_t group_size, int64_t row, uint8_t* codes, uint16_t* scale) {
  for (int64_t i = 0; i < group_size / 8; ++i) {
    const uint32_t eight = eight_codes(tile, row, i);
    std::memcpy(codes + 4 * i, &eight, sizeof(eight));
  }
  const int multiplier = multiplier_at(tile, kBits, group_size, row);
  *scale = float32_to_bfloat16(static_cast<float>(multiplier));
  return multiplier * sum_of_codes(codes, group_size);
}

void read_range(const std::byte* tiles, int64_t group_size, int64_t columns, PlainRange& range, uint32_t* sums) {
  const int64_t groups = columns / group_size;
  for (int64_t row = 0; row < kTileRows; ++row) {
    for (int64_t g = 0; g < groups; ++g) {
      uint8_t* codes = range.codes + row * columns / 2 + g * group_size / 2;
      sums[row] += static_cast<uint32_t>(read_group(tiles + g * tile_bytes(kBits, group_size), group_size, row, codes,
                                                    range.scales + row * groups + g));
    }
  }
}

size_t ranges_bytes(const MicroKernel& kernel, int64_t group_size, int64_t columns) {
  size_t bytes = 0;
  for_each_range(columns, [&](int64_t count) { bytes += weight_range_bytes(kernel, count, group_size); });
  return bytes;
}

// Writes row `in_run` of `together` interleaved rows: kDepth columns of each row in turn.
template <int kDepth>
void interleave(const int8_t* codes, int64_t columns, int64_t in_run, int64_t together, int8_t* to) {
  for (int64_t i = 0; i < columns; i += kDepth) std::memcpy(to + i * together + in_run * kDepth, codes + i, kDepth);
}

}  // namespace

size_t packed_block_bytes(const MicroKernel& kernel, int64_t group_size, int64_t groups) {
  return (ranges_bytes(kernel, group_size, groups * group_size) + sizeof(RowTrailer) + 63) / 64 * 64;
}

void pack_block(const MicroKernel& kernel, PackRange pack_range, const std::byte* tiles, int64_t group_size,
                int64_t groups, std::byte* to) {
  RowTrailer trailer{};
  std::memcpy(trailer.scales, tiles + groups * tile_bytes(kBits, group_size), sizeof(trailer.scales));
  PlainRange range;
  for_each_range(groups * group_size, [&](int64_t columns) {
    read_range(tiles, group_size, columns, range, trailer.sums);
    pack_range(kernel, columns, group_size, range.codes, range.scales, to);
    tiles += columns / group_size * tile_bytes(kBits, group_size);
    to += weight_range_bytes(kernel, columns, group_size);
  });
  std::memcpy(to, &trailer, sizeof(trailer));
}

int64_t packed_row_bytes(int64_t columns) {
  const int64_t ranges = (columns + kRangeColumns - 1) / kRangeColumns;
  return columns + ranges * static_cast<int64_t>(sizeof(int32_t) + sizeof(float));
}

// The kernel wants a zero point and a scale for each row. It gets 0 and 1, since Sums::finish applies the real ones to
// integers.
void pack_row(const MicroKernel& kernel, const int8_t* codes, int64_t columns, int row, int rows, int8_t* to) {
  const auto together = static_cast<int64_t>(kernel.get_mr());
  const int64_t in_run = row % together;
  for_each_range(columns, [&](int64_t count) {
    int8_t* run = to + kernel.get_lhs_packed_offset(static_cast<size_t>(row - in_run), static_cast<size_t>(count));
    if (kernel.get_kr() / kernel.get_sr() == 8)
      interleave<8>(codes, count, in_run, together, run);
    else
      interleave<4>(codes, count, in_run, together, run);
    const int32_t zero = 0;
    const float scale = 1.0f;
    std::memcpy(run + together * count + in_run * 4, &zero, sizeof(zero));
    std::memcpy(run + together * (count + 4) + in_run * 4, &scale, sizeof(scale));
    codes += count;
    to += code_range_bytes(kernel, rows, count);
  });
}

}  // namespace mote::kleidiai
