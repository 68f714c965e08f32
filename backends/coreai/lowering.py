"""Instructions to functions of a Core AI asset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llm_export.errors import ArgumentError
from llm_export.partition.backend import Backend, Blob, Read, Subgraph
from llm_export.program.specs import StateSpec

from . import attention, elements, products, recurrences, rows, views  # noqa: F401  register their ops
from .asset import SUFFIX, emit, write
from .emitter import Emitter
from .function import Function
from .refusals import MAX_UNROLLED, Refusal
from .registry import OPS
from .vendor import check_installed
from .weights import Weights

CONTEXT_LENGTH = 4096
TOKEN_COUNTS = (16, 128)


class CoreaiBackend(Backend):
    """Runs whole decoders on Apple's accelerators, with caches of a fixed size.

    context_length: positions that caches hold, at most   token_counts: of the calls that prompts are divided into
    """

    name = "coreai"
    owns_states = True
    asset_suffix = SUFFIX
    takes_rotated_inputs = False
    takes_rounded_inputs = False

    def __init__(self, context_length: int = CONTEXT_LENGTH, token_counts: Sequence[int] = TOKEN_COUNTS):
        if context_length < 1:
            raise ArgumentError(f"coreai: context_length = {context_length}: must be at least 1")
        self.context_length, self.token_counts = context_length, tuple(token_counts)

    def check_installed(self) -> None:
        check_installed()

    def counts_for(self, most: int, states: Sequence[StateSpec]) -> tuple[int, ...]:
        if any(state.kind == "recurrent" for state in states):
            most = min(most, MAX_UNROLLED)
        most = min(most, self.context_length)
        return tuple(count for count in self.token_counts if count <= most) or (most,) * (most > 1)

    def lower(self, subgraph: Subgraph) -> Blob:
        if any(instruction.op not in OPS for instruction in subgraph.method.instructions):
            raise Refusal.OP.of()
        emit(Function(subgraph, Emitter(), Weights(), self.context_length))
        return Blob(b"", ())

    def assemble(
        self, parts: Sequence[Subgraph], read: Read, folder: Path, name: str, context_length: int
    ) -> list[bytes]:
        return write(parts, read, folder, name, min(self.context_length, context_length))

    def open_model(self, path: Path, folder: Path | None = None):
        from .executor import Model

        return Model(path, folder)
