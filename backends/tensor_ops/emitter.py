"""Ops over tensors of known sizes, which an author builds in the words of a vendor.

A type error inside of a vendor's package may end the process, or show on a device only, so sizes and dtypes are derived
and checked here. Without an author nothing is built: a lowering can then be tried without the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

FLOAT, HALF, INTEGER, BOOLEAN = "float32", "float16", "int32", "bool"
LARGE = 2**31 - 1
COMPARISONS = ("equal", "not_equal", "greater")
LOGICAL = ("and", "or", "xor")
HIDDEN = -1e30  # of a score: its weight is 0
LEAST_LARGEST = 2.0**-12  # what rows of smaller elements are divided by in float16


@dataclass(frozen=True)
class Tensor:
    """A value of a function. handle: the author's"""

    shape: tuple[int, ...]
    dtype: str
    handle: Any = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def narrowed(values) -> np.ndarray:
    """As float16; numbers that it does not reach become the largest that it has."""
    array, most = np.asarray(values, np.float64), float(np.finfo(np.float16).max)
    return np.where(np.isfinite(array), array.clip(-most, most), array).astype(np.float16)


class Author(Protocol):
    """What builds a function of an asset; the vendor.py of a backend has it."""

    def op(self, name: str, operands: Sequence[Any], shape: Sequence[int], dtype: str, **parameters: Any) -> Any: ...
    def number(self, value: np.ndarray) -> Any: ...
    def stored(self, name: str, data: Callable[[], np.ndarray], shape: Sequence[int], dtype: str) -> Any: ...


class Emitter:
    """A backend derives its own, with what its vendor has a better way for.

    author: None: only sizes are derived   float_dtype: of activations
    state_dtype: of what the asset keeps between calls
    precise_dtype: of what float16 is too narrow for, such as sums of squares and states that go through every token
    """

    bool_ports = True  # whether inputs and outputs of functions may be booleans
    # Whether states are inputs, and what the tokens add to them outputs, in place of what functions change themselves.
    carries_states = False

    def __init__(self, author: Author | None = None, float_dtype: str = FLOAT):
        self.author, self.float_dtype = author, float_dtype
        self.state_dtype, self.precise_dtype = float_dtype, FLOAT

    def _op(self, name: str, operands: Sequence[Tensor], shape: Sequence[int], dtype: str, **parameters) -> Tensor:
        shape = tuple(shape)
        if self.author is None:
            return Tensor(shape, dtype)
        handles = [self.handle(operand) for operand in operands]
        return Tensor(shape, dtype, self.author.op(name, handles, shape, dtype, **parameters))

    def handle(self, x: Tensor) -> Any:
        return x.handle

    def held(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape in which the vendor has tensors of a shape."""
        return shape

    # Constants

    def constant(self, value, dtype: str | None = None) -> Tensor:
        """A number or a small table of the lowering itself. dtype: None: of activations"""
        dtype = dtype or self.float_dtype
        array = narrowed(value) if dtype == HALF else np.asarray(value, dtype)
        handle = None if self.author is None else self.author.number(array)
        return Tensor(array.shape, dtype, handle)

    def stored(self, name: str, shape: Sequence[int], dtype: str, data: Callable[[], np.ndarray]) -> Tensor:
        """A constant that all functions share. name: of its content   data: its elements, packed if they are int4"""
        handle = None if self.author is None else self.author.stored(name, data, shape, dtype)
        return Tensor(tuple(shape), dtype, handle)

    # Elements

    def unary(self, name: str, x: Tensor, **parameters) -> Tensor:
        dtype = BOOLEAN if name == "not" else x.dtype
        return self._op(name, [x], x.shape, dtype, **parameters)

    def binary(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        assert x.dtype == y.dtype, (name, x, y)
        dtype = BOOLEAN if name in (*COMPARISONS, *LOGICAL) else x.dtype
        return self._op(name, [x, y], np.broadcast_shapes(x.shape, y.shape), dtype)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return self.binary("add", x, y)

    def sub(self, x: Tensor, y: Tensor) -> Tensor:
        return self.binary("sub", x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.binary("mul", x, y)

    def scaled(self, x: Tensor, factor: float) -> Tensor:
        return x if factor == 1 else self.mul(x, self.constant(factor, x.dtype))

    def neg(self, x: Tensor) -> Tensor:
        return self.sub(self.constant(0, x.dtype), x)

    def square(self, x: Tensor) -> Tensor:
        return self.mul(x, x)

    def greater(self, x: Tensor, y: Tensor) -> Tensor:
        return self.binary("greater", x, y)

    def at_least(self, x: Tensor, y: Tensor) -> Tensor:
        return self.either(self.greater(x, y), self.binary("equal", x, y))

    def both(self, x: Tensor, y: Tensor) -> Tensor:
        return self.binary("and", x, y)

    def either(self, x: Tensor, y: Tensor) -> Tensor:
        return self.binary("or", x, y)

    def where(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        assert condition.dtype == BOOLEAN and x.dtype == y.dtype, (condition, x, y)
        shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
        return self._op("where", [condition, x, y], shape, x.dtype)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        return x if x.dtype == dtype else self._op("cast", [x], x.shape, dtype)

    # Places

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        assert math.prod(shape) == math.prod(x.shape), (x, shape)
        return x if tuple(shape) == x.shape else self._op("reshape", [x], shape, x.dtype)

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        if list(order) == list(range(x.rank)):
            return x
        return self._op("transpose", [x], [x.shape[axis] for axis in order], x.dtype, order=list(order))

    def broadcast(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """x with the rank of shape or a smaller one."""
        x = self.reshape(x, (1,) * (len(shape) - x.rank) + x.shape)
        assert np.broadcast_shapes(x.shape, tuple(shape)) == tuple(shape), (x, shape)
        repeats = [size // own for size, own in zip(shape, x.shape, strict=True)]
        return x if tuple(shape) == x.shape else self._op("tile", [x], shape, x.dtype, repeats=repeats)

    def repeated(self, x: Tensor, axis: int, times: int) -> Tensor:
        """As torch.repeat_interleave."""
        before, (size, *behind) = x.shape[:axis], x.shape[axis:]
        apart = self.reshape(x, (*before, size, 1, *behind))
        return self.reshape(self.broadcast(apart, (*before, size, times, *behind)), (*before, size * times, *behind))

    def slice(self, x: Tensor, axis: int, start: int, end: int, step: int = 1) -> Tensor:
        """Of one axis, 0 <= start <= end <= its size."""
        axis %= x.rank
        if (start, end, step) == (0, x.shape[axis], 1):
            return x
        starts, ends, steps = [0] * x.rank, list(x.shape), [1] * x.rank
        starts[axis], ends[axis], steps[axis] = start, end, step
        shape = [*x.shape[:axis], -(-(end - start) // step), *x.shape[axis + 1 :]]
        if start == end:
            return Tensor(tuple(shape), x.dtype)  # only concat reads it, which leaves it out
        return self._op("slice", [x], shape, x.dtype, starts=starts, ends=ends, steps=steps)

    def write(self, x: Tensor, update: Tensor, axis: int, start: Tensor) -> Tensor:
        """x with a range of an axis replaced. start: int32 [1]"""
        size = update.shape[axis]
        assert update.dtype == x.dtype and start.shape == (1,) and start.dtype == INTEGER, (x, update, start)
        assert [*x.shape[:axis], size, *x.shape[axis + 1 :]] == list(update.shape), (x, update)
        end = self.add(start, self.constant([size], INTEGER))
        bounds = [
            self.concat([self.constant([each], INTEGER) if i != axis else bound for i, each in enumerate(others)], 0)
            for bound, others in ((start, [0] * x.rank), (end, x.shape))
        ]
        return self._op("slice_update", [x, *bounds, update], x.shape, x.dtype)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        parts = [part for part in parts if part.shape[axis]]
        assert len({part.dtype for part in parts}) == 1, parts
        if len(parts) == 1:
            return parts[0]
        axis %= parts[0].rank
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self._op("concat", parts, shape, parts[0].dtype, axis=axis)

    def rows(self, table: Tensor, indices: Tensor) -> Tensor:
        """Rows of a table [N, ..] by indices [M]: [M, ..]."""
        assert indices.dtype == INTEGER and indices.rank == 1, indices
        return self._op("rows", [table, indices], (*indices.shape, *table.shape[1:]), table.dtype)

    def gather(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        """As torch.gather."""
        assert indices.dtype == INTEGER and indices.rank == x.rank, (x, indices)
        for other, size in enumerate(indices.shape):  # vendors want all other axes to be as long
            if other != axis:
                x = self.slice(x, other, 0, size)
        return self._op("gather_along_axis", [x, indices], indices.shape, x.dtype, axis=axis)

    def scatter(self, x: Tensor, indices: Tensor, updates: Tensor, axis: int, mode: str = "update") -> Tensor:
        assert indices.shape == updates.shape and updates.dtype == x.dtype, (x, indices, updates)
        operands = [x, indices, updates]
        return self._op("scatter_along_axis", operands, x.shape, x.dtype, axis=axis, mode=mode)

    # Rows

    def reduce(self, name: str, x: Tensor, axes: Sequence[int]) -> Tensor:
        """The axes stay, with one element. name: sum, mean, max, min or product"""
        axes = [axis % x.rank for axis in axes]
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        return self._op(f"reduce_{name}", [x], shape, x.dtype, axes=axes)

    def softmax(self, x: Tensor, axis: int = -1) -> Tensor:
        return self._op("softmax", [x], x.shape, x.dtype, axis=axis % x.rank)

    def cumulate(self, x: Tensor, axis: int) -> Tensor:
        return self._op("scan", [x], x.shape, x.dtype, axis=axis % x.rank)

    def order(self, x: Tensor, axis: int, descending: bool) -> Tensor:
        """Places of the elements in their order; of equal ones the first comes first."""
        return self._op("argsort", [x], x.shape, INTEGER, axis=axis % x.rank, descending=descending)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """[.., M, K] by [.., K, N]; leading axes are equal or absent."""
        assert x.dtype == y.dtype and x.shape[-1] == y.shape[-2] and x.shape[:-2] == y.shape[:-2], (x, y)
        return self._op("batch_matmul", [x, y], (*x.shape[:-1], y.shape[-1]), x.dtype)

    def matmul_by_rows(self, x: Tensor, y: Tensor) -> Tensor:
        """[.., M, K] by [.., N, K]."""
        leading = range(y.rank - 2)
        return self.matmul(x, self.transpose(y, (*leading, y.rank - 1, y.rank - 2)))

    # What vendors have ops of their own for

    def kept(self, name: str, value: Tensor) -> Tensor:
        """Says what a state becomes; gives what is read of it from there on."""
        return value

    def precise(self, x: Tensor) -> Tensor:
        return self.cast(x, self.precise_dtype)

    def normalized(self, x: Tensor, eps: float, axis: int = -1) -> Tensor:
        """x / sqrt(mean(x^2) + eps)"""
        if x.dtype != HALF:
            mean = self.reduce("mean", self.square(x), [axis])
            return self.mul(x, self.unary("rsqrt", self.add(mean, self.constant(eps, x.dtype))))
        # Squares of more than 255 are none in float16, so the largest element is divided out of them.
        largest = self.reduce("max", self.unary("abs", x), [axis])
        largest = self.binary("maximum", largest, self.constant(LEAST_LARGEST, HALF))
        mean = self.reduce("mean", self.square(self.binary("divide", x, largest)), [axis])
        eps_root = self.binary("divide", self.constant(math.sqrt(eps), HALF), largest)
        root = self.unary("rsqrt", self.add(mean, self.square(eps_root)))
        return self.mul(x, self.binary("divide", root, largest))

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return self.mul(self.cast(self.normalized(self.precise(x), eps), x.dtype), weight)

    def attention(self, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
        """q [1, H, T, D], keys and values [1, G, C, D], mask bool [1, 1 or H, T, C], with a key for every query."""
        scores = self.where(mask, self.scored(q, keys, scale), self.constant(HIDDEN))
        return self.mixed(self.softmax(scores), values)

    def scored(self, q: Tensor, keys: Tensor, scale: float) -> Tensor:
        """Products of queries [1, H, T, D] and keys [1, G, C, D], a group of heads for each of these: [1, H, T, C]."""
        groups, capacity, _ = keys.shape[1:]
        found = self.matmul_by_rows(self._by_group(self.scaled(q, scale), groups), self.reshape(keys, keys.shape[1:]))
        return self.reshape(found, (1, *q.shape[1:3], capacity))

    def mixed(self, weights: Tensor, values: Tensor) -> Tensor:
        """[1, H, T, Dv] of weights [1, H, T, C]"""
        groups, _, width = values.shape[1:]
        found = self.matmul(self._by_group(weights, groups), self.reshape(values, values.shape[1:]))
        return self.reshape(found, (1, *weights.shape[1:3], width))

    def _by_group(self, x: Tensor, groups: int) -> Tensor:
        """x [1, H, T, D] as [G, H / G * T, D]"""
        _, heads, tokens, width = x.shape
        return self.reshape(x, (groups, heads // groups * tokens, width))
