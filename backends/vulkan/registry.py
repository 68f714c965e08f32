"""Functions that lower ops, by the names of docs/ops.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llm_export.program.instructions import Instruction

from .graph_builder import GraphBuilder
from .refusals import Refusal

Lower = Callable[[GraphBuilder, Instruction], None]


@dataclass(frozen=True)
class OpEntry:
    """refuses: its reasons beside those that any op may have"""

    lower: Lower
    refuses: tuple[Refusal, ...]


OPS: dict[str, OpEntry] = {}
ROWS = (Refusal.STRIDES, Refusal.ROWS)


def op(*names: str, refuses: tuple[Refusal, ...] = ()) -> Callable[[Lower], Lower]:
    def register(function: Lower) -> Lower:
        OPS.update(dict.fromkeys(names, OpEntry(function, refuses)))
        return function

    return register
