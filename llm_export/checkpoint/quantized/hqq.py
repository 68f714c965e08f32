"""Checkpoints of HQQ: groups with a scale and a zero point, which mostly is no integer.

Source: hqq's core/quantize.py (Quantizer.dequantize, HQQLinear.state_dict) and core/bitpack.py
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.float8 import SCALE_DTYPES
from llm_export.checkpoint.quantized.packed import ExactWeight, PackedWeight, expect, group_format
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError
from llm_export.program.specs import StoredFormat, StoredRows, TileScales

FIELDS = (
    "W_q", "nbits", "group_size", "shape", "scale", "zero", "axis", "packing", "unpack_view_dtype", "view_as_float",
    "quant_scale", "quant_zero", "compute_dtype", "offload_meta", "encoded_state_dict", "stores_quant_config",
    "channel_wise", "optimize", "round_zero",
)  # fmt: skip


@dataclass(frozen=True)
class Packing:
    """Fields of a word, the highest first: the n-th of all are those of row n, n + words, n + 2 * words and so on."""

    dtype: torch.dtype
    bits: int  # of a field
    num_fields: int


PACKINGS = {
    8: Packing(torch.uint8, 8, 1),
    6: Packing(torch.uint8, 8, 1),
    5: Packing(torch.uint8, 8, 1),
    4: Packing(torch.uint8, 4, 2),
    3: Packing(torch.int32, 3, 10),
    2: Packing(torch.uint8, 2, 4),
    1: Packing(torch.uint8, 1, 8),
}


@dataclass(frozen=True)
class HqqWeight(ExactWeight):
    """scale * (digit - zero), rounded to the dtype of the scales each time where zeros are no integers."""

    group: int = 0
    axis: int = 1  # 0: elements of a group are numel / group apart
    packing: Packing = PACKINGS[4]

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        groups = self.shape[1] // self.group
        digits = self._digits(torch.arange(start * groups, min(stop, self.shape[0]) * groups)).view(-1, self.shape[1])
        repeats = self.group // self.format.group_size
        scale, zero = (self._read(part).view(-1, groups)[start:stop] for part in ("scale", "zero"))
        lows = ((1 << (self.format.bits - 1)) - zero.to(torch.float32)).to(torch.int8)
        scale = scale.to(torch.float16).repeat_interleave(repeats, 1)
        return StoredRows(digits, scale, lows=lows.repeat_interleave(repeats, 1))

    def values(self, start: int, stop: int) -> Tensor:
        if not self.why:
            return super().values(start, stop)
        rows, columns = self.shape
        elements = torch.arange(start * columns, min(stop, rows) * columns)
        scale, zero = self._read("scale").flatten(), self._read("zero").flatten()
        if self.axis == 1:
            digits = self._digits(elements[:: self.group] // self.group).flatten()
            of_group = elements // self.group
        else:
            of_group = elements % (rows * columns // self.group)
            digits = self._digits(elements // (rows * columns // self.group), of_group)
        values = (digits.to(scale.dtype) - zero[of_group].to(scale.dtype)) * scale[of_group]
        return values.to(torch.float32).view(-1, columns)

    def _digits(self, rows: Tensor, columns: Tensor | None = None) -> Tensor:
        """Rows of the unpacked matrix, or elements of it: uint8."""
        words = self._read("W_q").view(self.packing.dtype)
        shifts = self.packing.bits * (self.packing.num_fields - 1 - rows // len(words))
        places = rows % len(words)
        found = words[places] if columns is None else words[places, columns]
        found = found >> (shifts[:, None] if columns is None else shifts).to(found.dtype)
        return (found & (1 << self.packing.bits) - 1).to(torch.uint8)

    def _read(self, part: str) -> Tensor:
        return self.files.read(f"{self.prefix}.{part}")


def read_hqq(files: SafetensorsFiles, config: dict, model_type: str) -> tuple[dict[str, PackedWeight], list[str]]:
    """Returns the weights by name, and the names of their tensors. Errors: FileError"""
    weights: dict[str, PackedWeight] = {}
    parts = []
    for name in sorted(files.names()):
        prefix, _, leaf = name.rpartition(".")
        if leaf == "W_q":
            weights[f"{prefix}.weight"] = _weight(files, prefix)
            parts += [f"{prefix}.{field}" for field in FIELDS]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.W_q', which quantization_config asks for")
    return weights, parts


def _weight(files: SafetensorsFiles, prefix: str) -> HqqWeight:
    name = f"{prefix}.W_q"
    shape = _numbers(files, f"{prefix}.shape")
    if len(shape) != 2 or not all(0 < size < 1 << 31 for size in shape):
        raise FileError(f"{files.path(name)}: tensor '{prefix}.shape' = {shape}: must be two sizes")
    rows, columns = int(shape[0]), int(shape[1])
    bits = _one_of(files, f"{prefix}.nbits", [*PACKINGS, 1.58])
    axis = int(_one_of(files, f"{prefix}.axis", [0, 1]))
    group = int(_number(files, f"{prefix}.group_size"))
    if group < 1 or rows * columns % group or (axis == 1 and columns % group):
        raise FileError(f"{files.path(name)}: tensor '{prefix}.group_size' = {group}: must divide {columns} columns")
    packing = PACKINGS[2 if bits == 1.58 else int(bits)]
    others = rows * columns // group
    matrix = (others, group) if axis == 1 else (group, others)
    _check_words(files, name, packing, matrix)
    of_groups = (others, 1) if axis == 1 else (1, others)
    expect(files, f"{prefix}.scale", of_groups, *SCALE_DTYPES)
    expect(files, f"{prefix}.zero", of_groups, *SCALE_DTYPES)
    container = 2 if bits < 2 else int(bits)  # tiles with float16 scales have no fewer
    format, why = _format(files, prefix, container, group, columns, axis)
    average = bits + 32 / group
    return HqqWeight(
        files, prefix, name, (rows, columns), "HQQ", average, format, group=group, axis=axis, packing=packing, why=why
    )


def _format(
    files: SafetensorsFiles, prefix: str, bits: int, group: int, columns: int, axis: int
) -> tuple[StoredFormat, str]:
    """Returns how tiles hold the weight, and what keeps them from it."""
    if axis == 0:
        why = f"tensor '{prefix}.axis' = 0: tiles hold groups of consecutive columns (1)"
        return StoredFormat(bits, group, TileScales(group, "zero")), why
    scale = f"{prefix}.scale"
    format, why = group_format(bits, group, columns, files.read(scale), scale, "zero")
    lows = (1 << (bits - 1)) - files.read(f"{prefix}.zero").to(torch.float32)
    if not why and not bool(((lows == lows.round()) & (lows >= -128) & (lows <= 127)).all()):
        why = f"tensor '{prefix}.zero' has zero points that are no integers: tiles hold integers of 8 bits"
    return format, why


def _check_words(files: SafetensorsFiles, name: str, packing: Packing, matrix: tuple[int, int]) -> None:
    meta = files.meta(name)
    words = -(-matrix[0] // packing.num_fields)
    viewed = meta.dtype if meta.dtype in (torch.uint8, torch.int32) else None
    num_bytes = words * matrix[1] * packing.dtype.itemsize
    fits = meta.dim() == 2 and meta.shape[0] == words and meta.numel() * meta.itemsize == num_bytes
    if not fits or viewed not in (packing.dtype, None):
        kind = str(packing.dtype).removeprefix("torch.")
        raise FileError(
            f"{files.path(name)}: tensor '{name}' is {str(meta.dtype).removeprefix('torch.')} {list(meta.shape)}: must "
            f"be {kind} {[words, matrix[1]]} for its nbits, group_size and shape"
        )


def _numbers(files: SafetensorsFiles, name: str) -> list[int | float]:
    if name not in files.names():
        raise FileError(f"{files.place}: tensor '{name}' is missing, which the quantization in config.json asks for")
    if files.meta(name).numel() > 8:
        raise FileError(f"{files.path(name)}: tensor '{name}' has {files.meta(name).numel()} numbers: must have few")
    return [round(float(number), 2) for number in files.read(name).flatten()]


def _number(files: SafetensorsFiles, name: str) -> int | float:
    numbers = _numbers(files, name)
    if len(numbers) != 1 or not float(numbers[0]).is_integer():
        raise FileError(f"{files.path(name)}: tensor '{name}' = {numbers}: must be one whole number")
    return numbers[0]


def _one_of(files: SafetensorsFiles, name: str, accepted: list[int | float]) -> int | float:
    numbers = _numbers(files, name)
    if len(numbers) != 1 or numbers[0] not in accepted:
        raise FileError(f"{files.path(name)}: tensor '{name}' = {numbers}: must be one of {accepted}")
    return numbers[0]
