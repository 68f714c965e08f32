"""Makes the bytes of one stored weight from the checkpoint, a block of rows at a time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from llm_export.errors import FileError
from llm_export.program.formats import TILE_ROWS, TileLayout
from llm_export.program.specs import StoredRows, WeightSpec
from llm_export.quantize.affine import QuantizedWeight, joined, matrix_name, quantize_for
from llm_export.quantize.pack import pack, pack_stored
from llm_export.threads import one_torch_thread

BLOCK_ELEMENTS = 1 << 17  # quantised in one step, so that temporaries stay in the cache
DENSE_BLOCK_ELEMENTS = 1 << 22
NUM_WORKERS = 2

FUNCTIONS = {"exp": torch.exp, "neg": torch.neg}
_Block = list[tuple[Tensor | QuantizedWeight, int, int]]  # parts, with the rows of each that belong to the block
_Part = TypeVar("_Part")


def encode(
    spec: WeightSpec,
    read: Callable[[str], Tensor],
    calibrated: Mapping[str, QuantizedWeight] | None = None,
    stored: Callable[[str, int, int], StoredRows] | None = None,
) -> Iterator[np.ndarray]:
    """Yields the stored bytes of a weight, in order; formats.stored_bytes(spec) in all.

    read: source name -> tensor, mapped where possible; or a matrix that computes its rows when it is indexed
    calibrated: source name, or matrix_name of one in a stack -> what it is to be, transposed if the spec says so;
        others are rounded here
    stored: source name, first row, row past the last -> rows of a source that is stored quantized
    Errors: FileError if a tensor does not have the shape that the spec tells, or cannot be quantised.
    Cost: memory for one block of rows, whatever the size of the weight
    """
    if spec.scales is not None:
        yield from _as_stored(spec, [(name, read(name).shape) for name in spec.sources], stored)
        return
    known = calibrated.get if calibrated is not None and spec.bits else lambda name: None
    parts = []
    for index, name in enumerate(spec.sources):
        part = known(name)
        if part is not None and spec.factors:
            part = part.times(spec.factors[index])
        parts.append(_part(spec, read, index) if part is None else part)
    _check_shapes(spec, parts)
    if spec.bits == 0:
        is_joined = len(parts) > 1 and len(spec.shape) == 3
        for each in zip(*parts, strict=True) if is_joined else (parts,):
            yield from _dense(spec, each)
        return

    def tiles(block: _Block) -> np.ndarray:
        if not any(isinstance(part, QuantizedWeight) for part, *_ in block):
            return pack(quantize_for(spec, _joined(block)), spec.bits).flatten().numpy()
        parts = [
            part.rows(start, stop) if isinstance(part, QuantizedWeight) else quantize_for(spec, part[start:stop])
            for part, start, stop in block
        ]
        return pack(joined(parts), spec.bits).flatten().numpy()

    matrices = _matrices(parts, spec.sources, known)
    yield from _in_order(tiles, (block for matrix in matrices for block in _row_blocks(matrix, spec.shape[-1])))


def _as_stored(spec: WeightSpec, sources: list[tuple[str, tuple[int, ...]]], stored) -> Iterator[np.ndarray]:
    """sources: name and shape of each. Rows of a stack of matrices are counted through; blocks end with a matrix."""
    layout = TileLayout(spec.bits, spec.group_size, spec.scales)

    def tiles(block: list[tuple[str, int, int]]) -> np.ndarray:
        parts = [stored(*part) for part in block]
        rows = StoredRows(*(None if part[0] is None else torch.cat(part) for part in zip(*parts, strict=True)))
        return pack_stored(rows, layout).flatten().numpy()

    if len(spec.shape) == 2:
        matrices = [[(name, 0, shape[1] if spec.transpose else shape[0]) for name, shape in sources]]
    else:
        each = spec.shape[-2]
        numbers = ((name, i) for name, shape in sources for i in range(min(shape[0], spec.shape[0])))
        matrices = [[(name, i * each, (i + 1) * each)] for name, i in numbers]
    yield from _in_order(tiles, (block for matrix in matrices for block in _row_ranges(matrix, spec.shape[-1])))


def applied(spec: WeightSpec, index: int, rows: Tensor) -> Tensor:
    """Returns rows of a source as the weight has them."""
    if not spec.factors and not spec.functions:
        return rows
    rows = rows.to(torch.float32)
    for function in spec.functions:
        rows = FUNCTIONS[function](rows)
    return rows * spec.factors[index] if spec.factors else rows


class _Applied:
    """Rows of a source as the weight has them, computed when they are asked for."""

    def __init__(self, spec: WeightSpec, index: int, part: Tensor):
        self._spec, self._index, self._part = spec, index, part
        self.shape = part.shape

    def __getitem__(self, rows: slice) -> Tensor:
        return applied(self._spec, self._index, self._part[rows])


def _part(spec: WeightSpec, read: Callable[[str], Tensor], index: int) -> Tensor | _Applied:
    part = _read(spec, read, spec.sources[index])
    return _Applied(spec, index, part) if spec.factors or spec.functions else part


def _read(spec: WeightSpec, read: Callable[[str], Tensor], name: str) -> Tensor:
    part = read(name)
    if spec.takes_first:
        part = part[: spec.shape[0]]
    return part[:].transpose(-1, -2) if spec.transpose else part


def _in_order(function: Callable[[_Block], np.ndarray], items: Iterator[_Block]) -> Iterator[np.ndarray]:
    """Maps on NUM_WORKERS threads, one item ahead at most; torch's own threads cost too much on small blocks."""
    with (
        one_torch_thread(),
        ThreadPoolExecutor(NUM_WORKERS, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        running = deque()
        for item in items:
            running.append(pool.submit(function, item))
            if len(running) > NUM_WORKERS:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _check_shapes(spec: WeightSpec, parts: list[Tensor]) -> None:
    at = len(spec.shape) - 2 if len(spec.shape) == 3 else 0
    rows = sum(part.shape[at] for part in parts) if spec.shape else 0
    tails = {(*part.shape[:at], *part.shape[at + 1 :]) for part in parts}
    tail = next(iter(tails))
    found = (*tail[:at], rows, *tail[at:]) if spec.shape else tuple(parts[0].shape)
    if len(tails) != 1 or found != tuple(spec.shape):
        shapes = ", ".join(str(list(part.shape)) for part in parts)
        raise FileError(f"{spec.name}: the checkpoint has shape {shapes}; the program needs {list(spec.shape)}")


def _dense(spec: WeightSpec, parts: list[Tensor]) -> Iterator[np.ndarray]:
    for part in parts:
        whole = isinstance(part, Tensor) and (part.is_contiguous() or part.numel() <= DENSE_BLOCK_ELEMENTS)
        rows = () if whole else _row_blocks([part], math.prod(part.shape[1:]))
        for block in part.reshape(-1).split(DENSE_BLOCK_ELEMENTS) if whole else map(_joined, rows):
            yield block.to(spec.dtype).contiguous().view(torch.uint8).flatten().numpy()


def _matrices(
    parts: list[Tensor | QuantizedWeight], names: Sequence[str], known: Callable[[str], QuantizedWeight | None]
) -> Iterator[list[Tensor | QuantizedWeight]]:
    """Yields the matrices of a weight, each as a list of parts along its rows; a [E, N, K] weight has E.

    names: of the parts   known: name of a matrix of a stack -> what it is to be, if that is known
    """
    if len(parts[0].shape) == 2:
        yield parts
        return
    for index, matrices in enumerate(zip(*parts, strict=True)):
        found = [known(matrix_name(name, index)) for name in names]
        yield [matrix if part is None else part for matrix, part in zip(matrices, found, strict=True)]


def _row_blocks(parts: list[Tensor], row_elements: int) -> Iterator[_Block]:
    return _row_ranges([(part, 0, part.shape[0]) for part in parts], row_elements)


def _row_ranges(parts: list[tuple[_Part, int, int]], row_elements: int) -> Iterator[list[tuple[_Part, int, int]]]:
    """Yields blocks of whole rows across ranges of parts; each but the last is a multiple of TILE_ROWS rows long."""
    step = max(BLOCK_ELEMENTS // max(row_elements, 1) // TILE_ROWS, 1) * TILE_ROWS
    pending: list[tuple[_Part, int, int]] = []
    wanted = step
    for part, start, end in parts:
        while start < end:
            stop = min(start + wanted, end)
            pending.append((part, start, stop))
            start, wanted = stop, wanted - (stop - start)
            if wanted == 0:
                yield pending
                pending, wanted = [], step
    if pending:
        yield pending


def _joined(block: _Block) -> Tensor:
    rows = [part[start:stop] for part, start, stop in block]
    return torch.cat(rows) if len(rows) > 1 else rows[0]
