"""The weights of a program as constants of an asset, with the codes that their tiles have."""

from __future__ import annotations

import functools

import numpy as np
import torch

from llm_export.partition.backend import Read
from llm_export.program.specs import WeightSpec

from .emitter import BOOLEAN, FLOAT, INTEGER, Emitter, Tensor
from .refusals import Refusal
from .tiles import Tiles, packed, read_tiles

DENSE = {torch.float32: FLOAT, torch.float16: "float16", torch.bfloat16: "bfloat16"}
INTEGERS = {torch.int64: np.int64, torch.int32: np.int32}
INT4_BITS = 4  # codes of so many bits or fewer are stored in 4


class Weights:
    """Gives weights to the functions of one asset; each is read once. read: None: only their forms matter"""

    def __init__(self, read: Read | None = None):
        self._read = read
        self._tiles = functools.lru_cache(maxsize=1)(self._unpacked)

    def dense(self, emitter: Emitter, spec: WeightSpec) -> Tensor:
        """All of a weight, as float32, int32 or bool."""
        if spec.bits:
            return self.matrix(emitter, spec)
        if spec.dtype in DENSE:
            return emitter.cast(self._stored(emitter, spec, "", DENSE[spec.dtype], lambda: self._bytes(spec)), FLOAT)
        if spec.dtype == torch.bool:
            return emitter.cast(self._stored(emitter, spec, "", "int8", lambda: self._bytes(spec)), BOOLEAN)
        if spec.dtype in INTEGERS:
            return self._stored(emitter, spec, "", INTEGER, lambda: self._words(spec))
        raise Refusal.WEIGHT_FORM.of(dtype=str(spec.dtype).removeprefix("torch."), rank=len(spec.shape))

    def matrix(self, emitter: Emitter, spec: WeightSpec) -> Tensor:
        """A weight [N, K] or a stack of them, dequantized."""
        if not spec.bits:
            return self.dense(emitter, spec)
        codes, multipliers, scales = self.parts(emitter, spec)
        return self.joined(emitter, codes, multipliers, scales)

    def rows(self, emitter: Emitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        """Rows of a matrix, or matrices of a stack, by indices int32 [M]; only these are dequantized."""
        if not spec.bits:
            table = self._stored(emitter, spec, "", DENSE[spec.dtype], lambda: self._bytes(spec))
            return emitter.cast(emitter.rows(table, indices), FLOAT)
        return self.joined(emitter, *(emitter.rows(part, indices) for part in self.parts(emitter, spec)))

    def joined(self, emitter: Emitter, codes: Tensor, multipliers: Tensor, scales: Tensor) -> Tensor:
        return emitter.dequantized(codes, emitter.dequantized(multipliers, scales))

    def parts(self, emitter: Emitter, spec: WeightSpec) -> tuple[Tensor, Tensor, Tensor]:
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

    def _stored(self, emitter: Emitter, spec: WeightSpec, part: str, dtype: str, data, shape=None) -> Tensor:
        name = ".".join(filter(None, (spec.name, "transposed" if spec.transpose else "", part)))
        return emitter.stored(name, spec.shape if shape is None else shape, dtype, data)

    def _bytes(self, spec: WeightSpec) -> np.ndarray:
        chunks = self._read(spec)
        return np.concatenate([np.frombuffer(memoryview(chunk).cast("B"), np.uint8) for chunk in chunks])

    def _words(self, spec: WeightSpec) -> np.ndarray:
        """Whole numbers in 32 bits; those beyond are cut off there, as positions never reach so far."""
        limits = np.iinfo(np.int32)
        numbers = self._bytes(spec).view(INTEGERS[spec.dtype])
        return numbers.clip(limits.min, limits.max).astype(np.int32)

    def _unpacked(self, spec: WeightSpec) -> Tiles:
        return read_tiles(spec, self._bytes(spec))
