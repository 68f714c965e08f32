"""Weight formats: how a stored weight is laid out and how many bytes it takes; docs/file-format.md says why."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from llm_export.program.specs import TileScales, WeightSpec

TILE_ROWS = 16
GROUP_SIZES = (32, 64, 128, 256)
MULTIPLIER_BYTES = 1  # int8, a row of a tile
ROW_SCALE_BYTES = 4  # float32, a row
HALF_BYTES = 2  # float16
MIN_TILE_COLUMNS = 32
INPUT_GROUP = 32  # columns of an input that share a scale where it is quantised in groups
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
    """A quantised format: tiles of TILE_ROWS rows x one group, codes followed by multipliers of row scales."""

    bits: int
    code_min: int  # 1 bit: the codes are -1 and 1 only
    code_max: int
    max_multiplier: int  # in magnitude; of 1 to 4 bits such that multiplier * code is a signed byte
    planes: tuple[int, ...]  # bits of a code that each plane of a tile holds, the lowest ones first

    def tile_bytes(self, group_size: int) -> int:
        return TILE_ROWS * group_size * self.bits // 8 + TILE_ROWS * MULTIPLIER_BYTES

    def block_bytes(self, columns: int, group_size: int) -> int:
        """Bytes of TILE_ROWS whole rows: their tiles, then their scales."""
        return columns // group_size * self.tile_bytes(group_size) + TILE_ROWS * ROW_SCALE_BYTES


# Row for row kWeightFormats in kernels/formats.h; a test compares them.
FORMATS = {
    1: WeightFormat(bits=1, code_min=-1, code_max=1, max_multiplier=127, planes=(1,)),
    2: WeightFormat(bits=2, code_min=-2, code_max=1, max_multiplier=63, planes=(2,)),
    3: WeightFormat(bits=3, code_min=-4, code_max=3, max_multiplier=31, planes=(2, 1)),
    4: WeightFormat(bits=4, code_min=-8, code_max=7, max_multiplier=15, planes=(4,)),
    5: WeightFormat(bits=5, code_min=-16, code_max=15, max_multiplier=127, planes=(4, 1)),
    6: WeightFormat(bits=6, code_min=-32, code_max=31, max_multiplier=127, planes=(4, 2)),
    7: WeightFormat(bits=7, code_min=-64, code_max=63, max_multiplier=127, planes=(4, 2, 1)),
    8: WeightFormat(bits=8, code_min=-128, code_max=127, max_multiplier=127, planes=(8,)),
}


@dataclass(frozen=True)
class TileLayout:
    """Where the parts of TILE_ROWS rows with float16 scales lie; TileLayout in kernels/formats.h."""

    bits: int
    group_size: int
    scales: TileScales

    @property
    def tile_columns(self) -> int:
        return max(self.group_size, MIN_TILE_COLUMNS)

    @property
    def groups_per_tile(self) -> int:
        return self.tile_columns // self.group_size

    @property
    def has_multipliers(self) -> bool:
        return self.scales.columns > self.group_size

    @property
    def has_lows(self) -> bool:
        return self.scales.offset == "zero" or (self.scales.offset == "minimum" and self.has_multipliers)

    @property
    def code_bytes(self) -> int:
        return TILE_ROWS * self.tile_columns * self.bits // 8

    @property
    def tile_bytes(self) -> int:
        return self.code_bytes + TILE_ROWS * self.groups_per_tile * (self.has_multipliers + self.has_lows)

    @property
    def span_columns(self) -> int:
        return max(self.scales.columns, self.tile_columns)

    @property
    def tiles_per_span(self) -> int:
        return self.span_columns // self.tile_columns

    @property
    def scale_bytes(self) -> int:
        return TILE_ROWS * HALF_BYTES * (self.span_columns // self.scales.columns)

    @property
    def tiles_at(self) -> int:
        return self.scale_bytes * (1 + (self.scales.offset == "minimum"))

    @property
    def span_bytes(self) -> int:
        return self.tiles_at + self.tiles_per_span * self.tile_bytes

    def block_bytes(self, columns: int) -> int:
        """Bytes of TILE_ROWS whole rows."""
        rows = TILE_ROWS * ROW_SCALE_BYTES if self.scales.of_rows else 0
        return columns // self.span_columns * self.span_bytes + rows


def padded_rows(num_rows: int) -> int:
    return -(-num_rows // TILE_ROWS) * TILE_ROWS


def stored_bytes(spec: WeightSpec) -> int:
    """Returns how many bytes the weight takes in the weights segment, alignment excluded."""
    if spec.bits == 0:
        return math.prod(spec.shape) * DENSE_BYTES[spec.dtype]
    *matrices, rows, columns = spec.shape
    blocks = math.prod(matrices) * padded_rows(rows) // TILE_ROWS
    if spec.scales is not None:
        return blocks * TileLayout(spec.bits, spec.group_size, spec.scales).block_bytes(columns)
    return blocks * FORMATS[spec.bits].block_bytes(columns, spec.group_size)
