"""BitNet checkpoints: weights of -1, 0 and 1 with one scale, packed or to be rounded to them.

Source: transformers' integrations/bitnet.py (unpack_weights, BitLinear, AutoBitLinear, WeightQuant)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from llm_export.checkpoint.quantized.float8 import SCALE_DTYPES
from llm_export.checkpoint.quantized.packed import ExactWeight, PackedWeight, expect, group_format, of_rows
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError, UnsupportedError
from llm_export.program.specs import StoredRows

PER_BYTE = 4
BITS = 2
EMBEDDINGS = ("embed_tokens.weight", "wte.weight")
HEAD = "lm_head"  # dense where the config does not name what is
LEAST_MEAN = 1e-5


@dataclass(frozen=True)
class PackedTernary(ExactWeight):
    """The first quarter of the rows is in the lowest bits of the file's rows, and so on; digits are code + 1."""

    scale: float = 1.0

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        rows = torch.arange(start, min(stop, self.shape[0]))
        quarter = self.shape[0] // PER_BYTE
        packed = self.files.read(self.name)[rows % quarter]
        digits = packed >> (2 * (rows // quarter)).to(torch.uint8)[:, None] & 3
        if bool((digits == 3).any()):
            raise FileError(f"{self.files.path(self.name)}: tensor '{self.name}' has digits of 3: must be 0 to 2")
        return _rows(digits + 1, self.scale, self)


@dataclass(frozen=True)
class RoundedTernary(ExactWeight):
    """What the forward pass rounds dense weights to: those of -1, 0 and 1 that are nearest in units of their mean."""

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        weight = self.files.read_rows(self.name, start, stop).float()
        digits = ((weight * self._scale).round().clamp(-1, 1) + 2).to(torch.uint8)
        # The quotient is rounded to the dtype of the weights.
        return _rows(digits, float((1 / self._scale).to(self.files.meta(self.name).dtype)), self)

    @cached_property
    def _scale(self) -> Tensor:
        return 1.0 / self.files.read(self.name).float().abs().mean().clamp(min=LEAST_MEAN)


def _rows(digits: Tensor, scale: float, weight: ExactWeight) -> StoredRows:
    ones, rows = of_rows(torch.full((len(digits), 1), scale), weight.shape[1] // weight.format.group_size)
    return StoredRows(digits, ones, row_scales=rows)


def read_bitnet(files: SafetensorsFiles, config: dict, model_type: str) -> tuple[dict[str, PackedWeight], list[str]]:
    """Returns the weights by name, and the names of their tensors. Errors: FileError; UnsupportedError by name"""
    place = f"{files.place}/config.json: quantization_config"
    linear_class, mode = config.get("linear_class", "bitlinear"), config.get("quantization_mode", "offline")
    if linear_class not in ("bitlinear", "autobitlinear"):
        raise FileError(f"{place}.linear_class = {linear_class!r}: must be bitlinear or autobitlinear")
    if mode not in ("offline", "online"):
        raise FileError(f"{place}.quantization_mode = {mode!r}: must be offline or online")
    if config.get("use_rms_norm"):
        raise UnsupportedError(
            model_type, "its BitNet linears normalize their inputs (use_rms_norm)",
            "Export a checkpoint with use_rms_norm false",
        )  # fmt: skip
    if linear_class == "autobitlinear" and mode == "online":
        return _online(files, config, place)
    weights: dict[str, PackedWeight] = {}
    parts = []
    for name in sorted(files.names()):
        prefix, _, leaf = name.rpartition(".")
        if leaf == "weight_scale":
            weights[f"{prefix}.weight"] = _packed(files, prefix, divides=linear_class == "bitlinear")
            parts.append(name)
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*.weight_scale', which quantization_config asks for")
    return weights, parts


def _packed(files: SafetensorsFiles, prefix: str, divides: bool) -> PackedTernary:
    """divides: whether results are divided by the scale, not multiplied with it. Errors: FileError"""
    name, scale = f"{prefix}.weight", f"{prefix}.weight_scale"
    quarter, columns = expect(files, name, (None, None), torch.uint8)
    expect(files, scale, tuple(files.meta(scale).shape), *SCALE_DTYPES)
    found = files.read(scale).float().flatten()
    number = (1 / found if divides else found)[:1]
    if found.numel() != 1 or not bool(number.isfinite().all()):
        raise FileError(
            f"{files.path(scale)}: tensor '{scale}' = {found.tolist()[:4]}: must be one number other than 0"
        )
    format, why = group_format(BITS, columns, columns, torch.ones(1, 1), scale, "none")
    return PackedTernary(
        files, prefix, name, (quarter * PER_BYTE, columns), "BitNet", BITS, format, scale=float(number), why=why
    )


def _online(files: SafetensorsFiles, config: dict, place: str) -> tuple[dict[str, PackedWeight], list[str]]:
    kept = config.get("modules_to_not_convert")
    kept = [HEAD] if kept is None else kept
    if not isinstance(kept, list) or not all(isinstance(name, str) and re.fullmatch(r"[\w.]+", name) for name in kept):
        raise FileError(f"{place}.modules_to_not_convert = {kept!r}: must be names of modules")
    weights: dict[str, PackedWeight] = {}
    for name in files.names():
        module, _, leaf = name.rpartition(".")
        dense = name.endswith(EMBEDDINGS) or any(f".{part}." in f".{module}." for part in kept)
        if leaf != "weight" or dense or files.meta(name).dim() != 2:
            continue
        rows, columns = expect(files, name, (None, None), *SCALE_DTYPES)
        format, why = group_format(BITS, columns, columns, torch.ones(1, 1), name, "none")
        weights[name] = RoundedTernary(files, module, name, (rows, columns), "BitNet", BITS, format, why=why)
    if not weights:
        raise FileError(f"{files.place}: has no weights of linears, which quantization_config asks for")
    return weights, []
