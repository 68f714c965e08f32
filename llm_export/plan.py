"""Places every activation of a program in memory, as a function of the number of tokens."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from llm_export.instructions import dims
from llm_export.partition import Partitioned
from llm_export.program.instructions import (
    LoweredMethod,
    MemoryPlan,
    MethodPlan,
    Placement,
    Value,
    storage_roots,
)

ALIGNMENT = 64


@dataclass(frozen=True)
class Storage:
    """Bytes that live from instruction `first` to instruction `last`, both included."""

    bytes: int
    first: int
    last: int


def plan(partitioned: Partitioned) -> MemoryPlan:
    """Gives each value that is no weight an arena, an offset and a size; values overlap only if never alive together.

    Cost: O(values log values + values * values alive together).
    """
    program = partitioned.program
    return MemoryPlan(program, tuple(plan_method(method) for method in program.methods))


def plan_method(method: LoweredMethod) -> MethodPlan:
    roots = storage_roots(method.values)
    ranges = live_ranges(method, roots)
    placements: dict[int, Placement] = {}
    arena_bytes = {}
    for arena in ("per_token", "fixed"):
        members = [root for root in ranges if value_storage(method.values[root])[0] == arena]
        storages = [Storage(value_storage(method.values[root])[1], *ranges[root]) for root in members]
        offsets, arena_bytes[arena] = place(storages)
        for root, storage, offset in zip(members, storages, offsets, strict=True):
            placements[root] = Placement(arena, offset, storage.bytes)
    return MethodPlan(
        placements=tuple(placements.get(roots[index]) for index in range(len(method.values))),
        per_token_bytes=arena_bytes["per_token"],
        fixed_bytes=arena_bytes["fixed"],
    )


def live_ranges(method: LoweredMethod, roots: Sequence[int]) -> dict[int, tuple[int, int]]:
    """First and last instruction of each storage; inputs live from the start, outputs to the end."""
    ranges: dict[int, tuple[int, int]] = {index: (0, 0) for index in method.inputs}
    for position, instruction in enumerate(method.instructions):
        for index in (*instruction.inputs, *instruction.outputs):
            root = roots[index] if index >= 0 else -1
            if root >= 0 and method.values[root].kind != "weight":
                ranges[root] = (ranges.get(root, (position, position))[0], position)
    end = len(method.instructions)
    for index in method.outputs:
        root = roots[index]
        if method.values[root].kind != "weight":
            ranges[root] = (ranges[root][0], end)
    return ranges


def value_storage(value: Value) -> tuple[str, int]:
    """Arena and bytes of a value: a*T + b bytes need at most (a + b)*T when T >= 1."""
    size = dims.scale(dims.product(value.shape), value.dtype.itemsize)
    if size.tokens == 0:
        return "fixed", _align(size.constant)
    return "per_token", _align(size.tokens + max(size.constant, 0))


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def place(storages: Sequence[Storage]) -> tuple[list[int], int]:
    """Greedy best fit by size: the largest storage first, each in the smallest gap between those that live with it.

    Returns: the offset of each storage, and the bytes that all of them need.
    """
    offsets = [0] * len(storages)
    placed: list[tuple[int, int]] = []  # (offset, index), ascending
    order = sorted(range(len(storages)), key=lambda i: (-storages[i].bytes, storages[i].first))
    for index in order:
        storage = storages[index]
        alive = [
            (offset, storages[other].bytes)
            for offset, other in placed
            if storages[other].first <= storage.last and storage.first <= storages[other].last
        ]
        offsets[index] = _best_gap(alive, storage.bytes)
        if storage.bytes:
            insort(placed, (offsets[index], index))
    return offsets, max((offset + storage.bytes for offset, storage in zip(offsets, storages, strict=True)), default=0)


def _best_gap(alive: Sequence[tuple[int, int]], size: int) -> int:
    """alive: (offset, bytes), ascending by offset. Returns: the offset of the tightest gap, or the end of them all."""
    best, best_bytes, end = None, None, 0
    for offset, length in alive:
        gap = offset - end
        if gap >= size and (best_bytes is None or gap < best_bytes):
            best, best_bytes = end, gap
        end = max(end, offset + length)
    return end if best is None else best
