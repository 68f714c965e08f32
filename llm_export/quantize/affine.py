"""Symmetric group quantisation of weights, one block of rows at a time: docs/quantization.md says how and why.

A weight is scale[row] * multiplier[row, group] * code; codes are those of torchao's `quantize_affine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from llm_export.capture.hadamard import hadamard
from llm_export.errors import FileError
from llm_export.program.formats import FORMATS
from llm_export.program.specs import WeightSpec
from llm_export.quantize.torchao_quiet import quantize_affine

# Products with int8 inputs are added up in 32 bits, and an input less its zero point is at most 255 in magnitude.
MAX_SUM = (2**31 - 1) // 255
SMALLEST_SCALE = 2.0**-126
HEADROOM = 1.03  # rounding to codes may make a sum larger than that of the weights
# By bits: factors that are tried on the scale of which the largest weight is a whole code. With few bits, finer steps
# gain more than clips cost; with many, what a rounded multiplier clips costs more than coarser steps.
TRIED = {
    1: (1.0,), 2: (1.1, 1.0, 0.9, 0.8, 0.7, 0.62), 3: (1.07, 1.0, 0.93, 0.86, 0.79, 0.72), 4: (1.07, 1.0, 0.93, 0.86),
    5: (1.03, 1.0, 0.95, 0.9), 6: (1.03, 1.0, 0.95, 0.9), 7: (1.015, 1.0), 8: (1.015, 1.0),
}  # fmt: skip
# The same where a row has one scale: the largest of many weights lies farther out.
TRIED_OF_ROWS = {
    2: (1.0, 0.8, 0.65, 0.55, 0.47, 0.4, 0.34, 0.29), 3: (1.0, 0.85, 0.75, 0.66, 0.58, 0.51, 0.45),
    4: (1.0, 0.93, 0.86, 0.79, 0.72, 0.65, 0.58), 5: (1.0, 0.93, 0.86, 0.79),
}  # fmt: skip


class QuantizedWeight(NamedTuple):
    """Whole rows of a weight.

    codes: int8 [N, K], of 1 bit only -1 and 1   multipliers: int8 [N, K / group_size]   scales: float32 [N]
    """

    codes: Tensor
    multipliers: Tensor
    scales: Tensor

    @property
    def shape(self) -> torch.Size:
        return self.codes.shape

    def rows(self, start: int, stop: int) -> QuantizedWeight:
        return QuantizedWeight(*(part[start:stop] for part in self))

    def times(self, factor: float) -> QuantizedWeight:
        return self._replace(scales=self.scales * factor)

    def group_scales(self) -> Tensor:
        """Returns scale * multiplier, float32 [N, K / group_size]."""
        return self.multipliers * self.scales[:, None]

    def dequantize(self) -> Tensor:
        """Returns scale * (multiplier * code), rounded once: float32 [N, K]."""
        groups = self.codes.view(*self.multipliers.shape, -1) * self.multipliers[..., None].to(torch.int32)
        return (groups * self.scales[:, None, None]).view(self.codes.shape)


def matrix_name(source: str, index: int) -> str:
    """Returns the name of one matrix of a stack, such as an expert: it is quantised and kept by itself."""
    return f"{source}[{index}]"


def joined(parts: Sequence[QuantizedWeight]) -> QuantizedWeight:
    """Returns the rows of all parts."""
    return parts[0] if len(parts) == 1 else QuantizedWeight(*map(torch.cat, zip(*parts, strict=True)))


def quantize_for(spec: WeightSpec, rows: Tensor) -> QuantizedWeight:
    """Quantises whole rows of a weight as its spec says. Errors: as quantize_rows"""
    if spec.is_rotated:
        rows = hadamard(rows.to(torch.float32))
    return quantize_rows(rows, spec.bits, spec.group_size, spec.name, per_channel=spec.per_channel, signed=spec.signed)


def quantize_rows(
    rows: Tensor, bits: int, group_size: int, name: str = "weight", *, per_channel: bool = False, signed: bool = True
) -> QuantizedWeight:
    """Quantises whole rows.

    rows: floating point [N, K], K a multiple of group_size
    per_channel: every multiplier is 1, so that a row is codes with one scale (0 in rows of zeros)
    signed: a multiplier is negative where the largest weight of its group is positive, so that this weight gets the
        code of the largest magnitude, which is negative
    Errors: FileError if a value is not finite.
    """
    rows = rows.to(torch.float32).contiguous()
    if not bool(torch.isfinite(rows).all()):
        raise FileError(f"{name}: holds NaN or infinity; it cannot be quantised")
    groups = rows.unflatten(-1, (-1, group_size))
    signs = _signs(groups) if signed and bits > 1 and not per_channel else None
    if per_channel:
        wanted = _clipped(rows[:, None], _wanted_scales(rows[:, None], bits), bits).expand(groups.shape[:-1])
    else:
        wanted = _wanted_scales(groups, bits, signs is not None)
        groups = groups if signs is None else groups * signs[..., None]
    scales = _row_scales(rows, wanted, 1 if per_channel else FORMATS[bits].max_multiplier)
    while True:
        multipliers = (wanted > 0).float() if per_channel else _multipliers(groups, wanted, scales, bits)
        multipliers = multipliers if signs is None else multipliers * signs
        codes = _codes(rows, multipliers * scales[:, None], bits)
        quantized = QuantizedWeight(codes, multipliers.to(torch.int8), scales)
        largest = _largest_sums(quantized)
        if bool((largest <= MAX_SUM).all()):
            return quantized
        scales = torch.where(largest > MAX_SUM, scales * (largest / MAX_SUM).to(torch.float32) * HEADROOM, scales)


def _signs(groups: Tensor) -> Tensor:
    """Returns -1 where the largest weight of a group is positive, else 1: float32 [N, K / group_size]."""
    return torch.where(groups.amax(-1) > -groups.amin(-1), -1.0, 1.0)


def _wanted_scales(groups: Tensor, bits: int, signed: bool = False) -> Tensor:
    """Returns the scale with which the largest weight of a group is not clipped, float32 [N, K / group_size].

    1 bit: the mean magnitude, which leaves the least squared error. Source: arXiv 1603.05279 section 3.1
    """
    magnitudes = groups.abs()
    if bits == 1:
        return magnitudes.mean(-1, dtype=torch.float64).to(torch.float32)
    return magnitudes.amax(-1) / (-FORMATS[bits].code_min if signed else FORMATS[bits].code_max + 0.5)


def _row_scales(rows: Tensor, wanted: Tensor, max_multiplier: int) -> Tensor:
    """Returns the finest scale of each row, float32 [N], for which neither multipliers nor sums become too large."""
    positive, negative = rows.clamp(min=0).sum(-1, dtype=torch.float64), rows.clamp(max=0).sum(-1, dtype=torch.float64)
    for_sums = (torch.maximum(positive, -negative) * (HEADROOM / MAX_SUM)).to(torch.float32)
    largest = wanted.amax(-1)
    scales = torch.maximum(largest / max_multiplier, for_sums).clamp(min=SMALLEST_SCALE)
    return torch.where(largest > 0, scales, 0.0)


def _clipped(rows: Tensor, wanted: Tensor, bits: int) -> Tensor:
    """Returns the scales that leave the least squared error of what is tried. rows: [N, 1, K]   others: [N, 1]"""
    candidates = torch.stack([wanted * part for part in TRIED_OF_ROWS.get(bits, (1.0,))])
    errors = torch.stack([_squared_error(rows, scales, bits) for scales in candidates])
    return candidates.gather(0, errors.argmin(0, keepdim=True))[0]


def _multipliers(groups: Tensor, wanted: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Returns whole numbers, float32 [N, K / group_size]: those that leave the least squared error of what is tried."""
    if len(TRIED[bits]) == 1:
        return _whole(wanted, scales, bits)
    best, least = None, None
    for part in TRIED[bits]:
        multipliers = _whole(wanted * part, scales, bits)
        error = _squared_error(groups, multipliers * scales[:, None], bits)
        best = multipliers if best is None else torch.where(error < least, multipliers, best)
        least = error if least is None else torch.minimum(error, least)
    return best


def _whole(wanted: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Returns the multipliers nearest to wanted scales; from 2 bits on at least 1, as 0 would lose a small group."""
    multipliers = torch.nan_to_num(torch.round(wanted / scales[:, None]))  # of a row of zeros: 0 / 0
    if bits > 1:
        multipliers = torch.where(wanted > 0, multipliers.clamp(min=1), multipliers)
    return multipliers.clamp(max=FORMATS[bits].max_multiplier)


def _squared_error(groups: Tensor, scales: Tensor, bits: int) -> Tensor:
    """groups: [N, K / group_size, group_size]   scales and result: [N, K / group_size]"""
    scales = torch.where(scales > 0, scales, 1.0)[..., None]
    codes = (groups * (1.0 / scales)).round_().clamp_(FORMATS[bits].code_min, FORMATS[bits].code_max)
    return codes.mul_(scales).sub_(groups).square_().sum(-1)


def _codes(rows: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Returns int8 [N, K] for scales [N, K / group_size]."""
    if bits == 1:
        return torch.where(rows < 0, -1, 1).to(torch.int8)
    scales = torch.where(scales == 0, 1.0, scales)  # of groups of zeros
    block = (1, rows.shape[1] // scales.shape[1])
    limits = {"quant_min": FORMATS[bits].code_min, "quant_max": FORMATS[bits].code_max}
    return quantize_affine(rows, block, scales, torch.zeros_like(scales, dtype=torch.int8), torch.int8, **limits)


def _largest_sums(weight: QuantizedWeight) -> Tensor:
    """Returns the larger of the sums of positive and of negative multiplier * code of each row, float64 [N]."""
    codes = weight.codes.view(*weight.multipliers.shape, -1)
    sums = [side.sum(-1, dtype=torch.int32) for side in (codes.clamp(min=0), codes.clamp(max=0))]
    above, below = (side * weight.multipliers.to(torch.int64) for side in sums)
    positive = (above.clamp(min=0) + below.clamp(min=0)).sum(-1)
    negative = (above.clamp(max=0) + below.clamp(max=0)).sum(-1)
    return torch.maximum(positive, -negative).to(torch.float64)
