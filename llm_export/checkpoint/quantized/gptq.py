"""GPTQ and AWQ checkpoints: integers with a scale and a zero point for each group.

Source: AutoGPTQ's and GPTQModel's QuantLinear (qweight packed along in_features; format `gptq` stores zero points less
one, `gptq_v2` as they are), AutoAWQ's WQLinear_GEMM (packed along out_features in the order 0 2 4 6 1 3 5 7)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.packed import (
    ExactWeight,
    PackedWeight,
    expect,
    of_rows,
    row_format,
    tile_group,
    unpack_bits,
)
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError, UnsupportedError
from llm_export.program.specs import StoredFormat, StoredRows, TileScales

PARTS = ("qweight", "qzeros", "scales", "g_idx")
BITS = (2, 4, 8)
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # output of each nibble, the lowest first
AWQ_PLACES = [AWQ_ORDER.index(i) for i in range(8)]


@dataclass(frozen=True)
class GroupedIntegers(ExactWeight):
    """scale * (digit - zero point), in groups of `group` columns."""

    group: int = 0
    zero_offset: int = 0  # what is added to stored zero points
    is_awq: bool = False

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        # What several rows share one word of is read for whole words.
        bits = self.format.bits
        per_word = 32 // bits
        first, last = start // per_word, -(-stop // per_word)
        if self.is_awq:
            digits = _columns(self._read("qweight")[:, first:last]).T[
                start - first * per_word : stop - first * per_word
            ]
            zeros = _columns(self._read("qzeros")[:, first:last])
        else:
            digits = unpack_bits(self._read("qweight")[:, start:stop].T.contiguous(), bits)
            zeros = unpack_bits(self._read("qzeros")[:, first:last], bits)
        zeros = zeros.T[start - first * per_word : stop - first * per_word].to(torch.int16) + self.zero_offset
        scales = self._read("scales")[:, start:stop].T
        middle = 1 << (bits - 1)
        if self.format.scales.of_rows:
            ones, rows = of_rows(scales, self.shape[1] // self.format.group_size)
            return StoredRows(digits.contiguous(), ones, row_scales=rows)
        repeats = self.group // self.format.group_size
        lows = (middle - zeros).to(torch.int8).repeat_interleave(repeats, 1)
        scales = scales.to(torch.float16).repeat_interleave(repeats, 1)
        has_zeros = self.format.scales.offset == "zero"
        return StoredRows(digits.contiguous(), scales, lows=lows if has_zeros else None)

    def _read(self, part: str) -> Tensor:
        return self.files.read(f"{self.prefix}.{part}")


def _columns(packed: Tensor) -> Tensor:
    """Nibbles of int32 [N, M] in the order of the outputs: uint8 [N, 8 * M]."""
    return unpack_bits(packed, 4).unflatten(-1, (-1, 8))[..., AWQ_PLACES].flatten(-2)


def read_gptq(files: SafetensorsFiles, config: dict, model_type: str) -> tuple[dict[str, PackedWeight], list[str]]:
    """Returns the weights by name, and the names of their tensors. Errors: FileError; UnsupportedError by name"""
    place = f"{files.place}/config.json"
    bits, group = config.get("bits"), config.get("group_size", 128)
    is_awq = config.get("quant_method") == "awq"
    if bits not in (BITS if not is_awq else (4,)):
        accepted = "4" if is_awq else ", ".join(map(str, BITS))
        raise FileError(f"{place}: quantization_config.bits = {bits!r}: must be {accepted}")
    if not isinstance(group, int) or group < -1 or group == 0:
        raise FileError(f"{place}: quantization_config.group_size = {group!r}: must be -1 or a multiple of 32")
    version = config.get("version", "gemm") if is_awq else config.get("checkpoint_format", "gptq")
    if version not in (("gemm",) if is_awq else ("gptq", "gptq_v2")):
        field = "version" if is_awq else "checkpoint_format"
        accepted = "gemm" if is_awq else "gptq or gptq_v2"
        raise FileError(f"{place}: quantization_config.{field} = {version!r}: must be {accepted}")
    names = set(files.names())
    weights: dict[str, PackedWeight] = {}
    parts = []
    for name in sorted(names):
        prefix, dot, leaf = name.rpartition(".")
        if leaf != "qweight":
            continue
        weight = _weight(files, prefix, bits, group, is_awq, place)
        weights[f"{prefix}.weight"] = replace(weight, zero_offset=0 if is_awq or version == "gptq_v2" else 1)
        parts += [f"{prefix}.{part}" for part in PARTS]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.qweight', which quantization_config asks for")
    for name, weight in weights.items():
        weights[name] = _without_zeros(weight)
        _refuse_order(weight, model_type)
    return weights, parts


def _weight(files, prefix: str, bits: int, group: int, is_awq: bool, place: str) -> GroupedIntegers:
    per_word = 32 // bits
    packed = expect(files, f"{prefix}.qweight", (None, None), torch.int32)
    columns, rows = (packed[0], packed[1] * per_word) if is_awq else (packed[0] * per_word, packed[1])
    group = columns if group == -1 else group
    if columns % group:
        raise FileError(
            f"{place}: quantization_config.group_size = {group}: must divide the {columns} columns of {prefix}"
        )
    expect(files, f"{prefix}.scales", (columns // group, rows), torch.float16, torch.bfloat16, torch.float32)
    expect(files, f"{prefix}.qzeros", (columns // group, rows // per_word), torch.int32)
    tiles = tile_group(group, columns, place)
    scale_bits = (16 + bits) / group
    return GroupedIntegers(
        files, prefix, f"{prefix}.qweight", (rows, columns), "AWQ" if is_awq else "GPTQ", bits + scale_bits,
        StoredFormat(bits, tiles, TileScales(tiles, "zero")), group=group, is_awq=is_awq,
    )  # fmt: skip


def _without_zeros(weight: GroupedIntegers) -> GroupedIntegers:
    """The weight without zero points if all are in the middle, with scales of rows if those are no float16."""
    bits = weight.format.bits
    zeros = unpack_bits(weight._read("qzeros"), bits).to(torch.int16) + weight.zero_offset
    scales = weight._read("scales")
    fits_half = scales.dtype == torch.float16 or bool((scales.to(torch.float16).float() == scales.float()).all())
    symmetric = bool((zeros == 1 << (bits - 1)).all())
    if symmetric and scales.shape[0] == 1:
        return replace(weight, format=row_format(bits, weight.format.group_size))
    if not fits_half:
        raise FileError(
            f"{weight.files.path(weight.name)}: tensor '{weight.prefix}.scales': must be what float16 holds"
        )
    tiles = weight.format.group_size
    return replace(weight, format=StoredFormat(bits, tiles, TileScales(tiles, "none" if symmetric else "zero")))


def _refuse_order(weight: GroupedIntegers, model_type: str) -> None:
    name = f"{weight.prefix}.g_idx"
    if weight.is_awq or name not in weight.files.names():
        return
    expect(weight.files, name, (weight.shape[1],), torch.int32)
    if not torch.equal(weight.files.read(name).long(), torch.arange(weight.shape[1]) // weight.group):
        raise UnsupportedError(
            model_type, "its GPTQ weights have their columns in another order (desc_act)",
            "Export a checkpoint that was quantized with desc_act false, or the unquantized one",
        )  # fmt: skip
