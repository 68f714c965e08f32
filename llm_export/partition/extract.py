"""Cuts islands out of a method: each becomes a method of its own, and one instruction in what is left."""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from llm_export.partition.graph import RESHAPES, MethodGraph
from llm_export.program.instructions import Dim, Instruction, LoweredMethod, Value

DELEGATE = "mote.delegate"


@dataclass(frozen=True)
class Island:
    """Nodes that were cut out of a method.

    nodes: of the original method's graph, ascending
    method: these nodes as a method of their own
    inputs, outputs: the values of the original method that are the inputs and outputs of `method`
    """

    nodes: tuple[int, ...]
    method: LoweredMethod
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def extract(graph: MethodGraph, nodes: Sequence[int]) -> Island:
    """Makes a method of some nodes and of the views through which they read.

    Inputs and outputs of the new method are contiguous: a view that leads into it stays outside if it only reshapes,
    and is copied into it otherwise. No view leads out of it.
    """
    return _Extraction(graph, nodes).island()


class _Extraction:
    def __init__(self, graph: MethodGraph, nodes: Sequence[int]):
        self.graph, self.nodes = graph, tuple(sorted(nodes))
        self.inside = set(self.nodes)
        self.values: list[Value] = []
        self.mapped: dict[int, int] = {}  # values of the graph's method to those of the island's
        self.instructions: list[Instruction] = []
        self.inputs: list[int] = []

    def island(self) -> Island:
        for node in self.nodes:
            self._add(node)
        outputs = tuple(
            value for node in self.nodes for value in self.graph.instruction(node).outputs if self._leaves(value)
        )
        source = self.graph.method
        method = LoweredMethod(
            name=source.name,
            values=self.values,
            inputs=[self.mapped[value] for value in self.inputs],
            input_names=self._names(),
            outputs=[self.mapped[value] for value in outputs],
            instructions=self.instructions,
            min_tokens=source.min_tokens,
            max_tokens=source.max_tokens,
        )
        return Island(self.nodes, method, tuple(self.inputs), outputs)

    def _names(self) -> list[str]:
        """Those of the method's inputs where they enter as they are."""
        names = dict(zip(self.graph.method.inputs, self.graph.method.input_names, strict=True))
        return [names.get(value, f"input{index}") for index, value in enumerate(self.inputs)]

    def _add(self, position: int) -> None:
        instruction = self.graph.instruction(position)
        inputs = [self._map(value) if value >= 0 else -1 for value in instruction.inputs]
        for value in instruction.outputs:
            alias = self.graph.method.values[value].alias_of
            self._new(value, replace(self.graph.method.values[value], alias_of=-1 if alias < 0 else self.mapped[alias]))
        outputs = [self.mapped[value] for value in instruction.outputs]
        self.instructions.append(replace(instruction, inputs=inputs, outputs=outputs))

    def _map(self, value: int) -> int:
        if value in self.mapped:
            return self.mapped[value]
        source, views = self._enter(value)
        if source not in self.mapped:
            self._new(source, self._source(source))
        for view in views:
            if self.graph.instruction(view).outputs[0] not in self.mapped:
                self._add(view)
        return self.mapped[value]

    def _enter(self, value: int) -> tuple[int, list[int]]:
        """Where a value comes into the island, and the views from there on."""
        source, views = self.graph.root(value), self.graph.views(value)
        if self.graph.maker(value) in self.inside or self.graph.method.values[source].kind == "weight":
            return source, views
        while views and self.graph.instruction(views[0]).op in RESHAPES:
            source = self.graph.instruction(views.pop(0)).outputs[0]
        return source, views

    def _source(self, value: int) -> Value:
        original = self.graph.method.values[value]
        if original.kind == "weight":
            return original
        self.inputs.append(value)
        return replace(original, kind="input", alias_of=-1)

    def _new(self, value: int, described: Value) -> None:
        self.mapped[value] = len(self.values)
        self.values.append(described)

    def _leaves(self, value: int) -> bool:
        """Whether the rest of the method reads a value that the island makes."""
        readers = self.graph.successors[self.graph.producers[value]] - self.inside
        read = (self.graph.root(operand) for reader in readers for operand in self.graph.operands(reader))
        return value in read or value in (self.graph.root(output) for output in self.graph.method.outputs)


def replace_islands(graph: MethodGraph, islands: Sequence[Island], first_delegate: int) -> LoweredMethod:
    """Returns the method with one instruction for each island, which calls delegates[first_delegate + its index]."""
    method = graph.method
    calls = {
        min(island.nodes): Instruction(
            DELEGATE,
            list(island.inputs),
            list(island.outputs),
            {"delegate": (Dim(0, first_delegate + index),)},
            _common_origin([graph.instruction(node).origin for node in island.nodes]),
        )
        for index, island in enumerate(islands)
    }
    group_of = {node: min(island.nodes) for island in islands for node in island.nodes}
    instructions: list[Instruction] = []
    placed: set[int] = set()  # views

    def place_views(values: Sequence[int]) -> None:
        for view in (view for value in values if value >= 0 for view in graph.views(value)):
            if view not in placed:
                placed.add(view)
                instructions.append(graph.instruction(view))

    for group in _order(graph, group_of):
        instruction = calls.get(group) or graph.instruction(group)
        place_views(instruction.inputs)
        instructions.append(instruction)
    place_views(method.outputs)
    return _compact(replace(method, instructions=instructions))


def _order(graph: MethodGraph, group_of: dict[int, int]) -> list[int]:
    """An order in which every group comes behind what it reads, else that of the method."""
    groups = {node: group_of.get(node, node) for node in graph.nodes}
    before: dict[int, set[int]] = {group: set() for group in groups.values()}
    behind: dict[int, set[int]] = {group: set() for group in groups.values()}
    for node in graph.nodes:
        for other in graph.predecessors[node]:
            if groups[other] != groups[node]:
                before[groups[node]].add(groups[other])
                behind[groups[other]].add(groups[node])
    ready = [group for group, others in before.items() if not others]
    heapq.heapify(ready)
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for group in behind[order[-1]]:
            before[group].discard(order[-1])
            if not before[group]:
                heapq.heappush(ready, group)
    assert len(order) == len(before), "islands depend on each other in a circle"
    return order


def _compact(method: LoweredMethod) -> LoweredMethod:
    """Leaves out the values that nothing defines or reads any more."""
    used = {value for instruction in method.instructions for value in (*instruction.inputs, *instruction.outputs)}
    kept = sorted((used | set(method.inputs) | set(method.outputs)) - {-1})
    renamed = {value: index for index, value in enumerate(kept)} | {-1: -1}
    return replace(
        method,
        values=[replace(method.values[value], alias_of=renamed[method.values[value].alias_of]) for value in kept],
        inputs=[renamed[value] for value in method.inputs],
        outputs=[renamed[value] for value in method.outputs],
        instructions=[
            replace(
                instruction,
                inputs=[renamed[value] for value in instruction.inputs],
                outputs=[renamed[value] for value in instruction.outputs],
            )
            for instruction in method.instructions
        ],
    )


def _common_origin(origins: Sequence[str]) -> str:
    """The innermost module that holds all of them."""
    parts = os.path.commonprefix([origin.split(".") for origin in origins])
    return ".".join(parts)
