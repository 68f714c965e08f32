"""Weights whose numbers no tiles hold: only what they stand for can be had.

Source: transformers' finegrained_fp8.py and compressed-tensors for float8; bitsandbytes' functional.py for 4 bits
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.packed import PackedWeight, expect
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError
from llm_export.program.specs import StoredAs, StoredRows


@dataclass(frozen=True)
class Float8Weight:
    """E4M3 with a scale for the weight, a row, or a block of rows and columns."""

    files: SafetensorsFiles
    name: str
    shape: tuple[int, ...]
    scale: str  # tensor: [], [1], [N, 1] or [N / block, K / block]
    block: tuple[int, int] | None = None

    def stored_as(self) -> StoredAs:
        return StoredAs("FP8", 8.0, None)

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        raise NotImplementedError

    def values(self, start: int, stop: int) -> Tensor:
        rows = self.files.read(self.name)[start:stop].to(torch.float32)
        scale = self.files.read(self.scale).to(torch.float32)
        if self.block is not None:
            scale = scale[torch.arange(start, min(stop, self.shape[0])) // self.block[0]]
            scale = scale.repeat_interleave(self.block[1], 1)[:, : self.shape[1]]
        elif scale.numel() > 1:
            scale = scale.reshape(-1, 1)[start:stop]
        return rows * scale


def read_float8(files: SafetensorsFiles, config: dict, model_type: str) -> tuple[dict[str, PackedWeight], list[str]]:
    """Reads what transformers calls fp8 (DeepSeek's blocks). Errors: FileError"""
    block = config.get("weight_block_size")
    if block is not None and not (
        isinstance(block, list) and len(block) == 2 and all(isinstance(b, int) and b > 0 for b in block)
    ):
        raise FileError(
            f"{files.place}/config.json: quantization_config.weight_block_size = {block!r}: must be two sizes"
        )
    weights: dict[str, PackedWeight] = {}
    parts = []
    names = set(files.names())
    for scale in sorted(names):
        prefix, found, _ = scale.rpartition(".weight_scale")
        if not found or scale.removeprefix(f"{prefix}.weight_scale") not in ("", "_inv"):
            continue
        name = f"{prefix}.weight"
        shape = expect(files, name, (None, None), torch.float8_e4m3fn)
        of_blocks = tuple(block) if block is not None and files.meta(scale).dim() == 2 else None
        if of_blocks is not None:
            expect(files, scale, tuple(-(-size // each) for size, each in zip(shape, of_blocks, strict=True)))
        weights[name] = Float8Weight(files, name, shape, scale, of_blocks)
        parts += [name, scale, f"{prefix}.input_scale", f"{prefix}.activation_scale"]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.weight_scale_inv', which quantization_config asks for")
    return weights, parts


@dataclass(frozen=True)
class FourBitWeight:
    """Codes into 16 floats, with a scale for each block of consecutive elements, which may be quantized too."""

    files: SafetensorsFiles
    name: str
    shape: tuple[int, ...]
    block: int

    def stored_as(self) -> StoredAs:
        return StoredAs("bitsandbytes 4-bit", 4 + 32 / self.block, None)

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        raise NotImplementedError

    def values(self, start: int, stop: int) -> Tensor:
        columns = self.shape[1]
        first, last = start * columns, min(stop, self.shape[0]) * columns
        low, high = first // self.block * self.block, -(-last // self.block) * self.block
        packed = self.files.read(self.name).flatten()[low // 2 : -(-high // 2)].long()
        codes = torch.stack([packed >> 4, packed & 15], 1).flatten()
        numbers = self.files.read(f"{self.name}.quant_map")[codes]
        scales = self._scales()[low // self.block : high // self.block].repeat_interleave(self.block)
        return (numbers * scales[: len(numbers)])[first - low : last - low].view(-1, columns)

    def _scales(self) -> Tensor:
        scales = self.files.read(f"{self.name}.absmax")
        if scales.dtype != torch.uint8:
            return scales.to(torch.float32)
        state = _state(self.files, self.name)
        nested = self.files.read(f"{self.name}.nested_absmax").repeat_interleave(state["nested_blocksize"])
        return (
            self.files.read(f"{self.name}.nested_quant_map")[scales.long()] * nested[: len(scales)]
            + state["nested_offset"]
        )


def _state(files: SafetensorsFiles, name: str) -> dict:
    key = next((n for n in files.names() if n.startswith(f"{name}.quant_state.bitsandbytes__")), None)
    try:
        state = json.loads(bytes(files.read(key).tolist())) if key is not None else None
    except ValueError:
        state = None
    if (
        not isinstance(state, dict)
        or not isinstance(state.get("shape"), list)
        or not isinstance(state.get("blocksize"), int)
    ):
        raise FileError(
            f"{files.path(name)}: tensor '{name}.quant_state.bitsandbytes__*': must be JSON with shape and blocksize"
        )
    return state


def read_bitsandbytes(
    files: SafetensorsFiles, config: dict, model_type: str
) -> tuple[dict[str, PackedWeight], list[str]]:
    """Reads nf4 and fp4. Errors: FileError"""
    if not config.get("load_in_4bit"):
        raise FileError(
            f"{files.place}/config.json: quantization_config.load_in_4bit = False: must be true; int8 is not read"
        )
    weights: dict[str, PackedWeight] = {}
    parts = []
    names = list(files.names())
    for name in names:
        prefix, found, _ = name.rpartition(".absmax")
        if not found:
            continue
        state = _state(files, prefix)
        weights[prefix] = FourBitWeight(files, prefix, tuple(state["shape"]), state["blocksize"])
        parts += [prefix, *(other for other in names if other.startswith(f"{prefix}."))]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.absmax', which quantization_config asks for")
    return weights, parts
