"""The weights of a program as constants of an asset, with the codes that their tiles have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from llm_export.partition.backend import Read, Subgraph
from llm_export.program.specs import AssetWeight, WeightSpec

from .emitter import BOOLEAN, FLOAT, HALF, INTEGER, Emitter, Tensor, narrowed
from .refusals import Refusal
from .tiles import Tiles, read_tiles

DENSE = {torch.float32: FLOAT, torch.float16: HALF, torch.bfloat16: "bfloat16"}
INTEGERS = {torch.int64: np.int64, torch.int32: np.int32}
INT4_BITS = 4  # codes of so many bits or fewer are stored in 4
PROBE_BYTES, SLAB_BYTES = 1 << 10, 1 << 20  # of constants that are looked for in a file, and of that at once


class Form(NamedTuple):
    """A constant with rows of a weight."""

    dtype: str
    data: Callable[[], np.ndarray]


Forms = Mapping[str, Mapping[int, Form]]  # parts of a weight, by the first rows of their pieces


def _length_of_run(content: np.ndarray) -> int:
    """How often its first byte comes at its beginning."""
    others = np.flatnonzero(content != content[0])
    return int(others[0]) if len(others) else len(content)


class AssetFile:
    """The file of an asset, in which constants are looked for by what they hold."""

    def __init__(self, path: Path):
        self._path, self._bytes, self._end = path, path.stat().st_size, 0

    def find(self, data: np.ndarray) -> int | None:
        """Where the bytes of data begin. Constants mostly follow each other as functions use them."""
        wanted = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        # Where a constant is one byte again and again, so may be much of the file: where that ends is looked for.
        changes = np.flatnonzero(wanted != wanted[:1])
        before = max(int(changes[0]) - PROBE_BYTES // 2, 0) if len(changes) else 0
        probe = wanted[before : before + PROBE_BYTES].tobytes()
        for start, end in ((self._end, self._bytes), (0, self._end)):
            at = start
            while (found := self._next(probe, at + before, end)) is not None:
                at = found - before
                there = self._read(at, len(wanted))
                if np.array_equal(there, wanted):
                    self._end = at + len(wanted)
                    return at
                at += 1 if len(changes) else _length_of_run(there)
        return None

    def _next(self, probe: bytes, start: int, end: int) -> int | None:
        for first in range(start, end, SLAB_BYTES):
            found = self._read(first, SLAB_BYTES + len(probe)).tobytes().find(probe)
            if found >= 0:
                return first + found
        return None

    def _read(self, start: int, count: int) -> np.ndarray:
        return np.fromfile(self._path, np.uint8, count, offset=start)


class Weights:
    """Gives weights to the functions of one asset, in the forms of a vendor; each is read once.

    read: None: only their forms matter   parts: all that will become functions   float_dtype: of activations
    """

    def __init__(self, read: Read | None = None, parts: Sequence[Subgraph] = (), float_dtype: str = FLOAT):
        self._read, self.float_dtype = read, float_dtype
        self._tiles = functools.lru_cache(maxsize=1)(self._unpacked)
        self._forms: dict[WeightSpec, dict[str, dict[int, Form]]] = {}

    def dense(self, emitter: Emitter, spec: WeightSpec) -> Tensor:
        """All of a weight, as activations are, int32 or bool."""
        if spec.bits:
            return self.matrix(emitter, spec)
        if spec.dtype in DENSE:
            dtype, data = self._floats(spec)
            return emitter.cast(self._stored(emitter, spec, "", dtype, data), self.float_dtype)
        if spec.dtype == torch.bool:
            return emitter.cast(self._stored(emitter, spec, "", "int8", lambda: self._bytes(spec)), BOOLEAN)
        if spec.dtype in INTEGERS:
            return self._stored(emitter, spec, "", INTEGER, lambda: self._words(spec))
        raise Refusal.WEIGHT_FORM.of(dtype=str(spec.dtype).removeprefix("torch."), rank=len(spec.shape))

    def matrix(self, emitter: Emitter, spec: WeightSpec) -> Tensor:
        """A weight [N, K] or a stack of them, as activations are."""
        return self.dequantized(emitter, spec) if spec.bits else self.dense(emitter, spec)

    def rows(self, emitter: Emitter, spec: WeightSpec, indices: Tensor) -> Tensor:
        """Rows of a matrix, or matrices of a stack, by indices int32 [M]; only these are dequantized."""
        if spec.bits:
            return self.dequantized_rows(emitter, spec, indices)
        dtype, data = self._floats(spec)
        return emitter.cast(emitter.rows(self._stored(emitter, spec, "", dtype, data), indices), self.float_dtype)

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
        if self.float_dtype == HALF and spec.dtype != torch.float16:
            return HALF, lambda: narrowed(self.wide(spec))
        return DENSE[spec.dtype], lambda: self._bytes(spec)

    def wide(self, spec: WeightSpec) -> np.ndarray:
        """Floats of any dtype as float32."""
        stored = self._bytes(spec)
        if spec.dtype == torch.bfloat16:
            return (stored.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return stored.view(np.dtype(DENSE[spec.dtype])).astype(np.float32)

    def place(self, spec: WeightSpec, file: AssetFile) -> AssetWeight:
        """Where an asset that was saved holds a weight. Cost: reads the weight, and the asset's file where it is not"""
        forms = self._forms.get(spec, {})
        found = self._dense_place(spec, forms, file) if spec.bits == 0 else self._tiles_place(spec, forms, file)
        return found or AssetWeight(rest=self._bytes(spec).tobytes())

    def saved(self, dtype: str, data: np.ndarray) -> np.ndarray:
        """What the asset's file has of the data of a constant."""
        return data

    def _dense_place(self, spec: WeightSpec, forms: Forms, file: AssetFile) -> AssetWeight | None:
        places = self._found(forms, "", file)
        content = [form.data().reshape(-1).view(np.uint8) for form in forms.get("", {}).values()]
        same = places and np.array_equal(np.concatenate(content), self._bytes(spec))
        return AssetWeight("dense", places) if same else None

    def _tiles_place(self, spec: WeightSpec, forms: Forms, file: AssetFile) -> AssetWeight | None:
        if any(form.dtype != FLOAT for form in forms.get("scales", {}).values()):
            return None  # of which the file format has none
        part = "halves" if "halves" in forms else "codes"
        codes, multipliers, scales = (self._found(forms, each, file) for each in (part, "multipliers", "scales"))
        if not codes or not scales:
            return None
        layout = next(iter(forms["codes"].values())).dtype if part == "codes" else part
        if multipliers:
            return AssetWeight(layout, codes, multipliers, scales)
        tiles = self._tiles(spec)
        with np.errstate(all="ignore"):
            derived = np.rint(tiles.multipliers.astype(np.float32) * tiles.scales / tiles.scales)
        if not np.array_equal(derived, tiles.multipliers):
            return None
        return AssetWeight(layout, codes, (), scales, tiles.scales.tobytes())

    def _found(self, forms: Forms, part: str, file: AssetFile) -> tuple[int, ...]:
        """Offsets of the pieces of a part; empty: one of them is not there."""
        places = [file.find(self.saved(form.dtype, form.data())) for _, form in sorted(forms.get(part, {}).items())]
        return () if None in places else tuple(places)  # type: ignore[arg-type]

    def _stored(
        self, emitter: Emitter, spec: WeightSpec, part: str, dtype: str, data, shape=None, first: int | None = None
    ) -> Tensor:
        """first: row of a piece of the part"""
        self._forms.setdefault(spec, {}).setdefault(part, {})[first or 0] = Form(dtype, data)
        piece = "" if first is None else f"{part or 'rows'}{first}"
        name = ".".join(filter(None, (spec.name, "transposed" if spec.transpose else "", piece or part)))
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
