"""What the formats of quantized Hugging Face checkpoints share: a weight in several tensors, seen as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError
from llm_export.program.formats import GROUP_SIZES
from llm_export.program.specs import StoredAs, StoredFormat, StoredRows, TileScales
from llm_export.program.stored import codes, dequantize


class PackedWeight(Protocol):
    """A quantized weight. Rows are those of its product, those of a stack of matrices counted through.

    Thread safety: const
    """

    name: str  # of the tensor that stands for it in messages and paths
    shape: tuple[int, ...]  # as the module has it

    def stored_as(self) -> StoredAs: ...

    def values(self, start: int, stop: int) -> Tensor: ...  # float32 [rows, K]

    def stored_rows(self, start: int, stop: int) -> StoredRows: ...


@dataclass(frozen=True)
class ExactWeight:
    """A weight of integers: what it stands for is what its stored rows do.

    why: what keeps tiles from holding it, "" for nothing; `format` then is one that no file has
    """

    files: SafetensorsFiles
    prefix: str  # of the names of its tensors
    name: str
    shape: tuple[int, ...]
    kind: str
    bits: float
    format: StoredFormat
    why: str = field(default="", kw_only=True)

    def stored_as(self) -> StoredAs:
        return StoredAs(self.kind, self.bits, None if self.why else self.format, why=self.why)

    def values(self, start: int, stop: int) -> Tensor:
        rows = self.stored_rows(start, stop)
        return _values(rows, self.format) if self.why else dequantize(rows, self.format)

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        raise NotImplementedError


def _values(rows: StoredRows, format: StoredFormat) -> Tensor:
    """(code + low) * scale, rounded once, of scales of any dtype."""
    numbers = codes(rows, format).unflatten(1, (rows.scales.shape[1], -1))
    numbers = numbers if rows.lows is None else numbers + rows.lows[..., None]
    values = (numbers.to(torch.float32) * rows.scales.to(torch.float32)[..., None]).flatten(1)
    return values if rows.row_scales is None else values * rows.row_scales[:, None]


@dataclass(frozen=True)
class PackedRows:
    """The weight as a matrix whose rows are made where it is indexed."""

    weight: PackedWeight

    @property
    def shape(self) -> tuple[int, ...]:
        return self.weight.shape

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            return self.weight.values(start, stop)
        return torch.cat([self.weight.values(row, row + 1) for row in rows.tolist()])


class QuantizedFiles:
    """Tensors of which some are packed weights. See TensorFiles."""

    kind = "config.json"

    def __init__(self, files: SafetensorsFiles, weights: dict[str, PackedWeight], parts: Iterable[str]):
        """weights: by their names in the state dict   parts: names of the tensors that they are made of"""
        self.place = files.place
        self._files = files
        self._weights = weights
        hidden = set(parts)
        self._plain = [name for name in files.names() if name not in hidden and name not in weights]

    def names(self) -> Iterable[str]:
        return [*self._plain, *self._weights]

    def needs_place(self, name: str) -> bool:
        return False

    def meta(self, name: str) -> Tensor:
        weight = self._weights.get(name)
        if weight is None:
            return self._files.meta(name)
        return torch.empty(weight.shape, dtype=torch.float32, device="meta")

    def read(self, name: str) -> Tensor:
        weight = self._weights.get(name)
        if weight is None:
            return self._files.read(name)
        if len(weight.shape) == 2:
            return weight.values(0, weight.shape[0])
        experts, columns, rows = weight.shape  # transposed: see stored_as
        return weight.values(0, experts * rows).view(experts, rows, columns).transpose(1, 2)

    def read_rows(self, name: str, start: int, stop: int) -> Tensor:
        weight = self._weights.get(name)
        if weight is None:
            return self._files.read_rows(name, start, stop)
        return (
            self.read(name)[start:stop] if len(weight.shape) > 2 else weight.values(start, min(stop, weight.shape[0]))
        )

    def computed_rows(self, name: str) -> PackedRows | None:
        weight = self._weights.get(name)
        return PackedRows(weight) if weight is not None and len(weight.shape) == 2 else None

    def path(self, name: str) -> Path:
        weight = self._weights.get(name)
        return self._files.path(name if weight is None else weight.name)

    def stored_as(self, name: str) -> StoredAs | None:
        weight = self._weights.get(name)
        return None if weight is None else weight.stored_as()

    def stored_rows(self, name: str, start: int, stop: int) -> StoredRows:
        return self._weights[name].stored_rows(start, stop)


def expect(files: SafetensorsFiles, name: str, shape: tuple[int | None, ...], *dtypes: torch.dtype) -> tuple[int, ...]:
    """Returns the shape of a tensor. Errors: FileError if it is missing or not such; None: any size"""
    if name not in files.names():
        raise FileError(f"{files.place}: tensor '{name}' is missing, which the quantization in config.json asks for")
    meta = files.meta(name)
    fits = len(meta.shape) == len(shape) and all(w in (None, s) for w, s in zip(shape, meta.shape, strict=True))
    if not fits or (dtypes and meta.dtype not in dtypes):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        kinds = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise FileError(
            f"{files.path(name)}: tensor '{name}' is {str(meta.dtype).removeprefix('torch.')} {list(meta.shape)}: "
            f"must be {kinds} [{wanted}]"
        )
    return tuple(meta.shape)


def group_format(
    bits: int, group: int, columns: int, scales: Tensor, name: str, offset: str
) -> tuple[StoredFormat, str]:
    """Returns how tiles hold groups of `group` columns, and what keeps them from it; see ExactWeight.

    scales: all of the weight, in any order   name: of their tensor
    """
    fitting = [size for size in GROUP_SIZES if group % size == 0]
    tiles = fitting[-1] if fitting else group
    if fitting and group == columns and offset == "none":
        return row_format(bits, tiles), ""
    why = "" if fitting else f"group_size = {group}: tiles hold multiples of {GROUP_SIZES[0]}"
    if not why and halves(scales) is None:
        why = f"tensor '{name}' has scales that float16 rounds: tiles hold float16"
    return StoredFormat(bits, tiles, TileScales(tiles, offset)), why


def unpack_bits(packed: Tensor, bits: int) -> Tensor:
    """Fields of `bits` bits of int32 [.., N], the lowest first: uint8 [.., N * 32 / bits]."""
    fields = [packed >> shift & (1 << bits) - 1 for shift in range(0, 32, bits)]
    return torch.stack(fields, -1).flatten(-2).to(torch.uint8)


def halves(scales: Tensor) -> Tensor | None:
    """Returns scales as float16, or None where that rounds them."""
    narrow = scales.to(torch.float16)
    return narrow if bool((narrow.to(torch.float32) == scales.to(torch.float32)).all()) else None


def of_rows(scales: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """One scale a row as float16 ones and float32. scales: [N, 1]   Returns: [N, groups], [N]"""
    return torch.ones(scales.shape[0], groups, dtype=torch.float16), scales[:, 0].to(torch.float32)


def row_format(bits: int, group: int) -> StoredFormat:
    return StoredFormat(bits, group, TileScales(group, of_rows=True))
