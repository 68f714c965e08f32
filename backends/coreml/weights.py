"""Weights as Core ML's constants: the codes of tiles, with a scale for each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from llm_export.partition.backend import Read, Subgraph
from llm_export.program.specs import WeightSpec

from ..tensor_ops.emitter import FLOAT, HALF, INTEGER, Tensor, narrowed
from ..tensor_ops.refusals import Refusal
from ..tensor_ops.tiles import packed
from ..tensor_ops.weights import INT4_BITS, Weights
from .emitter import CoremlEmitter

# Ops that multiply by a whole matrix, or by all of a stack; which operand that is.
WHOLE = {"mote.linear": 1, "mote.gated_linear": 1, "mote.head_linear": 1}
ZERO = 8  # of codes in half bytes


class CoremlWeights(Weights):
    """Rows are gathered as bytes and multiplied there: of int4 Core ML takes none out of a constant."""

    most_rows = 16384  # of a constant in a product: the Neural Engine has no longer axes

    def __init__(self, read: Read | None = None, parts: Sequence[Subgraph] = (), float_dtype: str = FLOAT):
        super().__init__(read, parts, float_dtype)
        self._whole = {
            part.weights[value.weight].name
            for part in parts
            for instruction in part.method.instructions
            if instruction.op in WHOLE
            for value in [part.method.values[instruction.inputs[WHOLE[instruction.op]]]]
            if value.kind == "weight"
        }

    def product(self, emitter: CoremlEmitter, x: Tensor, spec: WeightSpec) -> Tensor:
        return emitter.concat([self._by_piece(emitter, x, spec, piece) for piece in self._pieces(spec)], -1)

    def _by_piece(self, emitter: CoremlEmitter, x: Tensor, spec: WeightSpec, piece: slice) -> Tensor:
        if spec.bits:
            return emitter.linear(x, self._constant(emitter, spec, piece))
        table = self._table(emitter, spec, piece)
        if table.dtype == self.float_dtype:
            return emitter.linear(x, table)
        return emitter.matmul_by_rows(x, emitter.cast(table, self.float_dtype))  # what is cast is no constant

    def rows(self, emitter: CoremlEmitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        pieces = self._pieces(spec) if spec.name in self._whole else [slice(0, spec.shape[0])]
        if len(pieces) == 1:
            return self._piece_rows(emitter, spec, pieces[0], indices)
        found = None
        for piece in pieces:
            first, last = (emitter.constant(place, INTEGER) for place in (piece.start, piece.stop - 1))
            near = emitter.binary("minimum", emitter.binary("maximum", indices, first), last)
            rows = self._piece_rows(emitter, spec, piece, emitter.sub(near, first))
            inside = emitter.reshape(emitter.binary("equal", near, indices), (*indices.shape, 1))
            found = rows if found is None else emitter.where(inside, rows, found)
        return found

    def dequantized(self, emitter: CoremlEmitter, spec: WeightSpec) -> Tensor:
        return self._constant(emitter, spec, slice(0, spec.shape[0]))

    def _pieces(self, spec: WeightSpec) -> list[slice]:
        count = -(-spec.shape[0] // self.most_rows)
        size = -(-spec.shape[0] // count)
        return [slice(first, min(first + size, spec.shape[0])) for first in range(0, spec.shape[0], size)]

    def _piece_rows(self, emitter: CoremlEmitter, spec: WeightSpec, piece: slice, indices: Tensor) -> Tensor:
        if not spec.bits:
            return emitter.cast(emitter.rows(self._table(emitter, spec, piece), indices), self.float_dtype)
        is_narrow = spec.bits <= INT4_BITS
        if is_narrow and spec.name in self._whole:
            return emitter.rows(self._constant(emitter, spec, piece), indices)
        scales = emitter.rows(self._scales(emitter, spec, piece), indices)
        if is_narrow:
            codes = self._halves(emitter, spec, indices)
        else:
            codes = emitter.cast(emitter.rows(self._codes(emitter, spec, piece, "int8"), indices), self.float_dtype)
        *leading, columns = codes.shape
        grouped = emitter.reshape(codes, (*leading, columns // spec.group_size, spec.group_size))
        return emitter.reshape(emitter.mul(grouped, emitter.reshape(scales, (*scales.shape, 1))), codes.shape)

    def _constant(self, emitter: CoremlEmitter, spec: WeightSpec, piece: slice) -> Tensor:
        codes = self._codes(emitter, spec, piece, "int4" if spec.bits <= INT4_BITS else "int8")
        return emitter.dequantized(codes, self._scales(emitter, spec, piece))

    def _codes(self, emitter: CoremlEmitter, spec: WeightSpec, piece: slice, dtype: str) -> Tensor:
        return self._part(emitter, spec, "codes", piece, dtype, lambda: self._tiles(spec).codes, spec.shape[-1])

    def _scales(self, emitter: CoremlEmitter, spec: WeightSpec, piece: slice) -> Tensor:
        if spec.scales is not None:
            raise Refusal.HALF_SCALES.of()

        def folded() -> np.ndarray:
            tiles = self._tiles(spec)
            scales = tiles.multipliers.astype(np.float32) * tiles.scales
            return narrowed(scales) if self.float_dtype == HALF else scales

        groups = spec.shape[-1] // spec.group_size
        return self._part(emitter, spec, "scales", piece, self.float_dtype, folded, groups)

    def _halves(self, emitter: CoremlEmitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        """Rows of codes of 4 bits, of which a byte holds two."""
        whole, width = slice(0, spec.shape[0]), spec.shape[-1] // 2
        table = self._part(emitter, spec, "halves", whole, "uint8", lambda: halves(self._tiles(spec).codes), width)
        both = emitter.cast(emitter.rows(table, indices), INTEGER)
        high = emitter.binary("floor_divide", both, emitter.constant(16, INTEGER))
        low = emitter.sub(both, emitter.mul(high, emitter.constant(16, INTEGER)))
        found = emitter.sub(emitter.concat([low, high], -1), emitter.constant(ZERO, INTEGER))
        return emitter.cast(found, self.float_dtype)

    def _table(self, emitter: CoremlEmitter, spec: WeightSpec, piece: slice) -> Tensor:
        """Rows of a weight of floats."""
        dtype, data = self._floats(spec)
        whole = lambda: data().view(dtype).reshape(spec.shape)  # noqa: E731
        return self._part(emitter, spec, "", piece, dtype, whole, spec.shape[-1])

    def _part(
        self,
        emitter: CoremlEmitter,
        spec: WeightSpec,
        part: str,
        piece: slice,
        dtype: str,
        whole: Callable[[], np.ndarray],
        width: int,
    ) -> Tensor:
        """Rows of a constant of so many columns, or matrices of a stack."""
        shape = (piece.stop - piece.start, *spec.shape[1:-1], width)
        first = None if shape[0] == spec.shape[0] else piece.start
        return self._stored(emitter, spec, part, dtype, lambda: whole()[piece], shape, first)

    def saved(self, dtype: str, data: np.ndarray) -> np.ndarray:
        return packed(data) if dtype == "int4" else data

    def _floats(self, spec: WeightSpec) -> tuple[str, Callable[[], np.ndarray]]:
        """Core ML has no bfloat16."""
        if spec.dtype == torch.bfloat16 and self.float_dtype == FLOAT:
            return FLOAT, lambda: self.wide(spec)
        return super()._floats(spec)


def halves(codes: np.ndarray) -> np.ndarray:
    """Codes from -8 to 7, those of the first half of a row in the low halves of bytes."""
    digits = (codes + ZERO).astype(np.uint8)
    middle = digits.shape[-1] // 2
    return digits[..., :middle] | digits[..., middle:] << 4
