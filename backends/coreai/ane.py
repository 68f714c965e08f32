"""The Neural Engine's profile: float16 over [1, channels, 1, tokens], 1x1 convolutions, states that are carried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_export.program.specs import WeightSpec

from ..tensor_ops.emitter import HALF, Emitter, Tensor, narrowed
from ..tensor_ops.pieces import PieceWeights
from ..tensor_ops.refusals import Refusal
from ..tensor_ops.tiles import packed
from ..tensor_ops.weights import INT4_BITS
from .emitter import CoreaiAuthor, CoreaiEmitter


@dataclass(frozen=True)
class Rows(Tensor):
    """Rows [.., C] that lie as columns [1, C, 1, T]. They have no handle until an op wants rows."""

    columns: Tensor | None = None


class AneEmitter(CoreaiEmitter):
    """What products, norms and functions of elements give stays in columns; other ops turn it into rows."""

    carries_states = True

    def __init__(self, author: CoreaiAuthor | None = None, float_dtype: str = HALF):
        super().__init__(author, float_dtype)
        self.precise_dtype = float_dtype
        self._turned: dict[int, tuple[Rows, Any]] = {}  # rows of those that were asked for

    def handle(self, x: Tensor) -> Any:
        if not isinstance(x, Rows) or self.author is None:
            return x.handle
        if id(x) not in self._turned:
            channels, tokens = x.columns.shape[1], x.columns.shape[3]
            turned = super().transpose(super().reshape(x.columns, (channels, tokens)), (1, 0))
            self._turned[id(x)] = x, super().reshape(turned, x.shape).handle
        return self._turned[id(x)][1]

    def columns(self, x: Tensor) -> Tensor:
        """[.., C] as [1, C, 1, T]"""
        if isinstance(x, Rows):
            return x.columns
        flat = super().reshape(x, (x.size // x.shape[-1], x.shape[-1]))
        return super().reshape(super().transpose(flat, (1, 0)), (1, x.shape[-1], 1, flat.shape[0]))

    def convolved(self, x: Tensor, weight: Tensor) -> Tensor:
        """x [M, K] by the rows of a constant [N, K, 1, 1]: [M, N]."""
        columns = self.columns(x)
        made = self._op("conv", [columns, weight], (1, weight.shape[0], 1, columns.shape[3]), columns.dtype)
        return Rows((x.shape[0], weight.shape[0]), made.dtype, None, made)

    # Ops that leave columns where they lie

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        if isinstance(x, Rows) and shape and shape[-1] == x.shape[-1]:
            assert math.prod(shape) == x.size, (x, shape)
            return Rows(tuple(shape), x.dtype, None, x.columns)
        return super().reshape(x, shape)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        if isinstance(x, Rows) and x.dtype != dtype:
            return Rows(x.shape, dtype, None, super().cast(x.columns, dtype))
        return super().cast(x, dtype)

    def unary(self, name: str, x: Tensor, **parameters) -> Tensor:
        if not isinstance(x, Rows):
            return super().unary(name, x, **parameters)
        made = super().unary(name, x.columns, **parameters)
        return Rows(x.shape, made.dtype, None, made)

    def binary(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        shape = np.broadcast_shapes(x.shape, y.shape)
        operands = [self._as_columns(each, shape) for each in (x, y)]
        if not isinstance(x, Rows) and not isinstance(y, Rows) or None in operands:
            return super().binary(name, x, y)
        made = super().binary(name, *operands)
        return Rows(shape, made.dtype, None, made)

    def _as_columns(self, x: Tensor, shape: Sequence[int]) -> Tensor | None:
        """An operand of elements of rows of that shape. None: it does not lie so"""
        if x.size == 1:
            return super().reshape(x, (1,) * 4)
        if x.shape == tuple(shape[-1:]):
            return super().reshape(x, (1, *x.shape, 1, 1))
        return self.columns(x) if x.size == math.prod(shape) and x.shape[-1] == shape[-1] else None

    def slice(self, x: Tensor, axis: int, start: int, end: int, step: int = 1) -> Tensor:
        if not isinstance(x, Rows) or axis % x.rank != x.rank - 1 or start == end:
            return super().slice(x, axis, start, end, step)
        made = super().slice(x.columns, 1, start, end, step)
        return Rows((*x.shape[:-1], made.shape[1]), x.dtype, None, made)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        if not all(isinstance(part, Rows) for part in parts) or axis % parts[0].rank != parts[0].rank - 1:
            return super().concat(parts, axis)
        made = super().concat([part.columns for part in parts], 1)
        return Rows((*parts[0].shape[:-1], made.shape[1]), made.dtype, None, made)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        if x.rank > 3 or x.dtype != HALF:
            return Emitter.rms_norm(self, x, weight, eps)
        made = self.normalized(self.columns(x), eps, 1)
        return self.mul(Rows(x.shape, x.dtype, None, made), weight)

    def attention(self, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
        """Head by head."""
        heads, groups = q.shape[1], keys.shape[1]
        of_groups = [[self._head(x, group) for group in range(groups)] for x in (keys, values)]
        found = []
        for head in range(heads):
            k, v = (parts[head * groups // heads] for parts in of_groups)
            found.append(
                Emitter.attention(self, self._head(q, head), k, v, self._head(mask, head % mask.shape[1]), scale)
            )
        return self.concat(found, 1)

    def _head(self, x: Tensor, head: int) -> Tensor:
        return self.slice(x, 1, head, head + 1)


class AneWeights(PieceWeights):
    """Codes with one float16 scale for each row: those of smaller groups are known to be wrong there."""

    def piece_product(self, emitter: AneEmitter, x: Tensor, spec: WeightSpec, piece: slice) -> Tensor:
        return emitter.convolved(x, self._constant(emitter, spec, piece, (1, 1)))

    def piece_rows(self, emitter: AneEmitter, spec: WeightSpec, piece: slice, indices: Tensor) -> Tensor:
        more = (1, 1) if spec.name in self._whole and len(spec.shape) == 2 else ()
        if spec.bits:
            found = emitter.dequantized(*(emitter.rows(x, indices) for x in self._parts(emitter, spec, piece, more)))
        else:
            found = emitter.rows(self._floating(emitter, spec, piece, more), indices)
        return emitter.reshape(found, (*indices.shape, *spec.shape[1:]))

    def dequantized(self, emitter: AneEmitter, spec: WeightSpec) -> Tensor:
        return self._constant(emitter, spec, slice(0, spec.shape[0]))

    def _constant(self, emitter: AneEmitter, spec: WeightSpec, piece: slice, more: Sequence[int] = ()) -> Tensor:
        if not spec.bits:
            return self._floating(emitter, spec, piece, more)
        return emitter.dequantized(*self._parts(emitter, spec, piece, more))

    def _floating(self, emitter: AneEmitter, spec: WeightSpec, piece: slice, more: Sequence[int]) -> Tensor:
        dtype, data = self._floats(spec)
        whole = lambda: data().view(dtype).reshape(spec.shape)  # noqa: E731
        return self._part(emitter, spec, "", piece, dtype, whole, spec.shape[-1], more)

    def _parts(
        self, emitter: AneEmitter, spec: WeightSpec, piece: slice, more: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Codes and scales. more: axes of 1 behind those of the weight"""
        if spec.scales is not None:
            raise Refusal.HALF_SCALES.of()
        if not spec.per_channel:
            raise Refusal.GROUPS.of()
        is_narrow = spec.bits <= INT4_BITS

        def codes() -> np.ndarray:
            tiles = self._tiles(spec)
            # A multiplier is 1, or 0 where all of a group is.
            return tiles.codes * np.repeat(tiles.multipliers, spec.group_size, -1)

        def scales() -> np.ndarray:
            return narrowed(self._tiles(spec).scales)

        found = self._part(emitter, spec, "codes", piece, "int4" if is_narrow else "int8", codes, spec.shape[-1], more)
        return found, self._part(emitter, spec, "scales", piece, HALF, scales, 1, more)

    def _stored(self, emitter, spec, part, dtype, data, shape=None, first=None) -> Tensor:
        held = (lambda: packed(data())) if dtype == "int4" else data
        return super()._stored(emitter, spec, part, dtype, held, shape, first)
