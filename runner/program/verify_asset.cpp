#include "kernels/formats.h"
#include "runner/program/asset_weights.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

constexpr int64_t kMaxGrowth = 64;  // of the weights that are made of an asset, over it: rows are filled up to 16
constexpr uint32_t kMaxPieces = 1 << 16;

using Offsets = flatbuffers::Vector<uint64_t>;

Status check_form(const Path& path, const fb::Weight& weight, const fb::AssetWeight& place) {
  if (place.layout() > fb::AssetLayout::MAX)
    return invalid(path, "layout = %d: must be 0..%d", static_cast<int>(place.layout()),
                   static_cast<int>(fb::AssetLayout::MAX));
  if (place.pieces()->size() == 0) return {};
  const bool is_dense = place.layout() == fb::AssetLayout::dense;
  const bool is_narrow = place.layout() == fb::AssetLayout::int4 || place.layout() == fb::AssetLayout::halves;
  const bool has_scales = place.scales() != nullptr && place.scales()->size() > 0;
  if (is_dense != (weight.bits() == 0) || (is_narrow && weight.bits() > 4))
    return invalid(path, "layout = %s: holds no weights of %d bits", fb::EnumNameAssetLayout(place.layout()),
                   weight.bits());
  if (is_dense == has_scales) return invalid(path, "scales: must be there for codes, and for these only");
  if (weight.scale_columns() != 0) return invalid(path, "pieces: must be empty for a weight with float16 scales");
  return {};
}

// offsets: of pieces of equal numbers of rows, but the last
Status check_pieces(const Path& path, const Offsets* offsets, uint64_t rows, uint64_t row_bytes, uint64_t file_bytes) {
  if (offsets == nullptr || offsets->size() == 0) return {};
  if (offsets->size() > kMaxPieces || offsets->size() > rows)
    return invalid(path, "has %u pieces: must have at most %llu", offsets->size(),
                   static_cast<unsigned long long>(std::min<uint64_t>(rows, kMaxPieces)));
  MOTE_RETURN_IF_ERROR(check_aligned(path, *offsets));
  const uint64_t each = rows_of_piece(rows, offsets->size());
  for (uint32_t i = 0; i < offsets->size(); ++i) {
    if (each * i >= rows) return invalid(path, "has %u pieces: its rows fill fewer", offsets->size());
    const Size bytes = Size(std::min(each, rows - each * i)) * row_bytes;
    if (!(Size(offsets->Get(i)) + bytes).at_most(file_bytes))
      return invalid(Path{path.parent, path.name, i},
                     "= %llu: its %lld bytes must end in the asset's file (%llu bytes)",
                     static_cast<unsigned long long>(offsets->Get(i)), static_cast<long long>(bytes.value()),
                     static_cast<unsigned long long>(file_bytes));
  }
  return {};
}

Status check_place(const Path& path, const fb::Program& program, uint32_t index, uint64_t rest_bytes) {
  const fb::AssetWeight& place = *program.asset()->weights()->Get(index);
  const fb::Weight& weight = *program.weights()->Get(index);
  const uint64_t file_bytes = program.asset()->bytes();
  MOTE_RETURN_IF_ERROR(check_form(path, weight, place));
  const AssetRows size = asset_rows(weight, place);
  MOTE_RETURN_IF_ERROR(
      check_pieces(Path{&path, "pieces", -1}, place.pieces(), size.rows, size.piece_bytes, file_bytes));
  MOTE_RETURN_IF_ERROR(
      check_pieces(Path{&path, "multipliers", -1}, place.multipliers(), size.rows, size.groups, file_bytes));
  MOTE_RETURN_IF_ERROR(
      check_pieces(Path{&path, "scales", -1}, place.scales(), size.rows, size.scale_bytes, file_bytes));
  const Size rest = place.rest();
  if (!rest.is_multiple_of(64) || !(rest + size.rest_bytes).at_most(rest_bytes))
    return invalid(path, "rest = %llu: must be a multiple of 64 whose %llu bytes end in the segment (%llu bytes)",
                   static_cast<unsigned long long>(place.rest()), static_cast<unsigned long long>(size.rest_bytes),
                   static_cast<unsigned long long>(rest_bytes));
  return {};
}

// They are written one after the other.
Status check_order(const Path& file, const fb::Program& program) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < program.weights()->size(); ++i) {
    const fb::Weight& weight = *program.weights()->Get(i);
    if (weight.offset() < end)
      return invalid(Path{&file, "weights", i}, "offset = %llu: must be at least %llu, the end of the one before",
                     static_cast<unsigned long long>(weight.offset()), static_cast<unsigned long long>(end));
    end = weight.offset() + weight.bytes();
  }
  return {};
}

}  // namespace

AssetRows asset_rows(const fb::Weight& weight, const fb::AssetWeight& place) {
  AssetRows size;
  if (place.pieces()->size() == 0) {
    size.rest_bytes = weight.bytes();
    return size;
  }
  const auto& shape = *weight.shape();
  if (weight.bits() == 0) {
    size.rows = shape.size() == 0 ? 1 : static_cast<uint64_t>(shape[0]);
    size.columns = size.piece_bytes = size.rows == 0 ? 0 : weight.bytes() / size.rows;
    return size;
  }
  size.columns = static_cast<uint64_t>(shape[shape.size() - 1]);
  size.rows = static_cast<uint64_t>(shape[shape.size() - 2]) * static_cast<uint64_t>(shape.size() == 3 ? shape[0] : 1);
  size.groups = size.columns / static_cast<uint64_t>(weight.group_size());
  size.piece_bytes = place.layout() == fb::AssetLayout::int8 ? size.columns : size.columns / 2;
  const bool has_multipliers = place.multipliers() != nullptr && place.multipliers()->size() > 0;
  size.scale_bytes = sizeof(float) * (has_multipliers ? 1 : size.groups);
  size.rest_bytes = has_multipliers ? 0 : sizeof(float) * size.rows;
  return size;
}

Status verify_asset(const Path& file, const fb::Program& program) {
  const fb::Segment& segment = *find_segment(program, fb::SegmentKind::weights);
  const Path path{&file, "asset", -1};
  const fb::Segment* rest = find_segment(program, fb::SegmentKind::asset_rest);
  if (program.asset() == nullptr) {
    if (rest != nullptr) return invalid(path, "must be there with a segment asset_rest");
    return {};
  }
  if (segment.file() == nullptr) return invalid(path, "must be absent: the weights are in the file");
  const auto& places = *program.asset()->weights();
  if (places.size() != program.weights()->size())
    return invalid(path, "has %u weights: must have %u, one for each of the program", places.size(),
                   program.weights()->size());
  const uint64_t rest_bytes = rest == nullptr ? 0 : rest->bytes();
  if (!Size(segment.bytes()).at_most((Size(program.asset()->bytes()) + rest_bytes) * kMaxGrowth))
    return invalid(path, "bytes = %llu: cannot hold weights of %llu bytes",
                   static_cast<unsigned long long>(program.asset()->bytes()),
                   static_cast<unsigned long long>(segment.bytes()));
  for (uint32_t i = 0; i < places.size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_place(Path{&path, "weights", i}, program, i, rest_bytes));
  }
  return check_order(file, program);
}

}  // namespace mote
