"""Instructions to graphs for Qualcomm's HTP, a graph for each length of a call."""

from __future__ import annotations

from collections.abc import Sequence

from llm_export.partition.backend import Backend, Blob, Subgraph
from llm_export.program.specs import StateSpec, WeightSpec

from . import elements, experts, layers  # noqa: F401  register their ops
from .graph_builder import GraphBuilder, bytes_of
from .refusals import MAX_CONTEXT_BYTES, Refusal
from .registry import OPS

CONTEXT_LENGTH = 2048
TOKEN_COUNTS = (32, 128)


class QnnBackend(Backend):
    """Runs the layers of decoders on Qualcomm's HTP in float16, with keys and values in slots.

    context_length: positions that there are slots for
    token_counts: of the calls that prompts are divided into
    context_bytes: that the weights of one of QNN's contexts may take; more get several, cut between layers
    weights: "blocks": 4 bits stay 4 bits, with inputs of 16 bits; the file then has no negative multipliers.
        "bytes": they become 8 bits, with float16 inputs
    """

    name = "qnn"
    owns_states = True
    takes_rotated_inputs = False
    takes_rounded_inputs = False
    takes_values_in_keys = False

    def __init__(
        self,
        context_length: int = CONTEXT_LENGTH,
        token_counts: Sequence[int] = TOKEN_COUNTS,
        weights: str = "blocks",
        context_bytes: int = MAX_CONTEXT_BYTES,
    ):
        if context_length < 1:
            raise ValueError(f"context_length = {context_length}: must be at least 1")
        if weights not in ("blocks", "bytes"):
            raise ValueError(f"weights = {weights!r}: must be 'blocks' or 'bytes'")
        if not 1 <= context_bytes <= MAX_CONTEXT_BYTES:
            raise ValueError(f"context_bytes = {context_bytes}: must be 1 to {MAX_CONTEXT_BYTES}")
        self.context_bytes = context_bytes
        self.max_part_bytes = context_bytes - context_bytes // 64  # constants are weights of a context too
        self.takes_signed_multipliers = weights == "bytes"
        self.context_length, self.token_counts = context_length, tuple(token_counts)

    def counts_for(self, most: int, states: Sequence[StateSpec]) -> tuple[int, ...]:
        most = min(most, self.context_length)
        return tuple(count for count in self.token_counts if count <= most) or (most,) * (most > 1)

    def weight_bytes(self, spec: WeightSpec) -> int:
        return bytes_of(spec)

    def lower(self, subgraph: Subgraph) -> Blob:
        graph = GraphBuilder(subgraph, self.context_length, self.context_bytes)
        for instruction in subgraph.method.instructions:
            if instruction.op not in OPS:
                raise Refusal.OP.of()
            OPS[instruction.op].lower(graph, instruction)
        return graph.build()
