"""What Core ML has beside the ops that it shares with others, and what it must be told in other words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..tensor_ops.emitter import FLOAT, HALF, Author, Emitter, Tensor
from ..tensor_ops.refusals import Refusal

MAX_RANK = 5


def _merged_repeats(shape: Sequence[int], repeats: Sequence[int]) -> tuple[list[int], list[int]]:
    """Sizes and repeats of axes, of which those that are not repeated are merged with those before them."""
    sizes, times = [1], [1]
    for size, repeat in zip(shape, repeats, strict=True):
        if repeat == times[-1] == 1:
            sizes[-1] *= size
        elif size * repeat > 1:
            sizes.append(size)
            times.append(repeat)
    return sizes, times


def _merged_order(shape: Sequence[int], order: Sequence[int]) -> tuple[list[int], list[int]]:
    """Sizes and order of axes, of which those that stay behind each other are merged."""
    starts = [axis for place, axis in enumerate(order) if place == 0 or axis != order[place - 1] + 1]
    inside = sorted(starts)
    ends = [*inside[1:], len(shape)]
    sizes = [math.prod(shape[start:end]) for start, end in zip(inside, ends, strict=True)]
    return sizes, [inside.index(start) for start in starts]


class CoremlAuthor(Author, Protocol):
    def kept(self, state: str, value: Any) -> Any: ...


class CoremlEmitter(Emitter):
    author: CoremlAuthor | None
    bool_ports = False

    def __init__(self, author: CoremlAuthor | None = None, float_dtype: str = FLOAT):
        super().__init__(author, float_dtype)
        self.state_dtype = HALF  # Core ML has states of no other
        self.precise_dtype = float_dtype  # the Neural Engine computes no other than float16

    def _op(self, name: str, operands: Sequence[Tensor], shape: Sequence[int], dtype: str, **parameters) -> Tensor:
        """Tensors of more axes are held flat; neighbouring axes that an op does not tell apart are merged for it."""
        rank = max([len(shape), *(operand.rank for operand in operands)])
        if rank <= MAX_RANK:
            return super()._op(name, operands, shape, dtype, **parameters)
        x, *others = [Tensor(self.held(each.shape), each.dtype, each.handle) for each in operands]
        if name == "tile":
            sizes, parameters["repeats"] = _merged_repeats(operands[0].shape, parameters["repeats"])
            made = [size * times for size, times in zip(sizes, parameters["repeats"], strict=True)]
        elif name == "transpose":
            sizes, parameters["order"] = _merged_order(operands[0].shape, parameters["order"])
            made = [sizes[axis] for axis in parameters["order"]]
        elif name in ("reshape", "cast") or (operands[0].shape == tuple(shape) and not others and not parameters):
            sizes, made = list(x.shape), list(x.shape)
        else:
            raise Refusal.RANK.of(rank=rank)
        if max(len(sizes), len(made)) > MAX_RANK:
            raise Refusal.RANK.of(rank=len(sizes))
        found = self.reshape(x, sizes)
        found = found if name == "reshape" else super()._op(name, [found], made, dtype, **parameters)
        return Tensor(tuple(shape), dtype, self.reshape(found, self.held(tuple(shape))).handle)

    def held(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape if len(shape) <= MAX_RANK else (math.prod(shape),)

    def binary(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        if name != "modulo":
            return super().binary(name, x, y)
        # Core ML's has the sign of the divisor.
        rest = super().binary(name, self.unary("abs", x), self.unary("abs", y))
        return self.where(self.greater(self.constant(0, x.dtype), x), self.neg(rest), rest)

    def where(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Core ML derives the result's sizes from x and y alone."""
        shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
        if np.broadcast_shapes(x.shape, y.shape) != shape:
            x = self.broadcast(x, shape)
        return super().where(condition, x, y)

    def matmul_by_rows(self, x: Tensor, y: Tensor) -> Tensor:
        assert x.dtype == y.dtype and x.shape[-1] == y.shape[-1] and x.shape[:-2] == y.shape[:-2], (x, y)
        return self._op("batch_matmul", [x, y], (*x.shape[:-1], y.shape[-2]), x.dtype, transpose_y=True)

    def linear(self, x: Tensor, weight: Tensor) -> Tensor:
        """x [M, K] by the rows of a constant [N, K]: [M, N]."""
        return self._op("linear", [x, weight], (x.shape[0], weight.shape[0]), x.dtype)

    def dequantized(self, codes: Tensor, scales: Tensor) -> Tensor:
        """Constants codes * scales, which divide the shape of codes."""
        return self._op("dequantize", [codes, scales], codes.shape, scales.dtype)

    def kept(self, name: str, value: Tensor) -> Tensor:
        handle = None if self.author is None else self.author.kept(name, value.handle)
        return Tensor(value.shape, value.dtype, handle)
