"""Checkpoints of bitsandbytes: int8 rows, and 4-bit codes into tables that no tiles hold.

Source: bitsandbytes' functional.py (dequantize_4bit, int8_vectorwise_dequant), nn/modules.py (Linear8bitLt)
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.packed import ExactWeight, PackedWeight, expect, group_format, of_rows
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError
from llm_export.program.specs import StoredAs, StoredRows

INT8_SCALE = 127.0  # codes of a row reach it
STATE = "quant_state.bitsandbytes__"


@dataclass(frozen=True)
class Int8Rows(ExactWeight):
    """code * (largest magnitude of the row / 127)."""

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        digits = self.files.read(self.name)[start:stop].view(torch.uint8) ^ 128
        scales = self.files.read(f"{self.prefix}.SCB").flatten()[start:stop, None] / INT8_SCALE
        ones, rows = of_rows(scales, self.shape[1] // self.format.group_size)
        return StoredRows(digits, ones, row_scales=rows)


@dataclass(frozen=True)
class FourBitWeight:
    """Codes into 16 floats, with a scale for each block of consecutive elements, which may be quantized too."""

    files: SafetensorsFiles
    name: str
    shape: tuple[int, ...]
    state: dict

    def stored_as(self) -> StoredAs:
        why = f"tensor '{self.name}' has codes of {self.state['quant_type']}: tiles hold integers"
        return StoredAs("bitsandbytes 4-bit", 4 + 32 / self.state["blocksize"], None, why=why)

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        raise NotImplementedError

    def values(self, start: int, stop: int) -> Tensor:
        columns, block = self.shape[1], self.state["blocksize"]
        first, last = start * columns, min(stop, self.shape[0]) * columns
        low, high = first // block * block, -(-last // block) * block
        packed = self.files.read(self.name).flatten().view(torch.uint8)[low // 2 : -(-high // 2)].long()
        codes = torch.stack([packed >> 4, packed & 15], 1).flatten()
        numbers = self.files.read(f"{self.name}.quant_map")[codes]
        scales = self._scales()[low // block : high // block].repeat_interleave(block)
        return (numbers * scales[: len(numbers)])[first - low : last - low].view(-1, columns)

    def _scales(self) -> Tensor:
        scales = self.files.read(f"{self.name}.absmax")
        if scales.dtype != torch.uint8:
            return scales.to(torch.float32)
        nested = self.files.read(f"{self.name}.nested_absmax").repeat_interleave(self.state["nested_blocksize"])
        table = self.files.read(f"{self.name}.nested_quant_map")
        return table[scales.long()] * nested[: len(scales)] + self.state["nested_offset"]


def read_bitsandbytes(
    files: SafetensorsFiles, config: dict, model_type: str
) -> tuple[dict[str, PackedWeight], list[str]]:
    """Reads int8, nf4 and fp4. Errors: FileError"""
    if config.get("load_in_4bit"):
        leaf, read = "absmax", _four_bits
    elif config.get("load_in_8bit"):
        leaf, read = "SCB", _int8
    else:
        raise FileError(
            f"{files.place}/config.json: quantization_config.load_in_4bit = {config.get('load_in_4bit')!r}, "
            f"load_in_8bit = {config.get('load_in_8bit')!r}: one of them must be true"
        )
    weights: dict[str, PackedWeight] = {}
    parts = []
    names = list(files.names())
    for name in sorted(names):
        prefix, found, _ = name.rpartition(f".{leaf}")
        if not found or not name.endswith(f".{leaf}"):
            continue
        weight, its_parts = read(files, prefix)
        weights[weight.name] = weight
        parts += its_parts
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.{leaf}', which quantization_config asks for")
    return weights, parts


def _int8(files: SafetensorsFiles, prefix: str) -> tuple[Int8Rows, list[str]]:
    name, scale, layout = f"{prefix}.weight", f"{prefix}.SCB", f"{prefix}.weight_format"
    rows, columns = expect(files, name, (None, None), torch.int8)
    expect(files, scale, (rows,), torch.float32)
    if layout in files.names() and files.read(layout).flatten().tolist() != [0]:
        found = files.read(layout).flatten().tolist()
        raise FileError(f"{files.path(layout)}: tensor '{layout}' = {found}: must be [0], whole rows")
    format, why = group_format(8, columns, columns, files.read(scale)[:, None], scale, "none")
    weight = Int8Rows(files, prefix, name, (rows, columns), "bitsandbytes int8", 8 + 32 / columns, format, why=why)
    return weight, [name, scale, layout]


def _four_bits(files: SafetensorsFiles, name: str) -> tuple[FourBitWeight, list[str]]:
    expect(files, name, (None, None))
    state = _state(files, name)
    rows, columns = state["shape"]
    blocks = -(-rows * columns // state["blocksize"])
    expect(files, f"{name}.quant_map", (16,), torch.float32)
    scales = f"{name}.absmax"
    expect(files, scales, (blocks,), torch.uint8, torch.float32, torch.float16, torch.bfloat16)
    if files.meta(scales).dtype == torch.uint8:
        expect(files, f"{name}.nested_absmax", (-(-blocks // state["nested_blocksize"]),), torch.float32)
        expect(files, f"{name}.nested_quant_map", (256,), torch.float32)
    meta = files.meta(name)
    if meta.numel() * meta.itemsize != -(-rows * columns // 2):
        raise FileError(
            f"{files.path(name)}: tensor '{name}' has {meta.numel() * meta.itemsize} bytes: must have "
            f"{-(-rows * columns // 2)} for 4 bits of {rows} x {columns}"
        )
    parts = [name, *(other for other in files.names() if other.startswith(f"{name}."))]
    return FourBitWeight(files, name, (rows, columns), state), parts


def _state(files: SafetensorsFiles, name: str) -> dict:
    """Returns what the file says of the weight, numbers checked. Errors: FileError"""
    key = next((n for n in files.names() if n.startswith(f"{name}.{STATE}")), None)
    try:
        state = json.loads(bytes(files.read(key).tolist())) if key is not None else None
    except (ValueError, TypeError):
        state = None
    if not isinstance(state, dict):
        raise FileError(f"{files.path(f'{name}.absmax')}: tensor '{name}.{STATE}*': must be there, and JSON")
    state = {"quant_type": key.removeprefix(f"{name}.{STATE}"), "nested_blocksize": 256, "nested_offset": 0.0} | state
    shape = state.get("shape")
    checks = {
        "shape": isinstance(shape, list) and len(shape) == 2 and all(_is_size(size) for size in shape),
        "blocksize": _is_size(state.get("blocksize")) and state["blocksize"] % 2 == 0,
        "nested_blocksize": _is_size(state["nested_blocksize"]),
        "nested_offset": isinstance(state["nested_offset"], (int, float)) and math.isfinite(state["nested_offset"]),
    }
    for field, fits in checks.items():
        if not fits:
            raise FileError(
                f"{files.path(key)}: tensor '{key}' has {field} = {state.get(field)!r}: must be {_FIELDS[field]}"
            )
    return state


_FIELDS = {
    "shape": "two sizes", "blocksize": "an even number above 0", "nested_blocksize": "a number above 0",
    "nested_offset": "a finite number",
}  # fmt: skip


def _is_size(value: object) -> bool:
    return isinstance(value, int) and 0 < value < 1 << 31
