"""Weights as Core ML's constants: the codes of tiles, with a scale for each group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from llm_export.program.specs import WeightSpec

from ..tensor_ops.emitter import FLOAT, HALF, INTEGER, Tensor, narrowed
from ..tensor_ops.pieces import PieceWeights
from ..tensor_ops.refusals import Refusal
from ..tensor_ops.tiles import packed
from ..tensor_ops.weights import INT4_BITS
from .emitter import CoremlEmitter

ZERO = 8  # of codes in half bytes


class CoremlWeights(PieceWeights):
    """Rows are gathered as bytes and multiplied there: of int4 Core ML takes none out of a constant."""

    def piece_product(self, emitter: CoremlEmitter, x: Tensor, spec: WeightSpec, piece: slice) -> Tensor:
        if spec.bits:
            return emitter.linear(x, self._constant(emitter, spec, piece))
        table = self._table(emitter, spec, piece)
        if table.dtype == self.float_dtype:
            return emitter.linear(x, table)
        return emitter.matmul_by_rows(x, emitter.cast(table, self.float_dtype))  # what is cast is no constant

    def dequantized(self, emitter: CoremlEmitter, spec: WeightSpec) -> Tensor:
        return self._constant(emitter, spec, slice(0, spec.shape[0]))

    def piece_rows(self, emitter: CoremlEmitter, spec: WeightSpec, piece: slice, indices: Tensor) -> Tensor:
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
