"""Instructions to nodes for a GPU."""

from __future__ import annotations

from llm_export.partition.backend import Backend, Blob, Subgraph

from . import attention, elements, products, rows, views  # noqa: F401  register their ops
from .graph_builder import GraphBuilder
from .refusals import Refusal
from .registry import OPS


class VulkanBackend(Backend):
    """Runs whole decoders on a GPU, which keeps keys and values too."""

    name = "vulkan"
    owns_states = True

    def lower(self, subgraph: Subgraph) -> Blob:
        if any(instruction.op not in OPS for instruction in subgraph.method.instructions):
            raise Refusal.OP.of()
        graph = GraphBuilder(subgraph)
        for instruction in subgraph.method.instructions:
            graph.origin = instruction.origin
            OPS[instruction.op].lower(graph, instruction)
        return Blob(graph.build(), tuple(graph.weights))
