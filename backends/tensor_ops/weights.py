"""The weights of a program as constants of an asset, with the codes that their tiles have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import torch

from llm_export.partition.backend import Read, Subgraph
from llm_export.program.specs import WeightSpec

from .emitter import BOOLEAN, FLOAT, INTEGER, Emitter, Tensor
from .refusals import Refusal
from .tiles import Tiles, read_tiles

DENSE = {torch.float32: FLOAT, torch.float16: "float16", torch.bfloat16: "bfloat16"}
INTEGERS = {torch.int64: np.int64, torch.int32: np.int32}
INT4_BITS = 4  # codes of so many bits or fewer are stored in 4


class Weights:
    """Gives weights to the functions of one asset, in the forms of a vendor; each is read once.

    read: None: only their forms matter   parts: all that will become functions
    """

    def __init__(self, read: Read | None = None, parts: Sequence[Subgraph] = ()):
        self._read = read
        self._tiles = functools.lru_cache(maxsize=1)(self._unpacked)

    def dense(self, emitter: Emitter, spec: WeightSpec) -> Tensor:
        """All of a weight, as float32, int32 or bool."""
        if spec.bits:
            return self.matrix(emitter, spec)
        if spec.dtype in DENSE:
            dtype, data = self._floats(spec)
            return emitter.cast(self._stored(emitter, spec, "", dtype, data), FLOAT)
        if spec.dtype == torch.bool:
            return emitter.cast(self._stored(emitter, spec, "", "int8", lambda: self._bytes(spec)), BOOLEAN)
        if spec.dtype in INTEGERS:
            return self._stored(emitter, spec, "", INTEGER, lambda: self._words(spec))
        raise Refusal.WEIGHT_FORM.of(dtype=str(spec.dtype).removeprefix("torch."), rank=len(spec.shape))

    def matrix(self, emitter: Emitter, spec: WeightSpec) -> Tensor:
        """A weight [N, K] or a stack of them, as float32."""
        return self.dequantized(emitter, spec) if spec.bits else self.dense(emitter, spec)

    def rows(self, emitter: Emitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        """Rows of a matrix, or matrices of a stack, by indices int32 [M]; only these are dequantized."""
        if spec.bits:
            return self.dequantized_rows(emitter, spec, indices)
        dtype, data = self._floats(spec)
        return emitter.cast(emitter.rows(self._stored(emitter, spec, "", dtype, data), indices), FLOAT)

    def product(self, emitter: Emitter, x: Tensor, spec: WeightSpec) -> Tensor:
        """x [M, K] by the rows of a matrix [N, K]: [M, N]."""
        return emitter.matmul_by_rows(x, self.matrix(emitter, spec))

    def dequantized(self, emitter: Emitter, spec: WeightSpec) -> Tensor:
        """`matrix` of a weight that is stored in tiles."""
        raise NotImplementedError

    def dequantized_rows(self, emitter: Emitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        """`rows` of a weight that is stored in tiles."""
        raise NotImplementedError

    def _floats(self, spec: WeightSpec) -> tuple[str, Callable[[], np.ndarray]]:
        """How floats are stored: their dtype there, and what gives them."""
        return DENSE[spec.dtype], lambda: self._bytes(spec)

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
