"""What MIL's ops compute, by their names and with operands by the names that the format gives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray
FLOATS = {"fp32": np.float32, "fp16": np.float16, "int32": np.int32, "bool": np.bool_, "int8": np.int8}


def wide(x: Array) -> Array:
    """Devices sum float16 in float32."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def axes_of(axes: Any) -> tuple[int, ...]:
    return tuple(int(axis) for axis in np.atleast_1d(axes))


def reduction(function: Callable) -> Callable:
    def compute(x: Array, axes: Array, keep_dims: Array) -> Array:
        return function(wide(x), axis=axes_of(axes), keepdims=bool(keep_dims))

    return compute


def cut(begin: Array, end: Array, stride: Any, begin_mask: Any, end_mask: Any) -> tuple[slice, ...]:
    rank = len(begin)
    strides = [1] * rank if stride is None else [int(step) for step in stride]
    no = [False] * rank
    skips = zip(no if begin_mask is None else begin_mask, no if end_mask is None else end_mask, strict=True)
    return tuple(
        slice(None if from_start else int(first), None if to_end else int(last), step)
        for first, last, step, (from_start, to_end) in zip(begin, end, strides, skips, strict=True)
    )


def slice_by_index(x, begin, end, stride=None, begin_mask=None, end_mask=None, squeeze_mask=None) -> Array:
    return x[cut(begin, end, stride, begin_mask, end_mask)]


def slice_update(x, update, begin, end, stride=None, begin_mask=None, end_mask=None, squeeze_mask=None) -> Array:
    place = x.copy()
    place[cut(begin, end, stride, begin_mask, end_mask)] = update
    return place


def softmax(x: Array, axis: Array) -> Array:
    x = wide(x)
    powers = np.exp(x - x.max(int(axis), keepdims=True))
    return powers / powers.sum(int(axis), keepdims=True)


def erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-wide(x)))


def matmul(x: Array, y: Array, transpose_x: Any = False, transpose_y: Any = False) -> Array:
    x, y = wide(x), wide(y)
    x = np.swapaxes(x, -1, -2) if transpose_x else x
    return np.matmul(x, np.swapaxes(y, -1, -2) if transpose_y else y)


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    y = wide(x) @ wide(weight).T
    return y if bias is None else y + wide(bias)


def concat(values: Array | Sequence[Array], axis: Array, interleave: Any = False) -> Array:
    return np.concatenate(values if isinstance(values, list) else [values], int(axis))


def gather(x: Array, indices: Array, axis: Array, batch_dims: Any = 0, validate_indices: Any = False) -> Array:
    return np.take(x, indices, int(axis))


def gather_along_axis(x: Array, indices: Array, axis: Array, validate_indices: Any = False) -> Array:
    return np.take_along_axis(x, indices, int(axis))


def scatter_along_axis(data, indices, updates, axis, mode, validate_indices: Any = False) -> Array:
    assert mode == "update", mode
    found = data.copy()
    np.put_along_axis(found, indices, updates, int(axis))
    return found


def argsort(x: Array, axis: Array, ascending: Array) -> Array:
    """Of equal elements the first comes first."""
    if ascending:
        return np.argsort(x, int(axis), kind="stable")
    keys = ~x if x.dtype.kind == "i" else -x
    return np.argsort(keys, int(axis), kind="stable")


def cumsum(x: Array, axis: Array, exclusive: Any = False, reverse: Any = False) -> Array:
    assert not exclusive and not reverse
    return np.cumsum(wide(x), int(axis))


def blockwise_shift_scale(data: Array, scale: Array, offset: Array | None = None) -> Array:
    assert offset is None
    blocks = [part for size, count in zip(data.shape, scale.shape, strict=True) for part in (count, size // count)]
    scales = scale.reshape([part for count in scale.shape for part in (count, 1)])
    return (data.reshape(blocks).astype(np.float32) * scales.astype(np.float32)).reshape(data.shape)


COMPUTE: dict[str, Callable[..., Any]] = {
    "identity": lambda x: x,
    "read_state": lambda input: input.copy(),
    "cast": lambda x, dtype: x.astype(FLOATS[dtype]),
    "abs": lambda x: np.abs(x),
    "round": lambda x: np.round(x),
    "exp": lambda x: np.exp(wide(x)),
    "log": lambda x, epsilon: np.log(wide(x) + epsilon),
    "sqrt": lambda x: np.sqrt(wide(x)),
    "rsqrt": lambda x, epsilon: 1 / np.sqrt(wide(x) + epsilon),
    "sin": lambda x: np.sin(wide(x)),
    "cos": lambda x: np.cos(wide(x)),
    "tanh": lambda x: np.tanh(wide(x)),
    "erf": erf,
    "sigmoid": sigmoid,
    "silu": lambda x: wide(x) * sigmoid(x),
    "relu": lambda x: np.maximum(x, 0),
    "logical_not": lambda x: ~x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "real_div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "maximum": lambda x, y: np.maximum(x, y),
    "minimum": lambda x, y: np.minimum(x, y),
    "mod": lambda x, y: np.mod(x, y),
    "floor_div": lambda x, y: x // y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "greater": lambda x, y: x > y,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_xor": lambda x, y: x ^ y,
    "select": lambda cond, a, b: np.where(cond, a, b),
    "reshape": lambda x, shape: x.reshape([int(size) for size in shape]),
    "expand_dims": lambda x, axes: np.expand_dims(x, axes_of(axes)),
    "squeeze": lambda x, axes=None: x.reshape(()) if axes is None else x.squeeze(axes_of(axes)),
    "transpose": lambda x, perm: x.transpose([int(axis) for axis in perm]),
    "tile": lambda x, reps: np.tile(x, [int(count) for count in reps]),
    "slice_by_index": slice_by_index,
    "slice_update": slice_update,
    "concat": concat,
    "gather": gather,
    "gather_along_axis": gather_along_axis,
    "scatter_along_axis": scatter_along_axis,
    "reduce_sum": reduction(np.sum),
    "reduce_mean": reduction(np.mean),
    "reduce_max": reduction(np.max),
    "reduce_min": reduction(np.min),
    "reduce_prod": reduction(np.prod),
    "softmax": softmax,
    "cumsum": cumsum,
    "argsort": argsort,
    "matmul": matmul,
    "linear": linear,
    "constexpr_blockwise_shift_scale": blockwise_shift_scale,
}
