"""Checkpoints of compressed-tensors: packed integers, int8 channels, and float8.

Source: compressed-tensors' pack_quantized.py, naive_quantized.py and quant_args.py
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.packed import (
    ExactWeight,
    PackedWeight,
    expect,
    halves,
    of_rows,
    row_format,
    tile_group,
    unpack_bits,
)
from llm_export.checkpoint.quantized.values import Float8Weight
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError, UnsupportedError
from llm_export.program.specs import StoredFormat, StoredRows, TileScales

FORMATS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized")
SCALE_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
PARTS = ("weight", "weight_packed", "weight_shape", "weight_scale", "weight_zero_point", "weight_g_idx", "input_scale",
         "input_zero_point", "output_scale", "output_zero_point")  # fmt: skip


@dataclass(frozen=True)
class CompressedIntegers(ExactWeight):
    """scale * (code - zero point), in groups of `group` columns; packed, or a byte each."""

    group: int = 0
    is_packed: bool = False

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        bits = self.format.bits
        if self.is_packed:
            packed = self.files.read(f"{self.prefix}.weight_packed")[start:stop]
            digits = unpack_bits(packed, bits)[:, : self.shape[1]].contiguous()
        else:
            digits = self.files.read(f"{self.prefix}.weight")[start:stop].view(torch.uint8) ^ 128
        scales = self.files.read(f"{self.prefix}.weight_scale")[start:stop]
        if self.format.scales.of_rows:
            ones, rows = of_rows(scales, self.shape[1] // self.format.group_size)
            return StoredRows(digits, ones, row_scales=rows)
        repeats = self.group // self.format.group_size
        lows = None
        if self.format.scales.offset == "zero":
            lows = (-self._zeros(start, stop)).repeat_interleave(repeats, 1)
        return StoredRows(digits, scales.to(torch.float16).repeat_interleave(repeats, 1), lows=lows)

    def _zeros(self, start: int, stop: int) -> Tensor:
        zeros = self.files.read(f"{self.prefix}.weight_zero_point")
        if zeros.dtype == torch.int32:  # packed along the rows, with the middle added
            bits = self.format.bits
            digits = unpack_bits(zeros.T.contiguous(), bits).T[start:stop]
            return (digits.to(torch.int16) - (1 << (bits - 1))).to(torch.int8)
        return zeros[start:stop].to(torch.int8)


def read_compressed(
    files: SafetensorsFiles, config: dict, model_type: str
) -> tuple[dict[str, PackedWeight], list[str]]:
    """Returns the weights by name, and the names of their tensors. Errors: FileError; UnsupportedError by name"""
    place = f"{files.place}/config.json"
    groups = [group for group in (config.get("config_groups") or {}).values() if isinstance(group, dict)]
    schemes = [group.get("weights") for group in groups if isinstance(group.get("weights"), dict)]
    if not schemes:
        raise FileError(f"{place}: quantization_config.config_groups has no weights: must describe them")
    format = config.get("format", "pack-quantized")
    if format not in FORMATS:
        raise UnsupportedError(
            model_type, f"its weights are compressed-tensors in the format {format}",
            f"Formats that are read: {', '.join(FORMATS)}. Export the unquantized checkpoint",
        )  # fmt: skip
    weights: dict[str, PackedWeight] = {}
    parts: list[str] = []
    names = set(files.names())
    for name in sorted(names):
        prefix, _, leaf = name.rpartition(".")
        if leaf != "weight_scale":
            continue
        if f"{prefix}.weight_g_idx" in names:
            raise UnsupportedError(
                model_type, "its compressed-tensors weights have their columns in another order (actorder)",
                "Export a checkpoint without weight_g_idx, or the unquantized one",
            )  # fmt: skip
        weights[f"{prefix}.weight"] = _weight(files, names, prefix, schemes, place)
        parts += [f"{prefix}.{part}" for part in PARTS]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.weight_scale', which quantization_config asks for")
    return weights, parts


def _weight(files: SafetensorsFiles, names: set[str], prefix: str, schemes: list[dict], place: str) -> PackedWeight:
    packed = f"{prefix}.weight_packed"
    if packed not in names:
        shape = expect(files, f"{prefix}.weight", (None, None), torch.int8, torch.float8_e4m3fn)
        expect(files, f"{prefix}.weight_scale", (None,) * files.meta(f"{prefix}.weight_scale").dim(), *SCALE_DTYPES)
        if files.meta(f"{prefix}.weight").dtype == torch.float8_e4m3fn:
            return Float8Weight(files, f"{prefix}.weight", shape, f"{prefix}.weight_scale")
        return _integers(files, names, prefix, f"{prefix}.weight", shape, 8, False, place)
    bits = {scheme.get("num_bits") for scheme in schemes} & {2, 4, 8}
    if len(bits) != 1:
        found = [scheme.get("num_bits") for scheme in schemes]
        raise FileError(f"{place}: quantization_config weights have num_bits = {found}: must be one of 2, 4, 8 for all")
    (bits,) = bits
    shape = tuple(files.read(f"{prefix}.weight_shape").tolist()) if f"{prefix}.weight_shape" in names else ()
    if len(shape) != 2 or any(size < 1 for size in shape):
        raise FileError(f"{files.path(packed)}: tensor '{prefix}.weight_shape' = {list(shape)}: must be two sizes")
    expect(files, packed, (shape[0], -(-shape[1] * bits // 32)), torch.int32)
    return _integers(files, names, prefix, packed, shape, bits, True, place)


def _integers(files, names, prefix, name, shape, bits, is_packed, place) -> CompressedIntegers:
    rows, columns = shape
    scale = f"{prefix}.weight_scale"
    groups = expect(files, scale, (rows, None), *SCALE_DTYPES)[1]
    if groups == 0 or columns % groups:
        raise FileError(f"{files.path(scale)}: tensor '{scale}' has {groups} groups: must divide {columns} columns")
    group = columns // groups
    tiles = tile_group(group, columns, place)
    has_zeros = f"{prefix}.weight_zero_point" in names and bool(files.read(f"{prefix}.weight_zero_point").any())
    kind = f"W{bits}A{'16' if is_packed else '8'}"
    if groups == 1 and not has_zeros:
        format = row_format(bits, tiles)
    elif halves(files.read(scale)) is None:
        raise FileError(f"{files.path(scale)}: tensor '{scale}': must be what float16 holds")
    else:
        format = StoredFormat(bits, tiles, TileScales(tiles, "zero" if has_zeros else "none"))
    return CompressedIntegers(
        files, prefix, name, shape, kind, bits + 16 / group, format, group=group, is_packed=is_packed
    )
