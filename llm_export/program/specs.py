"""What a program stores and keeps: its weights and states, as every stage after capture knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class StateSpec:
    """A mutable state that the session allocates; see `State` in schema.fbs."""

    name: str  # module path of the layer that owns it
    kind: str  # "kv_cache" or "recurrent"
    num_heads: int = 0  # key/value heads
    head_dim: int = 0
    value_head_dim: int = 0
    window: int = 0  # 0: every position is kept
    num_sink_positions: int = 0
    shape: tuple[int, ...] = ()  # recurrent only
    stride: int = 1  # of the positions, the last of each `stride` are kept


@dataclass(frozen=True)
class TileScales:
    """Float16 scales of tiles; docs/file-format.md."""

    columns: int  # of a row that share one; a multiple of the group size
    offset: str = "none"  # "minimum": groups have one; "zero": groups have a zero point
    of_rows: bool = False  # whether rows have float32 scales too
    codebook: tuple[int, ...] = ()  # 16 int8, what codes of 4 bits stand for; empty: themselves


@dataclass(frozen=True)
class StoredFormat:
    """How a checkpoint that is quantized already stores a weight, where tiles hold its very numbers."""

    bits: int
    group_size: int
    scales: TileScales


@dataclass(frozen=True)
class StoredAs:
    """That a checkpoint stores a weight quantized, and how."""

    name: str  # of the format, as its authors call it
    bits: float  # of a weight, scales included
    format: StoredFormat | None  # None: tiles do not hold its numbers
    is_transposed: bool = False  # the rows of the format are columns of the module's weight
    why: str = ""  # with no format: what stands against it and what tiles hold, for messages


class StoredRows(NamedTuple):
    """Whole rows of a weight in a StoredFormat.

    A weight is scale * multiplier * code, then what its offset adds: minimum * low, or scale * low for zero points,
    then times the row's scale. Absent parts are None: a multiplier or a low of a minimum of each group counts as 1.
    """

    digits: Tensor  # uint8 [N, K]: code + 2^(bits - 1); with minimums or a codebook, the code
    scales: Tensor  # float16 [N, K / scales.columns]
    multipliers: Tensor | None = None  # int8 [N, K / group_size]
    minimums: Tensor | None = None  # float16 [N, K / scales.columns]
    lows: Tensor | None = None  # int8 [N, K / group_size]
    row_scales: Tensor | None = None  # float32 [N]


@dataclass(frozen=True)
class WeightSpec:
    """How one stored weight is made from the checkpoint.

    `sources` are names in the state dict, or of parts of them, concatenated after `transpose` was applied to each:
    along dimension 0, in a stack along the rows of each matrix. For a constant of the graph there is one source, a key
    of `Methods.constants`.
    """

    sources: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype  # of the stored elements; ignored where bits != 0
    bits: int = 0  # 0: dense; 1 to 8: tiles (docs/file-format.md)
    group_size: int = 0
    per_channel: bool = False  # one scale a row: every multiplier is 1
    signed: bool = True  # multipliers may be negative
    scales: TileScales | None = None  # of a weight that the checkpoint stores so; None: multipliers of row scales
    # "int8": consumers quantise their input per token; "rotated_int8": they rotate it first, and rows are rotated too;
    # "grouped_int8": they quantise it in groups of 32 columns
    activations: str = "float"
    transpose: bool = False  # GPT-2's Conv1D stores [in, out]
    source_rows: tuple[int, ...] = ()  # of a merged weight: rows of each source, in a stack of each matrix
    takes_first: bool = False  # a stack of which only the first shape[0] matrices are stored
    factors: tuple[float, ...] = ()  # that each source is multiplied by; empty: by none
    functions: tuple[str, ...] = ()  # of a dense weight: what its elements become, one after the other

    @property
    def is_rounded(self) -> bool:
        """Whether export rounds it: not where it is dense, or has the numbers that the checkpoint stores."""
        return self.bits != 0 and self.scales is None

    @property
    def is_rotated(self) -> bool:
        return self.activations == "rotated_int8"

    @property
    def name(self) -> str:
        """Its sources, with what is made of them."""
        factors = self.factors or (1.0,) * len(self.sources)
        names = [name if by == 1 else f"{name}*{by!r}" for name, by in zip(self.sources, factors, strict=True)]
        text = "+".join(names)
        for function in self.functions:
            text = f"{function}({text})"
        return text


@dataclass(frozen=True)
class AssetWeight:
    """Where a weight lies in the file of an asset; fields as in schema.fbs.

    rest: what the asset does not hold, in the program's file: all of the weight where there are no pieces, the scales
        of rows where there are no multipliers
    """

    layout: str = "dense"  # or "int8", "int4", "halves"
    pieces: tuple[int, ...] = ()
    multipliers: tuple[int, ...] = ()
    scales: tuple[int, ...] = ()
    rest: bytes = b""


@dataclass(frozen=True)
class AssetWeights:
    """What the weights of a program are made of when the CPU first needs them.

    file: of the asset, from the program's folder   bytes: of that file   weights: one for each of the program's
    weights_bytes, checksum: of the weights segment that they make
    """

    file: str
    bytes: int
    weights: tuple[AssetWeight, ...]
    weights_bytes: int
    checksum: int
