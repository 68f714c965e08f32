"""Quantised rows to the tiles of docs/file-format.md, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from llm_export.program.formats import FORMATS, HALF_BYTES, ROW_SCALE_BYTES, TILE_ROWS, TileLayout, padded_rows
from llm_export.program.specs import StoredRows
from llm_export.quantize.affine import QuantizedWeight


def pack(weight: QuantizedWeight, bits: int) -> Tensor:
    """Packs whole rows into tiles; rows beyond the last multiple of 16 have multipliers and scales of zero.

    Returns: uint8 [ceil(N / 16), block_bytes], contiguous
    """
    num_rows, num_columns = weight.codes.shape
    num_groups = weight.multipliers.shape[1]
    group_size = num_columns // num_groups
    codes, multipliers, scales = weight.codes, weight.multipliers, weight.scales
    padding = padded_rows(num_rows) - num_rows
    if padding:
        # No code of 1 bit is zero.
        codes = torch.nn.functional.pad(codes, (0, 0, 0, padding), value=-1 if bits == 1 else 0)
        multipliers = torch.nn.functional.pad(multipliers, (0, 0, 0, padding))
        scales = torch.nn.functional.pad(scales, (0, padding))
    row_blocks = codes.shape[0] // TILE_ROWS
    blocks = torch.empty(row_blocks, FORMATS[bits].block_bytes(num_columns, group_size), dtype=torch.uint8)
    tiles = _tiles(blocks, num_groups)
    _write_codes(tiles[:, :, None], _digits(codes, bits), bits)
    tiles.view(torch.int8)[..., -TILE_ROWS:].copy_(multipliers.view(row_blocks, TILE_ROWS, num_groups).permute(0, 2, 1))
    blocks[:, -TILE_ROWS * ROW_SCALE_BYTES :].view(torch.float32).copy_(scales.view(row_blocks, TILE_ROWS))
    return blocks


def pack_stored(rows: StoredRows, layout: TileLayout) -> Tensor:
    """Packs whole rows with float16 scales; rows beyond the last multiple of 16 are of zeros.

    Returns: uint8 [ceil(N / 16), layout.block_bytes(K)], contiguous
    """
    num_rows, num_columns = rows.digits.shape
    padding = padded_rows(num_rows) - num_rows
    if padding:
        rows = StoredRows(*(part if part is None else _with_zero_rows(part, padding) for part in rows))
    row_blocks, num_spans = rows.digits.shape[0] // TILE_ROWS, num_columns // layout.span_columns
    blocks = torch.empty(row_blocks, layout.block_bytes(num_columns), dtype=torch.uint8)
    spans = blocks[:, : num_spans * layout.span_bytes].unflatten(-1, (num_spans, -1))
    tiles = spans[..., layout.tiles_at :].unflatten(-1, (layout.tiles_per_span, -1))
    _write_codes(tiles, rows.digits, layout.bits)
    start = layout.code_bytes
    for part in (rows.multipliers, rows.lows):
        if part is not None:
            stop = start + TILE_ROWS * layout.groups_per_tile
            places = tiles.view(torch.int8)[..., start:stop].unflatten(-1, (-1, TILE_ROWS))
            start = stop
            places.copy_(_by_row(part, places.shape))
    start = 0
    for part in (rows.scales, rows.minimums):
        if part is not None:
            stop = start + layout.scale_bytes
            halves = spans.view(torch.float16)[..., start // HALF_BYTES : stop // HALF_BYTES]
            halves = halves.unflatten(-1, (-1, TILE_ROWS))
            start = stop
            halves.copy_(_by_row(part, halves.shape))
    if rows.row_scales is not None:
        blocks[:, -TILE_ROWS * ROW_SCALE_BYTES :].view(torch.float32).copy_(rows.row_scales.view(row_blocks, TILE_ROWS))
    return blocks


def _with_zero_rows(part: Tensor, padding: int) -> Tensor:
    return torch.cat([part, part.new_zeros((padding, *part.shape[1:]))])


def _by_row(part: Tensor, shape: Sequence[int]) -> Tensor:
    """[N, ..] with TILE_ROWS rows each in shape[0] blocks, as [shape[0], .., TILE_ROWS]."""
    return part.view(shape[0], TILE_ROWS, *shape[1:-1]).movedim(1, -1)


def _write_codes(tiles: Tensor, digits: Tensor, bits: int) -> None:
    """Writes the planes of tiles [row_blocks, spans, tiles of a span, at least their codes' bytes]. digits: [N, K]"""
    row_blocks, num_spans, per_span, _ = tiles.shape
    for width, shift, start, stop in _planes(bits, digits.shape[1] // (num_spans * per_span)):
        # A unit is the 4 bytes of one row in one 64-byte block.
        units = _plane(digits, bits, width, shift).view(torch.int32)
        places = tiles.view(torch.int32)[..., start // 4 : stop // 4].unflatten(-1, (-1, TILE_ROWS))
        places.copy_(units.view(row_blocks, TILE_ROWS, num_spans, per_span, -1).movedim(1, -1))


def unpack(blocks: Tensor, bits: int, group_size: int, num_rows: int) -> QuantizedWeight:
    """Inverse of `pack`. blocks: uint8 [ceil(num_rows / 16), block_bytes]"""
    row_blocks = blocks.shape[0]
    num_groups = (blocks.shape[1] - TILE_ROWS * ROW_SCALE_BYTES) // FORMATS[bits].tile_bytes(group_size)
    tiles = _tiles(blocks, num_groups)
    rows = row_blocks * TILE_ROWS
    digits = torch.zeros(rows, num_groups * group_size, dtype=torch.uint8)
    for width, shift, start, stop in _planes(bits, group_size):
        units = tiles[..., start:stop].reshape(row_blocks, num_groups, -1, TILE_ROWS, 4)
        units = units.permute(0, 3, 1, 2, 4)  # [row_blocks, rows, groups, blocks, 4]
        columns = torch.stack([units >> low & (1 << width) - 1 for low in range(0, 8, width)], dim=-2)
        digits |= columns.reshape(rows, -1) << shift
    codes = 2 * digits.to(torch.int8) - 1 if bits == 1 else (digits - 2 ** (bits - 1)).view(torch.int8)
    multipliers = tiles.view(torch.int8)[..., -TILE_ROWS:].permute(0, 2, 1).reshape(rows, num_groups)
    scales = blocks[:, -TILE_ROWS * ROW_SCALE_BYTES :].contiguous().view(torch.float32).flatten()
    return QuantizedWeight(codes[:num_rows], multipliers[:num_rows].contiguous(), scales[:num_rows])


def _tiles(blocks: Tensor, num_groups: int) -> Tensor:
    """Returns the tiles of each block of rows, a view: uint8 [row_blocks, num_groups, tile_bytes]."""
    return blocks[:, : -TILE_ROWS * ROW_SCALE_BYTES].unflatten(-1, (num_groups, -1))


def _digits(codes: Tensor, bits: int) -> Tensor:
    """Returns uint8 [N, K]: code + 2^(bits - 1), or (code + 1) / 2 for 1 bit."""
    unsigned = codes.contiguous().view(torch.uint8)  # sums wrap as those of int8 do
    return unsigned + 1 >> 1 if bits == 1 else unsigned + 2 ** (bits - 1)


def _planes(bits: int, group_size: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields the width of each plane, the lowest bit of the digits that it holds, and its bytes in a tile."""
    shift = start = 0
    for width in FORMATS[bits].planes:
        stop = start + TILE_ROWS * group_size * width // 8
        yield width, shift, start, stop
        shift, start = shift + width, stop


def _plane(digits: Tensor, bits: int, width: int, shift: int) -> Tensor:
    """Returns uint8 [N, K * width / 8]: bits shift.. of the digits, columns 4 apart side by side in a byte."""
    if shift:
        digits = digits >> shift
    if shift + width < bits:
        digits = digits & (1 << width) - 1
    columns = digits.view(digits.shape[0], -1, 8 // width, 4)
    plane = columns[:, :, 0]
    for index in range(1, 8 // width):
        plane = plane | columns[:, :, index] << width * index
    return plane.reshape(digits.shape[0], -1)
