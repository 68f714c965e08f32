"""Weights that the checkpoint stores quantized: what their numbers stand for."""

from __future__ import annotations

import torch
from torch import Tensor

from llm_export.program.specs import StoredFormat, StoredRows


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
