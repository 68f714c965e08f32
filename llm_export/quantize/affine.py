"""Symmetric group quantisation of weights, one block of rows at a time.

Of 2 to 8 bits, codes and scales equal those of torchao's `IntxWeightOnlyConfig` and
`Int8DynamicActivationIntxWeightConfig` with `PerGroup(group_size)`, symmetric mapping and
`weight_scale_dtype=torch.float16`, applied to the float32 weight.
"""

from __future__ import annotations

import torch
from torch import Tensor

from llm_export.errors import FileError
from llm_export.program.formats import FORMATS
from llm_export.quantize.torchao_quiet import choose_qparams_affine, mapping_symmetric, quantize_affine


def quantize_rows(rows: Tensor, bits: int, group_size: int, name: str = "weight") -> tuple[Tensor, Tensor]:
    """Quantises whole rows.

    rows: floating point [N, K], K a multiple of group_size
    Returns: codes int8 [N, K] and scales float16 [N, K / group_size]
    Errors: FileError if a value is not finite or its scale does not fit float16.
    """
    rows = rows.to(torch.float32).contiguous()
    codes, scales = _signs(rows, group_size) if bits == 1 else _by_torchao(rows, bits, group_size)
    if not bool(torch.isfinite(scales).all()):
        raise FileError(f"{name}: holds NaN, infinity or values too large for float16 scales; they cannot be quantised")
    return codes, scales


def _signs(rows: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """1 bit: the sign of a weight times the mean of |w| in its group, which leaves the least squared error.

    Source: arXiv 1603.05279 section 3.1
    """
    scales = rows.abs().unflatten(-1, (-1, group_size)).mean(-1, dtype=torch.float64)
    return torch.where(rows < 0, -1, 1).to(torch.int8), scales.to(torch.float16)


def _by_torchao(rows: Tensor, bits: int, group_size: int) -> tuple[Tensor, Tensor]:
    """Source: torchao quant_primitives choose_qparams_affine, quantize_affine"""
    block = (1, group_size)
    limits = {"quant_min": FORMATS[bits].code_min, "quant_max": FORMATS[bits].code_max}
    scales, zeros = choose_qparams_affine(
        rows, mapping_symmetric, block, torch.int8, zero_point_dtype=torch.int8, keepdim=True, **limits
    )
    scales = scales.to(torch.float16)
    codes = quantize_affine(rows, block, scales, zeros, torch.int8, **limits)
    # torchao divides by the scale in float16, which overflows below 2^-16: there, divide in float32 instead.
    tiny = scales < 2.0**-16
    if bool(tiny.any()):
        groups = rows.view(*scales.shape, group_size)[tiny]
        divisor = scales[tiny].to(torch.float32)[:, None]
        exact = torch.where(divisor > 0, torch.round(groups / divisor), 0.0).clamp(**_clamp(limits))
        codes.view(*scales.shape, group_size)[tiny] = exact.to(torch.int8)
    return codes, scales


def _clamp(limits: dict[str, int]) -> dict[str, int]:
    return {"min": limits["quant_min"], "max": limits["quant_max"]}


def dequantize_rows(codes: Tensor, scales: Tensor) -> Tensor:
    """Returns scale * code, float32 [N, K]; codes int8 [N, K], scales float16 [N, K / group_size]."""
    groups = codes.view(*scales.shape, -1).to(torch.float32) * scales.to(torch.float32)[..., None]
    return groups.view(codes.shape)
