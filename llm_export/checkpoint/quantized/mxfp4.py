"""MXFP4 experts, as gpt-oss has them: codes of E2M1 and exponents in two tensors.

Source: transformers' integrations/mxfp4.py, convert_moe_packed_tensors
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from llm_export.checkpoint.quantized.packed import ExactWeight, PackedWeight, expect
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import FileError
from llm_export.program.specs import StoredAs, StoredRows
from llm_export.program.stored import FP4_FORMAT, exponents_fit, fp4_rows

GROUP = 32
BIAS = 128  # of the exponent, for codes that stand for twice their value


@dataclass(frozen=True)
class Fp4Experts(ExactWeight):
    """[E, K, N] in the module, [E, N, K / 32, 16] in the file."""

    def stored_as(self) -> StoredAs:
        return replace(super().stored_as(), is_transposed=True)

    def stored_rows(self, start: int, stop: int) -> StoredRows:
        return fp4_rows(*self._parts(start, stop))

    def fits(self) -> bool:
        experts, _, rows = self.shape
        return all(exponents_fit(*self._parts(i * rows, (i + 1) * rows)) for i in range(experts))

    def _parts(self, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        packed = self.files.read(f"{self.prefix}_blocks").flatten(0, 1)[start:stop]
        digits = torch.stack([packed & 15, packed >> 4], -1).flatten(1)
        exponents = self.files.read(f"{self.prefix}_scales").flatten(0, 1)[start:stop].to(torch.int16) - BIAS
        return digits, exponents


def read_mxfp4(files: SafetensorsFiles, config: dict, model_type: str) -> tuple[dict[str, PackedWeight], list[str]]:
    """Returns the weights by name, and the names of their tensors. Errors: FileError"""
    weights: dict[str, PackedWeight] = {}
    parts = []
    for name in sorted(files.names()):
        prefix, found, _ = name.rpartition("_blocks")
        if not found or not name.endswith("_blocks"):
            continue
        experts, rows, groups, _ = expect(files, name, (None, None, None, GROUP // 2), torch.uint8)
        expect(files, f"{prefix}_scales", (experts, rows, groups), torch.uint8)
        shape = (experts, groups * GROUP, rows)
        weight = Fp4Experts(files, prefix, name, shape, "MXFP4", 4 + 8 / GROUP, FP4_FORMAT)
        if not weight.fits():
            raise FileError(
                f"{files.path(name)}: tensor '{prefix}_scales': exponents of a row must be at most 39 apart"
            )
        weights[prefix] = weight
        parts += [name, f"{prefix}_scales"]
    if not weights:
        raise FileError(f"{files.place}: has no tensor '*_blocks', which quantization_config asks for")
    return weights, parts
