"""What products of codes give, to the bit."""

from __future__ import annotations

import torch


def int8_product(x: torch.Tensor, weight, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """docs/ops.md to the bit, "Numerics of activations: int8"."""
    low, high = x.amin(-1, True).clamp(max=0), x.amax(-1, True).clamp(min=0)
    scale = ((high - low) / 255).clamp(min=2.0**-126)
    zero = (-128 - (low / scale).round()).clamp(-128, 127)
    q = ((x * (1 / scale)).round() + zero).clamp(-128, 127)
    per_column = weight.multipliers.to(torch.int64).repeat_interleave(x.shape[-1] // weight.multipliers.shape[1], 1)
    exact = (q - zero).to(torch.int64) @ (per_column * weight.codes.to(torch.int64)).T
    return scale * (weight.scales.flatten() * exact.to(torch.float32)) + bias + residual


SIZES = [(4, 32, 35, 96), (4, 64, 17, 192), (4, 256, 48, 512), (1, 32, 16, 64), (2, 64, 17, 128), (3, 64, 17, 128),
         (5, 32, 9, 96), (6, 32, 40, 96), (7, 128, 33, 256), (8, 128, 33, 256)]  # fmt: skip
