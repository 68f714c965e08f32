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
    group_format,
    of_rows,
    unpack_bits,
)
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError
from llm_export.program.specs import StoredFormat, StoredRows, TileScales

PARTS = ("qweight", "qzeros", "scales", "g_idx")
BITS = (2, 4, 8)
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # output of each nibble, the lowest first
AWQ_PLACES = [AWQ_ORDER.index(i) for i in range(8)]


@dataclass(frozen=True)
class GroupedIntegers(ExactWeight):
    """scale * (digit - zero point), in groups of `group` columns, or those that `order` gives to each column."""

    group: int = 0
    order: Tensor | None = None  # int64 [K]: the group of each column
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
        scales = self._spread(scales.to(torch.float32 if self.why else torch.float16))
        lows = self._spread(middle - zeros) if self.format.scales.offset == "zero" else None
        return StoredRows(digits.contiguous(), scales, lows=lows if self.why or lows is None else lows.to(torch.int8))

    def _spread(self, groups: Tensor) -> Tensor:
        """Of the groups that the weight has to those that its format has."""
        if self.order is not None:
            return groups[:, self.order]
        return groups.repeat_interleave(self.group // self.format.group_size, 1)

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
        raise FileError(f"{place}: quantization_config.group_size = {group!r}: must be -1 or what divides the columns")
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
        weight = replace(weight, zero_offset=0 if is_awq or version == "gptq_v2" else 1)
        weights[f"{prefix}.weight"] = _in_order(_without_zeros(weight))
        parts += [f"{prefix}.{part}" for part in PARTS]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.qweight', which quantization_config asks for")
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
    scale_bits = (16 + bits) / group
    return GroupedIntegers(
        files, prefix, f"{prefix}.qweight", (rows, columns), "AWQ" if is_awq else "GPTQ", bits + scale_bits,
        StoredFormat(bits, group, TileScales(group, "zero")), group=group, is_awq=is_awq,
    )  # fmt: skip


def _without_zeros(weight: GroupedIntegers) -> GroupedIntegers:
    """The weight in the format of tiles: without zero points if all are in the middle."""
    bits = weight.format.bits
    zeros = unpack_bits(weight._read("qzeros"), bits).to(torch.int16) + weight.zero_offset
    offset = "none" if bool((zeros == 1 << (bits - 1)).all()) else "zero"
    format, why = group_format(
        bits, weight.group, weight.shape[1], weight._read("scales"), f"{weight.prefix}.scales", offset
    )
    if bits == 8 and bool((zeros == 0).any()):
        why = why or f"tensor '{weight.prefix}.qzeros' has zero points of 0: tiles of 8 bits hold 1 to 256"
    return replace(weight, format=format, why=why)


def _in_order(weight: GroupedIntegers) -> GroupedIntegers:
    """The weight with the groups that g_idx gives to its columns. Errors: FileError if there are no such groups"""
    name, files, columns = f"{weight.prefix}.g_idx", weight.files, weight.shape[1]
    if weight.is_awq or name not in files.names():
        return weight
    expect(files, name, (columns,), torch.int32)
    order = files.read(name).long()
    if torch.equal(order, torch.arange(columns) // weight.group):
        return weight
    groups = columns // weight.group
    if order.min() < 0 or order.max() >= groups:
        raise FileError(
            f"{files.path(name)}: tensor '{name}' has groups {int(order.min())} to {int(order.max())}: "
            f"must be 0 to {groups - 1}"
        )
    why = f"tensor '{name}' has columns in another order (desc_act): tiles hold them in the order of their groups"
    offset = TileScales(1, weight.format.scales.offset)
    return replace(weight, format=StoredFormat(weight.format.bits, 1, offset), why=why, order=order)
