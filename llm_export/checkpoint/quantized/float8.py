"""Weights of float8, whose numbers no tiles hold: only what they stand for can be had.

Source: transformers' finegrained_fp8.py, compressed-tensors' naive_quantized.py
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.packed import PackedWeight, expect
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError
from llm_export.program.specs import StoredAs, StoredRows

SCALE_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


@dataclass(frozen=True)
class Float8Weight:
    """E4M3 with a scale for the weight, a row, or a block of rows and columns."""

    files: SafetensorsFiles
    name: str
    shape: tuple[int, ...]
    scale: str  # tensor: [], [1], [N], [N, 1] or [N / block, K / block]
    block: tuple[int, int] | None = None

    def stored_as(self) -> StoredAs:
        return StoredAs("FP8", 8.0, None, why=f"tensor '{self.name}' is float8_e4m3fn: tiles hold integers")

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
    if block is not None:
        block = block_sizes(block, f"{files.place}/config.json: quantization_config.weight_block_size")
    weights: dict[str, PackedWeight] = {}
    parts = []
    names = set(files.names())
    for scale in sorted(names):
        prefix, found, _ = scale.rpartition(".weight_scale")
        if not found or scale.removeprefix(f"{prefix}.weight_scale") not in ("", "_inv"):
            continue
        name = f"{prefix}.weight"
        weights[name] = float8_weight(files, name, scale, block if files.meta(scale).dim() == 2 else None)
        parts += [name, scale, f"{prefix}.input_scale", f"{prefix}.activation_scale"]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.weight_scale_inv', which quantization_config asks for")
    return weights, parts


def float8_weight(files: SafetensorsFiles, name: str, scale: str, block: tuple[int, int] | None) -> Float8Weight:
    """block: rows and columns that share a scale. Errors: FileError if a tensor is missing or not such"""
    shape = expect(files, name, (None, None), torch.float8_e4m3fn)
    if block is not None:
        sizes = tuple(-(-size // each) for size, each in zip(shape, block, strict=True))
        expect(files, scale, sizes, *SCALE_DTYPES)
        return Float8Weight(files, name, shape, scale, block)
    found = tuple(files.meta(scale).shape) if scale in files.names() else ()
    of_rows = (shape[0],) if len(found) == 1 else (shape[0], 1)
    expect(files, scale, found if found in ((), (1,), (1, 1)) else of_rows, *SCALE_DTYPES)
    return Float8Weight(files, name, shape, scale)


def block_sizes(found: object, place: str) -> tuple[int, int]:
    """Errors: FileError if it is none. place: the field"""
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(size, int) and size > 0 for size in found):
        raise FileError(f"{place} = {found!r}: must be two sizes")
    return found[0], found[1]
