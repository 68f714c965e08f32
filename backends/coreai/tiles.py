"""Tiles of docs/file-format.md as what Core AI's constants hold: codes, multipliers and scales, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from llm_export.program.formats import FORMATS, ROW_SCALE_BYTES, TILE_ROWS, padded_rows
from llm_export.program.specs import WeightSpec

SLAB_BYTES = 1 << 22  # unpacked at once


class Tiles(NamedTuple):
    """A weight is scale * (multiplier * code).

    codes: int8 [.., N, K]   multipliers: int8 [.., N, K / group_size]   scales: float32 [.., N, 1]
    """

    codes: np.ndarray
    multipliers: np.ndarray
    scales: np.ndarray


def unpack(spec: WeightSpec, chunks: Iterable) -> Tiles:
    """chunks: the stored bytes of the weight, in order. Cost: a byte for each weight beside them"""
    *stack, rows, columns = spec.shape
    matrices = int(np.prod(stack, dtype=np.int64))
    data = np.concatenate([np.frombuffer(memoryview(chunk).cast("B"), np.uint8) for chunk in chunks])
    blocks = data.reshape(matrices * padded_rows(rows) // TILE_ROWS, -1)
    groups = columns // spec.group_size
    total = blocks.shape[0] * TILE_ROWS
    found = Tiles(
        np.empty((total, columns), np.int8), np.empty((total, groups), np.int8), np.empty((total, 1), np.float32)
    )
    step = max(SLAB_BYTES // blocks.shape[1], 1)
    for first in range(0, blocks.shape[0], step):
        slab = blocks[first : first + step]
        at = slice(first * TILE_ROWS, first * TILE_ROWS + len(slab) * TILE_ROWS)
        for whole, part in zip(found, _slab(slab, spec.bits, spec.group_size, groups), strict=True):
            whole[at] = part
    kept = (part.reshape(matrices, -1, part.shape[1])[:, :rows] for part in found)
    return Tiles(*(np.ascontiguousarray(part).reshape(*stack, rows, part.shape[2]) for part in kept))


def _slab(blocks: np.ndarray, bits: int, group_size: int, groups: int) -> Tiles:
    count, scale_bytes = len(blocks), TILE_ROWS * ROW_SCALE_BYTES
    tiles = blocks[:, :-scale_bytes].reshape(count, groups, -1)
    digits = np.zeros((count * TILE_ROWS, groups * group_size), np.uint8)
    start = shift = 0
    for width in FORMATS[bits].planes:
        stop = start + TILE_ROWS * group_size * width // 8
        units = tiles[:, :, start:stop].reshape(count, groups, -1, TILE_ROWS, 4)
        units = units.transpose(0, 3, 1, 2, 4)  # [count, rows, groups, blocks, 4]
        columns = np.stack([units >> low & (1 << width) - 1 for low in range(0, 8, width)], axis=-2)
        digits |= columns.reshape(digits.shape) << shift
        start, shift = stop, shift + width
    codes = digits.view(np.int8)
    codes = 2 * codes - 1 if bits == 1 else (digits - np.uint8(2 ** (bits - 1))).view(np.int8)
    multipliers = tiles[:, :, -TILE_ROWS:].view(np.int8).transpose(0, 2, 1).reshape(-1, groups)
    scales = np.ascontiguousarray(blocks[:, -scale_bytes:]).view(np.float32).reshape(-1, 1)
    return Tiles(codes, multipliers, scales)


def packed(codes: np.ndarray) -> np.ndarray:
    """int4 as Core AI stores it: two a byte, the first in the low half."""
    digits = codes.reshape(-1).view(np.uint8) & 15
    if digits.size % 2:
        digits = np.append(digits, np.uint8(0))
    return digits[0::2] | digits[1::2] << 4
