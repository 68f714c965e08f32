"""NVFP4 and MXFP4 of linears, and checkpoints of NVIDIA's Model Optimizer: codes of E2M1 in groups.

Source: compressed-tensors' nvfp4/base.py and mxfp4/base.py; modelopt's qtensor/nvfp4_tensor.py (NVFP4QTensor)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.float8 import float8_weight
from llm_export.checkpoint.quantized.packed import ExactWeight, PackedWeight, expect
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError, UnsupportedError
from llm_export.program.specs import StoredFormat, StoredRows, TileScales
from llm_export.program.stored import FP4_FORMAT, FP4_VALUES, exponents_fit, fp4_rows

GROUP = 16
NVFP4_FORMAT = StoredFormat(4, GROUP, TileScales(GROUP, of_rows=True, codebook=FP4_VALUES))
MXFP4_GROUP = 32
MXFP4_BIAS = 128  # of the exponent, for codes that stand for twice their value
LEAST_NORMAL = 2.0**-126
TILE_COLUMNS = 32
ALGORITHMS = ("NVFP4", "FP8")


@dataclass(frozen=True)
class Nvfp4Weight(ExactWeight):
    """code * scale of its group, which is float8, * scale of all."""

    scale: str = ""
    of_all: float = 1.0

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        digits = _digits(self.files.read(self.name)[start:stop])
        scales = self.files.read(self.scale)[start:stop].to(torch.float32) / 2  # codes stand for twice their value
        return StoredRows(digits, scales.to(torch.float16), row_scales=torch.full((len(digits),), self.of_all))


@dataclass(frozen=True)
class Mxfp4Weight(ExactWeight):
    """code * power of two of its group."""

    scale: str = ""

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        return fp4_rows(*self.parts(start, stop))

    def values(self, start: int, stop: int) -> Tensor:
        if not self.why:
            return super().values(start, stop)
        digits, exponents = self.parts(start, stop)
        codes = torch.tensor(FP4_VALUES, dtype=torch.float32)[digits.long()].unflatten(1, (exponents.shape[1], -1))
        return torch.ldexp(codes, exponents[..., None]).flatten(1)

    def parts(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        exponents = self.files.read(self.scale)[start:stop].to(torch.int16) - MXFP4_BIAS
        return _digits(self.files.read(self.name)[start:stop]), exponents


def _digits(packed: Tensor) -> Tensor:
    """The even column in the low nibble: uint8 [N, K]."""
    return torch.stack([packed & 15, packed >> 4], -1).flatten(1)


def nvfp4_weight(files: SafetensorsFiles, name: str, scale: str, of_all: str, divides: bool) -> Nvfp4Weight:
    """name: uint8 [N, K / 2]   scale: float8 [N, K / 16]   of_all: float32, which multiplies or divides scales

    Errors: FileError if a tensor is missing or not such
    """
    rows, half = expect(files, name, (None, None), torch.uint8)
    columns = 2 * half
    if columns % GROUP:
        raise FileError(f"{files.path(name)}: tensor '{name}' has {columns} columns: must be a multiple of {GROUP}")
    expect(files, scale, (rows, columns // GROUP), torch.float8_e4m3fn)
    if bool(files.read(scale).to(torch.float32).isnan().any()):
        raise FileError(f"{files.path(scale)}: tensor '{scale}' has scales that are no numbers: must be finite")
    expect(files, of_all, tuple(files.meta(of_all).shape) if of_all in files.names() else (), torch.float32)
    found = files.read(of_all).flatten()
    number = (1 / found if divides else found)[:1]
    if found.numel() != 1 or not bool(number.isfinite().all()) or float(number) < LEAST_NORMAL:
        raise FileError(f"{files.path(of_all)}: tensor '{of_all}' = {found.tolist()[:4]}: must be one number above 0")
    why = _whole_tiles(name, columns)
    return Nvfp4Weight(
        files, name.rpartition(".")[0], name, (rows, columns), "NVFP4", 4 + 8 / GROUP, NVFP4_FORMAT, scale=scale,
        of_all=float(number), why=why,
    )  # fmt: skip


def mxfp4_weight(files: SafetensorsFiles, name: str, scale: str) -> Mxfp4Weight:
    """name: uint8 [N, K / 2]   scale: uint8 [N, K / 32], exponents. Errors: FileError"""
    rows, half = expect(files, name, (None, None), torch.uint8)
    if 2 * half % MXFP4_GROUP:
        raise FileError(f"{files.path(name)}: tensor '{name}' has {2 * half} columns: must be a multiple of 32")
    expect(files, scale, (rows, 2 * half // MXFP4_GROUP), torch.uint8)
    weight = Mxfp4Weight(
        files, name.rpartition(".")[0], name, (rows, 2 * half), "MXFP4", 4 + 8 / MXFP4_GROUP, FP4_FORMAT, scale=scale
    )
    if exponents_fit(*weight.parts(0, rows)):
        return weight
    return replace(weight, why=f"tensor '{scale}' has exponents of a row far apart: tiles hold 39 powers of two")


def _whole_tiles(name: str, columns: int) -> str:
    return f"tensor '{name}' has {columns} columns: tiles hold multiples of 32" if columns % TILE_COLUMNS else ""


def read_modelopt(files: SafetensorsFiles, config: dict, model_type: str) -> tuple[dict[str, PackedWeight], list[str]]:
    """Reads NVFP4 and FP8. Errors: FileError; UnsupportedError by name"""
    algorithm = config.get("quant_algo")
    if algorithm not in ALGORITHMS:
        raise UnsupportedError(
            model_type, f"its weights are quantized by Model Optimizer with quant_algo {algorithm}",
            f"Algorithms that are read: {', '.join(ALGORITHMS)}. Export the unquantized checkpoint",
        )  # fmt: skip
    weights: dict[str, PackedWeight] = {}
    parts = []
    names = set(files.names())
    for scale in sorted(names):
        prefix, _, leaf = scale.rpartition(".")
        if leaf != "weight_scale":
            continue
        if f"{prefix}.pre_quant_scale" in names:
            raise UnsupportedError(
                model_type, f"its tensor '{prefix}.pre_quant_scale' scales inputs",
                "Export a checkpoint without AWQ of Model Optimizer, or the unquantized one",
            )  # fmt: skip
        name, of_all = f"{prefix}.weight", f"{prefix}.weight_scale_2"
        if algorithm == "NVFP4":
            weights[name] = nvfp4_weight(files, name, scale, of_all, divides=False)
        else:
            weights[name] = float8_weight(files, name, scale, None)
        parts += [scale, of_all, f"{prefix}.input_scale"]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.weight_scale', which quantization_config asks for")
    return weights, parts
