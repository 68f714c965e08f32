// Tiles as docs/file-format.md describes them, written without the code under test.
#include <algorithm>

#include "kernels/formats.h"
#include "kernels/support/float_bits.h"
#include "tests/kernels/harness.h"

namespace mote::test {

namespace {

// Written from docs/file-format.md: planes of 4, 2 and 1 bits, the widest with the lowest bits of the code.
void place_code(std::byte* tile, int bits, int64_t group_size, int64_t row, int64_t column, unsigned code) {
  for (const int plane : bits == 8 ? std::vector<int>{8} : std::vector<int>{4, 2, 1}) {
    if ((bits & plane) == 0) continue;
    const int64_t columns = 32 / plane, in_block = column % columns;
    const unsigned digits = code & ((1u << plane) - 1);
    tile[64 * (column / columns) + 4 * row + in_block % 4] |=
        static_cast<std::byte>(digits << (plane * (in_block / 4)));
    code >>= plane;
    tile += 16 * group_size * plane / 8;
  }
}

}  // namespace

Tiles random_tiles(const Shape& shape, int bits, int group_size, uint32_t seed, Multipliers multipliers) {
  Tiles tiles;
  std::mt19937 generator(seed);
  const int64_t columns = shape.back(), rows = shape[shape.size() - 2], groups = columns / group_size;
  const int64_t experts = shape.size() == 3 ? shape[0] : 1, padded = (rows + 15) / 16 * 16;
  std::uniform_int_distribution<int> digits(0, (1 << bits) - 1);
  std::uniform_real_distribution<float> scale(0.00001f, 0.0001f);
  const int most = bits <= 4 ? 127 >> (bits - 1) : 127;
  std::uniform_int_distribution<int> multiplier(multipliers == Multipliers::kAny ? -most : 0, most);
  tiles.owned = make(DType::kInt8, shape);
  tiles.owned.tensor.bits = static_cast<uint8_t>(bits);
  tiles.owned.tensor.group_size = group_size;
  const int64_t tile_bytes = 2 * bits * group_size + 16, block_bytes = groups * tile_bytes + 64;
  tiles.owned.bytes.assign(static_cast<size_t>(experts * padded / 16 * block_bytes), std::byte{0});
  tiles.owned.tensor.data = tiles.owned.bytes.data();
  for (int64_t row = 0; row < experts * rows; ++row) {
    const int64_t expert = row / rows, n = row % rows;
    std::byte* block = tiles.owned.bytes.data() + (expert * padded / 16 + n / 16) * block_bytes;
    const float row_scale = scale(generator);
    std::memcpy(block + groups * tile_bytes + 4 * (n % 16), &row_scale, 4);
    double group_scale = 0;
    for (int64_t k = 0; k < columns; ++k) {
      std::byte* tile = block + k / group_size * tile_bytes;
      const int stored = digits(generator), value = (bits == 1 ? 2 * stored : stored) - code_offset(bits);
      const int64_t c = k % group_size;
      place_code(tile, bits, group_size, n % 16, c, static_cast<unsigned>(stored));
      if (c == 0) {
        const int number = multipliers == Multipliers::kOne ? 1 : multiplier(generator);
        tile[2 * bits * group_size + n % 16] = static_cast<std::byte>(number);
        group_scale = static_cast<double>(row_scale) * number;
      }
      tiles.values.push_back(group_scale * value);
    }
  }
  return tiles;
}

namespace {

// Written from docs/file-format.md, "Float16 scales", as place_code is.
struct SpanSizes {
  int64_t tile_columns, columns, codes, multipliers, lows, tile, scales, before_tiles, all;

  SpanSizes(int bits, int group_size, const TileScales& scale) {
    const bool multiplied = scale.columns > group_size, minimum = scale.offset == WeightOffset::kMinimum;
    tile_columns = std::max(group_size, 32);
    columns = std::max<int64_t>(tile_columns, scale.columns);
    const int64_t numbers = 16 * (tile_columns / group_size);
    codes = 2 * bits * tile_columns;
    multipliers = multiplied ? numbers : 0;
    lows = scale.offset == WeightOffset::kZero || (minimum && multiplied) ? numbers : 0;
    tile = codes + multipliers + lows;
    scales = 32 * (columns / scale.columns);
    before_tiles = scales * (minimum ? 2 : 1);
    all = before_tiles + columns / tile_columns * tile;
  }
};

class RandomNumbers {
 public:
  explicit RandomNumbers(uint32_t seed) : generator_(seed) {}
  unsigned below(unsigned limit) { return std::uniform_int_distribution<unsigned>(0, limit - 1)(generator_); }
  float real() { return std::uniform_real_distribution<float>(-0.01f, 0.01f)(generator_); }
  // Writes a number and returns it.
  double half(std::byte* to) {
    const uint16_t stored = float32_to_float16(real());
    std::memcpy(to, &stored, sizeof(stored));
    return static_cast<double>(float16_to_float32(stored));
  }
  double byte(std::byte* to) {
    const int value = static_cast<int>(below(96)) - 32;
    *to = static_cast<std::byte>(value);
    return static_cast<double>(value);
  }

 private:
  std::mt19937 generator_;
};

}  // namespace

Tiles random_tiles(const Shape& shape, int bits, int group_size, const TileScales& scales, uint32_t seed) {
  Tiles tiles;
  RandomNumbers random(seed);
  const SpanSizes span_sizes(bits, group_size, scales);
  const int64_t rows = shape[0], columns = shape[1], spans = columns / span_sizes.columns;
  const int64_t block_bytes = spans * span_sizes.all + (scales.of_rows ? 64 : 0);
  const bool minimum = scales.offset == WeightOffset::kMinimum;
  tiles.owned = make(DType::kInt8, shape);
  tiles.owned.tensor.bits = static_cast<uint8_t>(bits);
  tiles.owned.tensor.group_size = group_size;
  tiles.owned.tensor.scales = scales;
  tiles.owned.bytes.assign(static_cast<size_t>((rows + 15) / 16 * block_bytes), std::byte{0});
  tiles.owned.tensor.data = tiles.owned.bytes.data();
  for (int64_t row = 0; row < rows; ++row) {
    std::byte* block = tiles.owned.bytes.data() + row / 16 * block_bytes;
    const int64_t r = row % 16;
    const float row_scale = scales.of_rows ? 0.25f + random.real() : 1.0f;
    if (scales.of_rows) std::memcpy(block + spans * span_sizes.all + 4 * r, &row_scale, 4);
    double span_scale = 0, span_minimum = 0, scale = 0, low = 0;
    for (int64_t k = 0; k < columns; ++k) {
      const int64_t in_span = k % span_sizes.columns, in_tile = k % span_sizes.tile_columns;
      std::byte* span = block + k / span_sizes.columns * span_sizes.all;
      std::byte* tile = span + span_sizes.before_tiles + in_span / span_sizes.tile_columns * span_sizes.tile;
      if (k % scales.columns == 0) {
        std::byte* at = span + 32 * (in_span / scales.columns) + 2 * r;
        span_scale = random.half(at);
        if (minimum) span_minimum = random.half(at + span_sizes.scales);
      }
      if (k % group_size == 0) {
        std::byte* numbers = tile + span_sizes.codes + 16 * (in_tile / group_size) + r;
        scale = span_scale * (span_sizes.multipliers > 0 ? random.byte(numbers) : 1);
        const double number = span_sizes.lows > 0 ? random.byte(numbers + span_sizes.multipliers) : 1;
        low = minimum ? span_minimum * number : scales.offset == WeightOffset::kZero ? span_scale * number : 0;
      }
      const unsigned stored = random.below(1u << bits);
      place_code(tile, bits, span_sizes.tile_columns, r, in_tile, stored);
      const int code = static_cast<int>(stored) - (minimum ? 0 : 1 << (bits - 1));
      const int value = scales.codebook != nullptr ? scales.codebook[stored] : code;
      tiles.values.push_back(static_cast<double>(row_scale) * (scale * value + low));
    }
  }
  return tiles;
}

}  // namespace mote::test
