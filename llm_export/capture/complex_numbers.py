"""Complex numbers as pairs of real tensors, because no instruction computes with complex ones.

Some classes rotate queries and keys by a product of complex numbers. While a module is traced, the functions of torch
that make complex tensors give pairs, which offer what such classes do with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Pairs:
    real: Tensor
    imag: Tensor

    def map(self, function: Callable[[Tensor], Tensor]) -> Pairs:
        return Pairs(function(self.real), function(self.imag))

    def __getattr__(self, name: str) -> Callable[..., Pairs]:
        """Methods that move or copy elements work on both parts."""
        if name not in MOVES:
            raise AttributeError(f"a complex tensor's '{name}'")
        return lambda *args, **kwargs: self.map(lambda part: getattr(part, name)(*args, **kwargs))

    def __getitem__(self, index) -> Pairs:
        return self.map(lambda part: part[index])

    def __mul__(self, other: Pairs | Tensor | float) -> Pairs:
        if not isinstance(other, Pairs):
            return self.map(lambda part: part * other)
        real = self.real * other.real - self.imag * other.imag
        return Pairs(real, self.imag * other.real + self.real * other.imag)

    __rmul__ = __mul__

    def to(self, *args, **kwargs) -> Pairs:
        return self  # every number is float32 on one device

    @property
    def shape(self) -> torch.Size:
        return self.real.shape

    @property
    def device(self) -> torch.device:
        return self.real.device


MOVES = {"contiguous", "expand", "flatten", "repeat", "reshape", "squeeze", "transpose", "unsqueeze", "view"}


def view_as_complex(x: Tensor) -> Pairs:
    """x: [.., N, 2]"""
    columns = x.flatten(-2)
    return Pairs(columns[..., ::2], columns[..., 1::2])


def view_as_real(pairs: Pairs) -> Tensor:
    return torch.stack((pairs.real, pairs.imag), dim=-1)


@contextlib.contextmanager
def as_pairs() -> Iterator[None]:
    """Inside, torch's functions that make complex tensors of real ones, and back, work on pairs."""
    original_ones = torch.ones_like
    ones: dict[int, Tensor] = {}  # by id; kept, so that no other tensor gets the id

    def ones_like(*args, **kwargs) -> Tensor:
        made = original_ones(*args, **kwargs)
        ones[id(made)] = made
        return made

    def polar(size: Tensor, angle: Tensor) -> Pairs:
        parts = Pairs(angle.cos(), angle.sin())
        return parts if id(size) in ones else parts * size

    functions = {
        "ones_like": ones_like, "polar": polar, "view_as_complex": view_as_complex, "view_as_real": view_as_real,
    }  # fmt: skip
    originals = {name: getattr(torch, name) for name in functions}
    for name, function in functions.items():
        setattr(torch, name, function)
    try:
        yield
    finally:
        for name, function in originals.items():
            setattr(torch, name, function)
