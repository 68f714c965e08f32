"""Weights as Core AI's constants: codes, and scales that are products themselves, as in tiles."""

from __future__ import annotations

import numpy as np

from llm_export.program.specs import WeightSpec

from ..tensor_ops.emitter import FLOAT, Tensor
from ..tensor_ops.refusals import Refusal
from ..tensor_ops.tiles import packed
from ..tensor_ops.weights import INT4_BITS, Weights
from .emitter import CoreaiEmitter


class CoreaiWeights(Weights):
    def dequantized(self, emitter: CoreaiEmitter, spec: WeightSpec) -> Tensor:
        return self._joined(emitter, *self._parts(emitter, spec))

    def dequantized_rows(self, emitter: CoreaiEmitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        return self._joined(emitter, *(emitter.rows(part, indices) for part in self._parts(emitter, spec)))

    def _joined(self, emitter: CoreaiEmitter, codes: Tensor, multipliers: Tensor, scales: Tensor) -> Tensor:
        return emitter.dequantized(codes, emitter.cast(emitter.dequantized(multipliers, scales), self.float_dtype))

    def _parts(self, emitter: CoreaiEmitter, spec: WeightSpec) -> tuple[Tensor, Tensor, Tensor]:
        if spec.scales is not None:
            raise Refusal.HALF_SCALES.of()
        *stack, rows, columns = spec.shape
        is_narrow = spec.bits <= INT4_BITS

        def codes() -> np.ndarray:
            found = self._tiles(spec).codes
            return packed(found) if is_narrow else found

        groups = (*stack, rows, columns // spec.group_size)
        multipliers = lambda: self._tiles(spec).multipliers  # noqa: E731
        scales = lambda: self._tiles(spec).scales  # noqa: E731
        return (
            self._stored(emitter, spec, "codes", "int4" if is_narrow else "int8", codes),
            self._stored(emitter, spec, "multipliers", "int8", multipliers, groups),
            self._stored(emitter, spec, "scales", FLOAT, scales, (*stack, rows, 1)),
        )
