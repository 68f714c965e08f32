"""Codes and scales to the tiles of docs/file-format.md, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from llm_export.program.formats import FORMATS, SCALE_BYTES, TILE_ROWS, padded_rows


def pack(codes: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Packs whole rows into tiles; rows beyond the last multiple of 16 are padded with zero codes and scales.

    codes: int8 [N, K]; scales: float16 [N, K / group_size]
    Returns: uint8 [ceil(N / 16), K / group_size, tile_bytes], contiguous
    """
    num_rows, num_columns = codes.shape
    num_groups = scales.shape[1]
    group_size = num_columns // num_groups
    padding = padded_rows(num_rows) - num_rows
    if padding:
        codes = torch.nn.functional.pad(codes, (0, 0, 0, padding))
        scales = torch.nn.functional.pad(scales, (0, 0, 0, padding))
    row_blocks = codes.shape[0] // TILE_ROWS
    tile_bytes = FORMATS[bits].tile_bytes(group_size)
    tiles = torch.empty(row_blocks, num_groups, tile_bytes, dtype=torch.uint8)

    # A unit is the 4 bytes of one row in one 64-byte block.
    units = (_nibbles(codes) if bits == 4 else codes.contiguous()).view(torch.int32)
    units = units.view(row_blocks, TILE_ROWS, num_groups, -1).permute(0, 2, 3, 1)  # [row_blocks, groups, blocks, rows]
    code_words = (tile_bytes - TILE_ROWS * SCALE_BYTES) // 4
    tiles.view(torch.int32)[..., :code_words].unflatten(-1, (-1, TILE_ROWS)).copy_(units)
    tiles.view(torch.float16)[..., -TILE_ROWS:].copy_(scales.view(row_blocks, TILE_ROWS, num_groups).permute(0, 2, 1))
    return tiles


def unpack(tiles: Tensor, bits: int, num_rows: int) -> tuple[Tensor, Tensor]:
    """Inverse of `pack`: codes int8 [num_rows, K] and scales float16 [num_rows, K / group_size]."""
    row_blocks, num_groups, tile_bytes = tiles.shape
    code_bytes = tile_bytes - TILE_ROWS * SCALE_BYTES
    units = tiles[..., :code_bytes].reshape(row_blocks, num_groups, -1, TILE_ROWS, 4)
    units = units.permute(0, 3, 1, 2, 4).contiguous()  # [row_blocks, rows, groups, blocks, 4]
    if bits == 4:
        pairs = torch.stack((units & 0x0F, units >> 4), dim=-2)  # [.., blocks, low or high, 4]
        codes = pairs.to(torch.int8) - 8
    else:
        codes = units.view(torch.int8)
    scales = tiles.view(torch.float16)[..., -TILE_ROWS:].permute(0, 2, 1)
    rows = row_blocks * TILE_ROWS
    return codes.reshape(rows, -1)[:num_rows], scales.reshape(rows, num_groups)[:num_rows].contiguous()


def _nibbles(codes: Tensor) -> Tensor:
    """Returns uint8 [N, K / 2]: code + 8 of the first 4 of each 8 columns in the low nibbles, of the others above."""
    shifted = (codes + 8).view(torch.uint8).view(codes.shape[0], -1, 2, 4)
    return (shifted[:, :, 0] | (shifted[:, :, 1] << 4)).view(codes.shape[0], -1)
