"""What depends on what in a lowered method, seen through views."""

from __future__ import annotations

from collections.abc import Iterator

from llm_export.program.instructions import Instruction, LoweredMethod, storage_roots

# Views of contiguous values that are contiguous themselves.
RESHAPES = ("aten.view", "aten.unsqueeze", "aten.squeeze")


class MethodGraph:
    """A node is the index of an instruction that is no view. Views belong to the nodes that read them.

    predecessors, successors: the nodes that each node depends on, and those that depend on it
    """

    def __init__(self, method: LoweredMethod):
        self.method = method
        self._roots = storage_roots(method.values)
        self.producers = {
            value: position for position, instruction in enumerate(method.instructions) for value in instruction.outputs
        }
        self.nodes = [position for position in range(len(method.instructions)) if not self.is_view(position)]
        self.predecessors: dict[int, set[int]] = {node: set() for node in self.nodes}
        self.successors: dict[int, set[int]] = {node: set() for node in self.nodes}
        self._connect()

    def instruction(self, position: int) -> Instruction:
        return self.method.instructions[position]

    def is_view(self, position: int) -> bool:
        return self.method.values[self.instruction(position).outputs[0]].alias_of >= 0

    def views(self, value: int) -> list[int]:
        """The views that lead from the root of a value to it, in order."""
        chain = []
        while self.method.values[value].alias_of >= 0:
            chain.append(self.producers[value])
            value = self.method.values[value].alias_of
        return chain[::-1]

    def root(self, value: int) -> int:
        """The value whose storage a value uses."""
        return self._roots[value]

    def maker(self, value: int) -> int | None:
        """The node that makes the root of a value; None for inputs of the method and weights."""
        return self.producers.get(self.root(value))

    def operands(self, position: int) -> Iterator[int]:
        """The inputs of an instruction, without optional inputs that are absent."""
        return (value for value in self.instruction(position).inputs if value >= 0)

    def _connect(self) -> None:
        last_user: dict[int, int] = {}  # of each state, whose instructions keep their order
        for node in self.nodes:
            for value in self.operands(node):
                self._depends(node, self.maker(value))
            state = self.instruction(node).attributes.get("state")
            if state is not None:
                self._depends(node, last_user.get(state[0].constant))
                last_user[state[0].constant] = node

    def _depends(self, node: int, on: int | None) -> None:
        if on is not None:
            self.predecessors[node].add(on)
            self.successors[on].add(node)
