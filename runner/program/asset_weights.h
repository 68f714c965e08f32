// Weights of which an asset beside the file has the only copy: its rows of codes become the tiles that kernels read.
// docs/file-format.md describes both.
#pragma once

#include "runner/program/program.h"

namespace mote {

// Rows of a weight in an asset, and what a row of each of its parts takes there.
struct AssetRows {
  uint64_t rows = 0;     // of all matrices
  uint64_t columns = 0;  // of a row; of dense weights bytes
  uint64_t groups = 0;
  uint64_t piece_bytes = 0;  // of a row in `pieces`
  uint64_t scale_bytes = 0;  // of a row in `scales`
  uint64_t rest_bytes = 0;   // of all rows at `rest`
};

// weight: one whose shape was verified
AssetRows asset_rows(const fb::Weight& weight, const fb::AssetWeight& place);

// Rows of each piece but the last.
inline uint64_t rows_of_piece(uint64_t rows, uint64_t num_pieces) { return (rows + num_pieces - 1) / num_pieces; }

// Makes the weights of a verified program whose asset holds them, unless that is done. They are kept in a file beside
// the program's, or where options.cache_dir says, and found there by the next process; where no file can be kept they
// are in memory of this one. Thread safety: any thread.
// Errors: those of SourceBytes::take; kInvalidProgram where the asset is not the one that the program was exported
// with; kOutOfMemory; what options.progress gives. Cost: reads the asset once; memory for 16 rows
Status load_asset_weights(const Verified& verified, const BindOptions& options);

}  // namespace mote
