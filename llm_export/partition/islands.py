"""Groups the nodes that a backend takes into islands between which there is an order of execution."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from llm_export.partition.graph import MethodGraph


def find_islands(graph: MethodGraph, taken: Collection[int], made: Sequence[Sequence[int]] = ()) -> list[list[int]]:
    """Merges neighbours among `taken`, and nodes that read the same value, as long as no path leads from an island out
    and back into it.

    taken: nodes of the graph
    made: islands of backends that came first, each ascending: a path may lead through these
    Returns: disjoint islands, each ascending, that together hold every taken node
    Cost: O(nodes * islands)
    """
    groups = _Groups(graph)
    for island in made:
        for node, successor in pairwise(island):  # ascending: no path leaves the merged nodes and enters the next one
            groups.merge(node, successor)
    for node in graph.nodes:
        if node in taken:
            for neighbour in _neighbours(graph, node, taken):
                groups.merge(neighbour, node)
    while any(
        groups.merge(node, successor)
        for node in graph.nodes
        if node in taken
        for successor in sorted(graph.successors[node])
        if successor in taken
    ):
        pass
    return [sorted(members) for members in groups.members() if members[0] in taken]


def _neighbours(graph: MethodGraph, node: int, taken: Collection[int]) -> Iterator[int]:
    """Taken nodes before this one that it reads from, the latest first; then those that read what it reads."""
    yield from sorted((other for other in graph.predecessors[node] if other in taken), reverse=True)
    for maker in sorted(graph.predecessors[node]):
        yield from sorted(other for other in graph.successors[maker] if other < node and other in taken)


class _Groups:
    """The graph with groups of nodes drawn together, and for each group which ones lie before and behind it.

    Sets of groups are the bits of integers; a group goes by its first node.
    """

    def __init__(self, graph: MethodGraph):
        self._group = {node: node for node in graph.nodes}
        self._members = {node: [node] for node in graph.nodes}
        self._before = dict.fromkeys(graph.nodes, 0)
        self._behind = dict.fromkeys(graph.nodes, 0)
        for node in graph.nodes:
            for other in graph.predecessors[node]:
                self._before[node] |= self._before[other] | 1 << other
        for node in reversed(graph.nodes):
            for other in graph.successors[node]:
                self._behind[node] |= self._behind[other] | 1 << other

    def members(self) -> Iterator[list[int]]:
        yield from self._members.values()

    def merge(self, one: int, other: int) -> bool:
        """Draws the groups of two nodes together. Returns: False if they are one, or a path leads through a third."""
        kept, gone = sorted((self._group[one], self._group[other]))
        if kept == gone or self._between(kept, gone):
            return False
        both = 1 << kept | 1 << gone
        before = (self._before[kept] | self._before[gone]) & ~both
        behind = (self._behind[kept] | self._behind[gone]) & ~both
        for group in _bits(before):
            self._behind[group] = (self._behind[group] | behind | 1 << kept) & ~(1 << gone)
        for group in _bits(behind):
            self._before[group] = (self._before[group] | before | 1 << kept) & ~(1 << gone)
        self._before[kept], self._behind[kept] = before, behind
        del self._before[gone], self._behind[gone]
        for node in self._members[gone]:
            self._group[node] = kept
        self._members[kept] += self._members.pop(gone)
        return True

    def _between(self, one: int, other: int) -> int:
        return self._behind[one] & self._before[other] | self._behind[other] & self._before[one]


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
