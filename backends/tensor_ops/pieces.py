"""Matrices in pieces, for vendors whose accelerators have no long axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from llm_export.partition.backend import Read, Subgraph
from llm_export.program.specs import WeightSpec

from .emitter import FLOAT, INTEGER, Emitter, Tensor
from .weights import Weights

# Ops that multiply by a whole matrix, or by all of a stack; which operand that is.
WHOLE = {"mote.linear": 1, "mote.gated_linear": 1, "mote.head_linear": 1}


class PieceWeights(Weights):
    """A vendor derives its own, with what it makes of a piece: rows of a matrix, or matrices of a stack."""

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

    def piece_product(self, emitter: Emitter, x: Tensor, spec: WeightSpec, piece: slice) -> Tensor:
        """`product` of these rows alone."""
        raise NotImplementedError

    def piece_rows(self, emitter: Emitter, spec: WeightSpec, piece: slice, indices: Tensor) -> Tensor:
        """`rows` of a piece. indices: within it"""
        raise NotImplementedError

    def product(self, emitter: Emitter, x: Tensor, spec: WeightSpec) -> Tensor:
        return emitter.concat([self.piece_product(emitter, x, spec, piece) for piece in self._pieces(spec)], -1)

    def rows(self, emitter: Emitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        pieces = self._pieces(spec) if spec.name in self._whole else [slice(0, spec.shape[0])]
        if len(pieces) == 1:
            return self.piece_rows(emitter, spec, pieces[0], indices)
        found = None
        for piece in pieces:
            first, last = (emitter.constant(place, INTEGER) for place in (piece.start, piece.stop - 1))
            near = emitter.binary("minimum", emitter.binary("maximum", indices, first), last)
            rows = self.piece_rows(emitter, spec, piece, emitter.sub(near, first))
            inside = emitter.reshape(emitter.binary("equal", near, indices), (*indices.shape, 1))
            found = rows if found is None else emitter.where(inside, rows, found)
        return found

    def _pieces(self, spec: WeightSpec) -> list[slice]:
        count = -(-spec.shape[0] // self.most_rows)
        size = -(-spec.shape[0] // count)
        return [slice(first, min(first + size, spec.shape[0])) for first in range(0, spec.shape[0], size)]

    def _part(
        self,
        emitter: Emitter,
        spec: WeightSpec,
        part: str,
        piece: slice,
        dtype: str,
        whole: Callable[[], np.ndarray],
        width: int,
        more: Sequence[int] = (),
    ) -> Tensor:
        """Rows of a constant of so many columns, or matrices of a stack. more: axes behind these"""
        shape = (piece.stop - piece.start, *spec.shape[1:-1], width, *more)
        first = None if shape[0] == spec.shape[0] else piece.start
        return self._stored(emitter, spec, part, dtype, lambda: whole()[piece], shape, first)
