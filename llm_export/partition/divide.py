"""Cuts an island whose weights are too large for one part of its backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from llm_export.partition.graph import MethodGraph


def divide(graph: MethodGraph, nodes: Sequence[int], bytes_of: Callable[[int], int], most: int) -> list[list[int]]:
    """Returns the island as islands in order, whose weights take at most `most` bytes, or one instruction's do.

    Cuts lie where the fewest values cross, and of these places late.
    nodes: ascending, so that no path leads back over a cut   bytes_of: a weight, by its index
    """
    crossing = _crossing(graph, nodes)
    parts, begin = [], 0
    while begin < len(nodes):
        end = _reach(graph, nodes, begin, bytes_of, most)
        if end < len(nodes):
            end = min(range(end, begin, -1), key=lambda cut: crossing[cut])
        parts.append(list(nodes[begin:end]))
        begin = end
    return parts


def _reach(graph: MethodGraph, nodes: Sequence[int], begin: int, bytes_of: Callable[[int], int], most: int) -> int:
    """How far a part may go from `begin`, which it has at least."""
    seen: set[int] = set()
    for position in range(begin, len(nodes)):
        seen |= _weights(graph, nodes[position])
        if position > begin and sum(map(bytes_of, seen)) > most:
            return position
    return len(nodes)


def _weights(graph: MethodGraph, node: int) -> set[int]:
    values = (graph.method.values[graph.root(value)] for value in graph.operands(node))
    return {value.weight for value in values if value.kind == "weight"}


def _crossing(graph: MethodGraph, nodes: Sequence[int]) -> list[int]:
    """How many values of the island cross a cut before each of its nodes."""
    positions = {node: position for position, node in enumerate(nodes)}
    change = [0] * (len(nodes) + 2)
    for node, position in positions.items():
        readers = [positions[reader] for reader in graph.successors[node] if reader in positions]
        if readers:
            change[position + 1] += 1
            change[max(readers) + 1] -= 1
    return list(accumulate(change))
