"""Checkpoints of torchao: tensor subclasses in parts, described in the headers of the safetensors files.

Source: torchao's prototype/safetensors (names and metadata), quantization/quantize_/workflows (what the parts mean)
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.float8 import SCALE_DTYPES, block_sizes, float8_weight
from llm_export.checkpoint.quantized.packed import ExactWeight, PackedWeight, expect, group_format, of_rows
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError, UnsupportedError
from llm_export.program.specs import StoredFormat, StoredRows, TileScales

INTEGERS = {f"int{bits}": bits for bits in range(1, 9)}  # target_dtype
PRE_SCALE = "act_pre_scale"


@dataclass(frozen=True)
class AffineIntegers(ExactWeight):
    """scale * (code - zero point), in blocks of rows and columns; a byte each, of which `bits` count."""

    block: tuple[int, int] = (1, 1)
    bytes_bits: int = 8

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        codes = self.files.read(f"{self.prefix}qdata")[start:stop]
        half = 1 << (self.bytes_bits - 1)
        if len(codes) and (int(codes.min()) < -half or int(codes.max()) >= half):
            raise FileError(
                f"{self.files.path(self.name)}: tensor '{self.name}' has codes {int(codes.min())} to "
                f"{int(codes.max())}: must be {-half} to {half - 1}"
            )
        digits = (codes.to(torch.int16) + (1 << (self.format.bits - 1))).to(torch.uint8)
        scales = self.of_groups("scale", start, stop)
        if self.format.scales.of_rows:
            ones, rows = of_rows(scales, self.shape[1] // self.format.group_size)
            return StoredRows(digits, ones, row_scales=rows)
        repeats = self.block[1] // self.format.group_size
        scales = scales.to(torch.float32 if self.why else torch.float16).repeat_interleave(repeats, 1)
        if self.format.scales.offset == "none":
            return StoredRows(digits, scales)
        lows = -self.of_groups("zero_point", start, stop).to(torch.float32 if self.why else torch.int16)
        lows = lows.repeat_interleave(repeats, 1)
        return StoredRows(digits, scales, lows=lows if self.why else lows.to(torch.int8))

    def of_groups(self, part: str, start: int, stop: int) -> Tensor:
        """Rows of a part that blocks have, a number for each group of columns."""
        rows = torch.arange(start, min(stop, self.shape[0])) // self.block[0]
        return self.files.read(f"{self.prefix}{part}")[rows]


@dataclass(frozen=True)
class PlainInt4(ExactWeight):
    """scale * code + zero, in groups of columns; two codes a byte, the even column in the low nibble."""

    group: int = 0

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        packed = self.files.read(f"{self.prefix}qdata")[start:stop].view(torch.uint8)
        digits = torch.stack([packed & 15, packed >> 4], -1).flatten(1) ^ 8
        scales = self._read("scale")[start:stop]
        if self.format.scales.of_rows:
            ones, rows = of_rows(scales, self.shape[1] // self.format.group_size)
            return StoredRows(digits, ones, row_scales=rows)
        scales = scales.to(torch.float32 if self.why else torch.float16)
        return StoredRows(digits, scales.repeat_interleave(self.group // self.format.group_size, 1))

    def values(self, start: int, stop: int) -> Tensor:
        zeros = self._read("zero_point")[start:stop].to(torch.float32)
        return super().values(start, stop) + zeros.repeat_interleave(self.group, 1)

    def _read(self, part: str) -> Tensor:
        return self.files.read(f"{self.prefix}{part}").T.contiguous()


def read_torchao(files: SafetensorsFiles, config: dict, model_type: str) -> tuple[dict[str, PackedWeight], list[str]]:
    """Returns the weights by name, and the names of their tensors. Errors: FileError; UnsupportedError by name"""
    weights: dict[str, PackedWeight] = {}
    parts = []
    for name, text in sorted(files.metadata().items()):
        described = _described(files, name, text)
        kind = described.get("_type")
        if kind is None or kind == "Tensor":
            continue
        if not isinstance(kind, str) or kind not in READERS:
            raise UnsupportedError(
                model_type, f"its tensor '{name}' is torchao's {kind}",
                f"Kinds that are read: {', '.join(READERS)}. Quantize with one of them, or export the unquantized "
                "checkpoint",
            )  # fmt: skip
        module, _, leaf = name.rpartition(".")
        prefix = f"{module}._{leaf}_"
        found = [other for other in files.names() if other.startswith(prefix)]
        if f"{prefix}{PRE_SCALE}" in found:
            raise UnsupportedError(
                model_type, f"its tensor '{name}' scales its inputs first ({PRE_SCALE})",
                "Export a checkpoint without SmoothQuant or AWQ of torchao, or the unquantized one",
            )  # fmt: skip
        weights[name] = READERS[kind](files, prefix, described)
        parts += found
    if not weights:
        raise FileError(
            f"{files.place}: the headers of its safetensors files describe no tensors of torchao, which "
            "quantization_config asks for; save it again with a transformers that writes them (5 or later)"
        )
    return weights, parts


def _described(files: SafetensorsFiles, name: str, text: str) -> dict:
    """What the header says of a tensor, nothing of what is no tensor. Errors: FileError"""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "_type" not in found:
        return {}
    if found["_type"] != "Tensor" and not isinstance(found.get("_data"), dict):
        fields = found.get("_data")
        raise FileError(f"{files.place}: metadata of tensor '{name}' has _data = {fields!r}: must be an object")
    return found


def _integers(files: SafetensorsFiles, prefix: str, described: dict) -> AffineIntegers:
    fields = described["_data"]
    qdata, scale, zeros = (f"{prefix}{part}" for part in ("qdata", "scale", "zero_point"))
    shape = expect(files, qdata, (None, None), torch.int8)
    target = fields.get("target_dtype") if described["_type"] != "Int8Tensor" else "int8"
    target = target.get("_data") if isinstance(target, dict) else target
    if not isinstance(target, str) or target not in INTEGERS:
        raise FileError(f"{files.path(qdata)}: target_dtype of '{qdata}' = {target!r}: must be int1 to int8")
    block = _block(files, qdata, fields, shape)
    blocks = tuple(size // each for size, each in zip(shape, block, strict=True))
    expect(files, scale, blocks, *SCALE_DTYPES)
    offset = "none"
    if zeros in files.names():
        expect(files, zeros, blocks, torch.int8, *SCALE_DTYPES)
        offset = "zero" if bool(files.read(zeros).any()) else "none"
    bits = max(INTEGERS[target], 2)  # tiles with float16 scales have no fewer
    format, why = group_format(bits, block[1], shape[1], files.read(scale), scale, offset)
    if offset == "zero" and not why:
        lows = files.read(zeros).to(torch.float32)
        fits = bool((lows == lows.round()).all()) and lows.min() >= -127 and lows.max() <= 128
        why = "" if fits else f"tensor '{zeros}' has zero points that no byte holds: tiles hold -127 to 128"
    if why:
        format = StoredFormat(bits, block[1], TileScales(block[1], offset))
    kind = f"torchao {target}"
    average = bits + 8 * files.meta(scale).itemsize / (block[0] * block[1])
    return AffineIntegers(
        files, prefix, qdata, shape, kind, average, format, block=block, bytes_bits=INTEGERS[target], why=why
    )


def _int4(files: SafetensorsFiles, prefix: str, described: dict) -> PlainInt4:
    qdata, scale, zeros = (f"{prefix}{part}" for part in ("qdata", "scale", "zero_point"))
    rows, half = expect(files, qdata, (None, None), torch.int8, torch.uint8)
    columns = 2 * half
    high, group = _block(files, qdata, described["_data"], (rows, columns))
    if high != 1:
        raise FileError(f"{files.path(qdata)}: block_size of '{qdata}' = {[high, group]}: must be [1, columns]")
    expect(files, scale, (columns // group, rows), *SCALE_DTYPES)
    expect(files, zeros, (columns // group, rows), *SCALE_DTYPES)
    format, why = group_format(4, group, columns, files.read(scale), scale, "none")
    if bool(files.read(zeros).any()):
        why = f"tensor '{zeros}' is added to codes: tiles hold zero points that are integers"
    if why:
        format = StoredFormat(4, group, TileScales(group))
    average = 4 + 32 / group
    return PlainInt4(files, prefix, qdata, (rows, columns), "torchao int4", average, format, group=group, why=why)


def _float8(files: SafetensorsFiles, prefix: str, described: dict) -> PackedWeight:
    qdata = f"{prefix}qdata"
    shape = expect(files, qdata, (None, None), torch.float8_e4m3fn)
    per_tensor = described["_data"].get("block_size") in (None, [])
    block = None if per_tensor else _block(files, qdata, described["_data"], shape)
    return float8_weight(files, qdata, f"{prefix}scale", block)


def _block(files: SafetensorsFiles, name: str, fields: dict, shape: tuple[int, ...]) -> tuple[int, int]:
    place = f"{files.path(name)}: block_size of '{name}'"
    block = block_sizes(fields.get("block_size"), place)
    if any(size % each for size, each in zip(shape, block, strict=True)):
        raise FileError(f"{place} = {list(block)}: must divide {list(shape)}")
    return block


READERS = {
    "Int8Tensor": _integers, "IntxUnpackedToInt8Tensor": _integers, "Int4Tensor": _int4, "Float8Tensor": _float8,
}  # fmt: skip
