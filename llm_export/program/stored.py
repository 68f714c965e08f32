"""Weights that the checkpoint stores quantized: what their numbers stand for."""

from __future__ import annotations

import torch
from torch import Tensor

from llm_export.program.specs import StoredFormat, StoredRows, TileScales

# Twice what the codes of E2M1 stand for, in groups of 32 with powers of two. Source: OCP Microscaling Formats (MX) 1.0
FP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
FP4_FORMAT = StoredFormat(4, 32, TileScales(32, of_rows=True, codebook=FP4_VALUES))
HALF_EXPONENTS = (-24, 15)  # powers of two that float16 holds
FLOAT_EXPONENTS = (-126, 100)  # that the scale of a row may be


def dequantize(rows: StoredRows, format: StoredFormat) -> Tensor:
    """Returns float32 [N, K], rounded as the kernels do: the product, the sum, and the scale of a row."""
    groups = rows.digits.shape[1] // format.group_size
    scales = rows.scales.to(torch.float32).repeat_interleave(groups // rows.scales.shape[1], 1)
    low = None
    if rows.minimums is not None:
        low = rows.minimums.to(torch.float32).repeat_interleave(groups // rows.minimums.shape[1], 1)
        low = low if rows.lows is None else low * rows.lows
    elif rows.lows is not None:
        low = scales * rows.lows
    scales = scales if rows.multipliers is None else scales * rows.multipliers
    values = (codes(rows, format).to(torch.float32).unflatten(1, (groups, -1))) * scales[..., None]
    values = (values if low is None else values + low[..., None]).flatten(1)
    return values if rows.row_scales is None else values * rows.row_scales[:, None]


def codes(rows: StoredRows, format: StoredFormat) -> Tensor:
    """Returns what is multiplied with a scale: int16 [N, K]."""
    if format.scales.codebook:
        return torch.tensor(format.scales.codebook, dtype=torch.int16)[rows.digits.long()]
    return rows.digits.to(torch.int16) - (0 if format.scales.offset == "minimum" else 1 << (format.bits - 1))


def exponents_fit(digits: Tensor, exponents: Tensor) -> bool:
    """Whether fp4_rows is exact."""
    exponents = _without_zeros(digits, exponents)
    most, least = exponents.amax(-1), exponents.amin(-1)
    spread = HALF_EXPONENTS[1] - HALF_EXPONENTS[0]
    low = FLOAT_EXPONENTS[0] + HALF_EXPONENTS[0]
    return bool(((most - least <= spread) & (least >= low) & (most <= FLOAT_EXPONENTS[1])).all())


def fp4_rows(digits: Tensor, exponents: Tensor) -> StoredRows:
    """Rows of FP4_FORMAT. digits: uint8 [N, K]   exponents: [N, K / 32], of what FP4_VALUES are multiplied with"""
    exponents = _without_zeros(digits, exponents)
    of_rows = (exponents.amax(-1, keepdim=True) - HALF_EXPONENTS[1]).clamp(min=FLOAT_EXPONENTS[0])
    least = (exponents - of_rows).clamp(min=HALF_EXPONENTS[0])
    scales = torch.ldexp(torch.ones(least.shape), least).to(torch.float16)
    return StoredRows(digits, scales, row_scales=torch.ldexp(torch.ones(len(of_rows)), of_rows[:, 0]))


def _without_zeros(digits: Tensor, exponents: Tensor) -> Tensor:
    """Exponents, those of groups of zeros replaced by the largest of their row."""
    is_zero = (digits.unflatten(1, (exponents.shape[1], -1)) & 7 == 0).all(-1)
    largest = exponents.masked_fill(is_zero, FLOAT_EXPONENTS[0]).amax(-1, keepdim=True)
    return torch.where(is_zero, largest, exponents)
