"""A backend whose blobs name subgraphs that it keeps, for the interpreter to run."""

from __future__ import annotations

from collections.abc import Callable

from llm_export.partition.backend import Backend, Blob, Subgraph, Unsupported
from llm_export.program.instructions import Instruction, LoweredMethod


class KeepingBackend(Backend):
    """takes: which instructions; views are always taken"""

    def __init__(self, name: str, takes: Callable[[Instruction], bool], min_instructions: int = 1, owns_states=False):
        self.name, self.takes, self.min_instructions = name, takes, min_instructions
        self.owns_states = owns_states
        self.methods: dict[bytes, LoweredMethod] = {}

    def lower(self, subgraph: Subgraph) -> Blob:
        method = subgraph.method
        for instruction in method.instructions:
            is_view = method.values[instruction.outputs[0]].alias_of >= 0
            if not is_view and not self.takes(instruction):
                raise Unsupported(f"not {instruction.op}")
        blob = f"{self.name} {len(self.methods)}".encode()
        self.methods[blob] = method
        return Blob(blob, tuple(sorted({value.weight for value in method.values if value.kind == "weight"})))
