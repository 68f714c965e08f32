// Rows of tiles: docs/file-format.md. BITS and GROUP are constants of the pipeline.
layout(constant_id = 0) const uint BITS = 4;
layout(constant_id = 1) const uint GROUP = 32;

const uint kCodeWords = 16 * GROUP * BITS / 32;
const uint kTileWords = kCodeWords + 4;

// Words of 16 rows with their scales.
uint block_words(uint columns) { return columns / GROUP * kTileWords + 16; }

// What one plane of a code adds: its bits, where it begins in words of a tile, and how far it is shifted.
const uint kPlane0 = BITS == 8 ? 8 : BITS >= 4 ? 4 : BITS >= 2 ? 2 : 1;
const uint kPlane1 = BITS == 5 || BITS == 3 ? 1 : BITS == 6 || BITS == 7 ? 2 : 0;
const uint kPlane2 = BITS == 7 ? 1 : 0;

int code_offset() { return BITS == 1 ? 1 : 1 << (BITS - 1); }
