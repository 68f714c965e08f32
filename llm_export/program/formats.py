"""Weight formats: how a stored weight is laid out and how many bytes it takes; docs/file-format.md says why."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from llm_export.methods import WeightSpec

TILE_ROWS = 16
GROUP_SIZES = (32, 64, 128, 256)
SCALE_BYTES = 2  # float16
WEIGHT_ALIGNMENT = 64

DENSE_BYTES = {
    torch.float32: 4,
    torch.float16: 2,
    torch.bfloat16: 2,
    torch.int64: 8,
    torch.int32: 4,
    torch.int8: 1,
    torch.uint8: 1,
    torch.bool: 1,
}


@dataclass(frozen=True)
class WeightFormat:
    """A quantised format: tiles of TILE_ROWS rows x one group, codes followed by float16 scales."""

    bits: int
    code_min: int
    code_max: int
    columns_per_block: int  # columns that one 64-byte block of a tile holds

    def tile_bytes(self, group_size: int) -> int:
        return TILE_ROWS * group_size * self.bits // 8 + TILE_ROWS * SCALE_BYTES


FORMATS = {
    4: WeightFormat(bits=4, code_min=-8, code_max=7, columns_per_block=8),
    8: WeightFormat(bits=8, code_min=-128, code_max=127, columns_per_block=4),
}


def padded_rows(num_rows: int) -> int:
    return -(-num_rows // TILE_ROWS) * TILE_ROWS


def stored_bytes(spec: WeightSpec) -> int:
    """Returns how many bytes the weight takes in the weights segment, alignment excluded."""
    if spec.bits == 0:
        return math.prod(spec.shape) * DENSE_BYTES[spec.dtype]
    *matrices, rows, columns = spec.shape
    tiles = math.prod(matrices) * padded_rows(rows) // TILE_ROWS * (columns // spec.group_size)
    return tiles * FORMATS[spec.bits].tile_bytes(spec.group_size)
