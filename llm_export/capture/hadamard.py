"""The rotation that `mote::linear` gives its input before it rounds it to int8: docs/quantization.md says why.

Rounding with one scale a token loses most where a few channels are much larger than the rest. A rotation spreads them
over all channels, and a linear whose rows are rotated likewise gives the same result. Source: QuaRot, arXiv 2404.00456.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def hadamard(x: Tensor) -> Tensor:
    """Rotates each row of x, float32 [.., K]; the dot product of two rows stays as it is.

    With P the largest power of two up to K: turns columns 0 .. P - 1, then K - P .. K - 1 if K is no power of two. A
    turn flips signs by the Rudin-Shapiro sequence and takes the Walsh-Hadamard transform in its natural order, divided
    by sqrt(P). Without the signs, the second turn would gather again what the first one spread.
    """
    for start, size in _turns(x.shape[-1]):
        part = _transform(x[..., start : start + size] * _signs(size))
        x = torch.cat((x[..., :start], part, x[..., start + size :]), dim=-1)
    return x


def inverse_hadamard(x: Tensor) -> Tensor:
    """Inverse of `hadamard`."""
    for start, size in reversed(_turns(x.shape[-1])):
        part = _transform(x[..., start : start + size]) * _signs(size)
        x = torch.cat((x[..., :start], part, x[..., start + size :]), dim=-1)
    return x


def _turns(columns: int) -> list[tuple[int, int]]:
    size = 1 << columns.bit_length() - 1
    return [(0, size)] if size == columns else [(0, size), (columns - size, size)]


@cache  # asked for once a block of rows
def _signs(count: int) -> Tensor:
    """The Rudin-Shapiro sequence: -1 where an index has an odd number of neighbouring ones in binary."""
    neighbours = torch.arange(count) & torch.arange(count) >> 1
    parity = torch.zeros(count, dtype=torch.int64)
    for bit in range(count.bit_length()):
        parity ^= neighbours >> bit & 1
    return 1.0 - 2.0 * parity


def _transform(x: Tensor) -> Tensor:
    """Neighbouring columns first, as the kernels do, so that bits are the same."""
    size, rows = x.shape[-1], x.shape[:-1]
    columns = x.reshape(-1, size).T.contiguous()  # whole columns are added, which is fast for all distances
    other = torch.empty_like(columns)
    distance = 1
    while distance < size:
        pairs, sums = (part.view(-1, 2, distance, part.shape[-1]) for part in (columns, other))
        torch.add(pairs[:, 0], pairs[:, 1], out=sums[:, 0])
        torch.sub(pairs[:, 0], pairs[:, 1], out=sums[:, 1])
        columns, other, distance = other, columns, 2 * distance
    columns *= torch.tensor(size, dtype=torch.float64).rsqrt().to(torch.float32)
    return columns.T.reshape(*rows, size)
