// Rows of tiles: docs/file-format.md. What a weight is like are constants of the pipeline, as in TileLayout of kernels/formats.h.
layout(constant_id = 0) const uint BITS = 4;
layout(constant_id = 1) const uint GROUP = 32;
layout(constant_id = 9) const uint SCALE_COLUMNS = 0;   // that share a float16 scale; 0: there are none
layout(constant_id = 10) const uint LOW = 0;            // what is added: 0: nothing, 1: minimums, 2: zero points
layout(constant_id = 11) const bool HAS_ROW_SCALES = true;
layout(constant_id = 12) const bool HAS_CODEBOOK = false;  // in push[24] .. push[27]

const uint kTileColumns = GROUP < 32 ? 32 : GROUP;
const uint kGroupsPerTile = kTileColumns / GROUP;
// Bools that shaderc can order: 1 where a group has a multiplier, and where it has a byte of what is added.
const uint kMultipliers = SCALE_COLUMNS == 0 ? 1 : SCALE_COLUMNS > GROUP ? 1 : 0;
const uint kLows = LOW == 2 ? 1 : LOW == 1 ? kMultipliers : 0;

// In words, of 16 rows.
const uint kCodeWords = 16 * kTileColumns * BITS / 32;
const uint kLowsAt = kCodeWords + 4 * kGroupsPerTile * kMultipliers;
const uint kTileWords = kLowsAt + 4 * kGroupsPerTile * kLows;
const uint kSpanColumns = SCALE_COLUMNS > kTileColumns ? SCALE_COLUMNS : kTileColumns;
const uint kScaleWords = SCALE_COLUMNS == 0 ? 0 : 8 * (kSpanColumns / (SCALE_COLUMNS == 0 ? 1 : SCALE_COLUMNS));
const uint kTilesAt = LOW == 1 ? 2 * kScaleWords : kScaleWords;
const uint kSpanWords = kTilesAt + kSpanColumns / kTileColumns * kTileWords;

uint row_scales_at(uint columns) { return columns / kSpanColumns * kSpanWords; }
uint block_words(uint columns) { return row_scales_at(columns) + (HAS_ROW_SCALES ? 16 : 0); }
// Where the tile begins that has a column.
uint tile_at(uint column) {
  return column / kSpanColumns * kSpanWords + kTilesAt + column % kSpanColumns / kTileColumns * kTileWords;
}

// The bits of the planes of a code, widest first; 0: no further one.
const uint kPlane0 = BITS == 8 ? 8 : BITS >= 4 ? 4 : BITS >= 2 ? 2 : 1;
const uint kPlane1 = BITS == 5 || BITS == 3 ? 1 : BITS == 6 || BITS == 7 ? 2 : 0;
const uint kPlane2 = BITS == 7 ? 1 : 0;

// What is subtracted from a stored number to get the code.
int code_offset() { return LOW == 1 ? 0 : BITS == 1 ? 1 : 1 << (BITS - 1); }
int codebook_at(uint number) { return bitfieldExtract(int(push[24 + number / 4]), int(8 * (number % 4)), 8); }
