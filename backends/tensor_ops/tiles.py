"""Tiles of docs/file-format.md as what vendors' constants hold: codes, multipliers and scales, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from llm_export.program.formats import TILE_ROWS, padded_rows
from llm_export.program.specs import WeightSpec
from llm_export.quantize.pack import unpack

SLAB_BYTES = 1 << 22  # unpacked at once


class Tiles(NamedTuple):
    """A weight is scale * (multiplier * code).

    codes: int8 [.., N, K]   multipliers: int8 [.., N, K / group_size]   scales: float32 [.., N, 1]
    """

    codes: np.ndarray
    multipliers: np.ndarray
    scales: np.ndarray


def read_tiles(spec: WeightSpec, data: np.ndarray) -> Tiles:
    """data: the stored bytes of the weight. Cost: a byte for each weight beside them"""
    *stack, rows, columns = spec.shape
    matrices = int(np.prod(stack, dtype=np.int64))
    blocks = data.reshape(matrices * padded_rows(rows) // TILE_ROWS, -1)
    groups = columns // spec.group_size
    total = blocks.shape[0] * TILE_ROWS
    found = Tiles(
        np.empty((total, columns), np.int8), np.empty((total, groups), np.int8), np.empty((total, 1), np.float32)
    )
    step = max(SLAB_BYTES // blocks.shape[1], 1)
    for first in range(0, blocks.shape[0], step):
        slab = torch.from_numpy(blocks[first : first + step])
        at = slice(first * TILE_ROWS, (first + len(slab)) * TILE_ROWS)
        for whole, part in zip(found, unpack(slab, spec.bits, spec.group_size, len(slab) * TILE_ROWS), strict=True):
            whole[at] = part.numpy().reshape(whole[at].shape)
    kept = (part.reshape(matrices, -1, part.shape[1])[:, :rows] for part in found)
    return Tiles(*(np.ascontiguousarray(part).reshape(*stack, rows, part.shape[2]) for part in kept))


def packed(codes: np.ndarray) -> np.ndarray:
    """int4 as vendors store it: two a byte, the first in the low half."""
    digits = codes.reshape(-1).view(np.uint8) & 15
    if digits.size % 2:
        digits = np.append(digits, np.uint8(0))
    return digits[0::2] | digits[1::2] << 4
