"""Checkpoints of compressed-tensors: packed integers, int8 channels, and float8.

Source: compressed-tensors' pack_quantized.py, naive_quantized.py and quant_args.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.float8 import SCALE_DTYPES, block_sizes, float8_weight
from llm_export.checkpoint.quantized.nvfp4 import mxfp4_weight, nvfp4_weight
from llm_export.checkpoint.quantized.packed import (
    ExactWeight,
    PackedWeight,
    expect,
    group_format,
    of_rows,
    unpack_bits,
)
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError, UnsupportedError
from llm_export.program.specs import StoredFormat, StoredRows, TileScales

FLOAT4_FORMATS = ("nvfp4-pack-quantized", "mxfp4-pack-quantized")
FORMATS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized", *FLOAT4_FORMATS)
PARTS = ("weight", "weight_packed", "weight_shape", "weight_scale", "weight_zero_point", "weight_g_idx", "input_scale",
         "input_zero_point", "output_scale", "output_zero_point", "weight_global_scale",
         "input_global_scale")  # fmt: skip


@dataclass(frozen=True)
class CompressedIntegers(ExactWeight):
    """scale * (code - zero point) in groups of `group` columns, or those that `order` gives; packed, or a byte each."""

    group: int = 0
    order: Tensor | None = None  # int64 [K]: the group of each column
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
        scales = self._spread(scales.to(torch.float32 if self.why else torch.float16))
        lows = self._spread(-self._zeros(start, stop).to(torch.int16)) if self.format.scales.offset == "zero" else None
        return StoredRows(digits, scales, lows=lows if self.why or lows is None else lows.to(torch.int8))

    def _spread(self, groups: Tensor) -> Tensor:
        """Of the groups that the weight has to those that its format has."""
        if self.order is not None:
            return groups[:, self.order]
        return groups.repeat_interleave(self.group // self.format.group_size, 1)

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
        weights[f"{prefix}.weight"] = (
            _float4(files, prefix, format)
            if format in FLOAT4_FORMATS
            else _weight(files, names, prefix, schemes, place)
        )
        parts += [f"{prefix}.{part}" for part in PARTS]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.weight_scale', which quantization_config asks for")
    return weights, parts


def _float4(files: SafetensorsFiles, prefix: str, format: str) -> PackedWeight:
    packed, scale = f"{prefix}.weight_packed", f"{prefix}.weight_scale"
    if format == "mxfp4-pack-quantized":
        return mxfp4_weight(files, packed, scale)
    return nvfp4_weight(files, packed, scale, f"{prefix}.weight_global_scale", divides=True)


def _weight(files: SafetensorsFiles, names: set[str], prefix: str, schemes: list[dict], place: str) -> PackedWeight:
    packed = f"{prefix}.weight_packed"
    if packed not in names:
        shape = expect(files, f"{prefix}.weight", (None, None), torch.int8, torch.float8_e4m3fn)
        if files.meta(f"{prefix}.weight").dtype == torch.float8_e4m3fn:
            return float8_weight(files, f"{prefix}.weight", f"{prefix}.weight_scale", _block(schemes, place))
        return _integers(files, names, prefix, f"{prefix}.weight", shape, 8, False)
    bits = {scheme.get("num_bits") for scheme in schemes} & {2, 4, 8}
    if len(bits) != 1:
        found = [scheme.get("num_bits") for scheme in schemes]
        raise FileError(f"{place}: quantization_config weights have num_bits = {found}: must be one of 2, 4, 8 for all")
    (bits,) = bits
    shape = tuple(files.read(f"{prefix}.weight_shape").tolist()) if f"{prefix}.weight_shape" in names else ()
    if len(shape) != 2 or any(size < 1 for size in shape):
        raise FileError(f"{files.path(packed)}: tensor '{prefix}.weight_shape' = {list(shape)}: must be two sizes")
    expect(files, packed, (shape[0], -(-shape[1] * bits // 32)), torch.int32)
    return _integers(files, names, prefix, packed, shape, bits, True)


def _block(schemes: list[dict], place: str) -> tuple[int, int] | None:
    """Returns the sizes of a block of weights that share a scale. Errors: FileError"""
    for scheme in schemes:
        if scheme.get("strategy") == "block":
            return block_sizes(scheme.get("block_structure"), f"{place}: quantization_config block_structure")
    return None


def _integers(files, names, prefix, name, shape, bits, is_packed) -> CompressedIntegers:
    rows, columns = shape
    scale, zeros = f"{prefix}.weight_scale", f"{prefix}.weight_zero_point"
    groups = expect(files, scale, (rows, None), *SCALE_DTYPES)[1]
    if groups == 0 or columns % groups:
        raise FileError(f"{files.path(scale)}: tensor '{scale}' has {groups} groups: must divide {columns} columns")
    group = columns // groups
    has_zeros = zeros in names and bool(files.read(zeros).any())
    if has_zeros and files.meta(zeros).dtype == torch.int32:
        expect(files, zeros, (-(-rows * bits // 32), groups))
    elif has_zeros:
        expect(files, zeros, (rows, groups), torch.int8)
    format, why = group_format(bits, group, columns, files.read(scale), scale, "zero" if has_zeros else "none")
    weight = CompressedIntegers(
        files, prefix, name, shape, f"W{bits}A{'16' if is_packed else '8'}", bits + 16 / group, format, group=group,
        is_packed=is_packed, why=why,
    )  # fmt: skip
    if has_zeros and bits == 8 and int(weight._zeros(0, rows).min()) == -128:
        weight = replace(weight, why=why or f"tensor '{zeros}' has zero points of -128: tiles hold -127 to 127")
    return _in_order(weight, groups) if f"{prefix}.weight_g_idx" in names else weight


def _in_order(weight: CompressedIntegers, groups: int) -> CompressedIntegers:
    """The weight with the groups that weight_g_idx gives to its columns. Errors: FileError if there are no such"""
    name = f"{weight.prefix}.weight_g_idx"
    expect(weight.files, name, (weight.shape[1],), torch.int32, torch.int64)
    order = weight.files.read(name).long()
    usual = torch.arange(weight.shape[1]) // weight.group
    if bool((order == -1).any()) or torch.equal(order, usual):  # -1: columns are in order
        return weight
    if not torch.equal(order.sort()[0], usual):
        raise FileError(
            f"{weight.files.path(name)}: tensor '{name}': must have each of 0 to {groups - 1} {weight.group} times"
        )
    why = f"tensor '{name}' has columns in another order (actorder): tiles hold them in the order of their groups"
    offset = TileScales(1, weight.format.scales.offset)
    return replace(weight, format=StoredFormat(weight.format.bits, 1, offset), why=why, order=order)
