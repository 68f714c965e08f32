"""Gives each lowering of a program its delegates.

Asks backends which instructions they take, makes islands of these and has the backends lower them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from llm_export.backend import Backend, Subgraph, Unsupported
from llm_export.errors import ProgramError
from llm_export.partition.extract import Island, extract, replace_islands
from llm_export.partition.graph import MethodGraph
from llm_export.partition.islands import find_islands
from llm_export.program.instructions import CPU, DelegateSpec, LoweredMethod, LoweredProgram


@dataclass(frozen=True)
class Lowering:
    """A way to run the whole program: these backends, the first one first, and the CPU's kernels for the rest."""

    backends: tuple[Backend, ...] = ()

    @property
    def name(self) -> str:
        return "+".join(backend.name for backend in self.backends) or CPU


@dataclass(frozen=True)
class Refusal:
    """An instruction that a backend does not run, and why."""

    lowering: str
    method: str
    op: str
    origin: str
    backend: str
    reason: str


@dataclass
class Partitioned:
    """What `partition` returns.

    num_delegated: (lowering, method) to the instructions in delegates and those in all, views not counted
    embedded: indices of the weights that embeddings read
    """

    program: LoweredProgram
    refusals: list[Refusal] = field(default_factory=list)
    num_delegated: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    embedded: frozenset[int] = frozenset()


def partition(program: LoweredProgram, lowerings: Sequence[Lowering]) -> Partitioned:
    """Returns a program that has every method once a lowering, over the same weights and states.

    program: what `lower` gave   lowerings: in order of preference
    Errors: ProgramError if a backend takes the instructions of an island one by one and not together
    """
    result = Partitioned(replace(program, methods=[], delegates=[]), embedded=_embedded(program))
    for lowering in lowerings:
        for method in program.methods:
            result.program.methods.append(_partition_method(result, lowering, method))
    return result


def _partition_method(result: Partitioned, lowering: Lowering, method: LoweredMethod) -> LoweredMethod:
    graph = MethodGraph(method)
    left = set(graph.nodes)
    islands: list[Island] = []
    first_delegate = len(result.program.delegates)
    for backend in lowering.backends:
        taken = _taken(result, lowering, backend, graph, left)
        for nodes in find_islands(graph, taken):
            if len(nodes) < backend.min_instructions:
                reason = f"too few to be worth a call: {len(nodes)} together, fewer than {backend.min_instructions}"
                result.refusals += [_refusal(lowering, backend, graph, node, reason) for node in nodes]
                continue
            islands.append(extract(graph, nodes))
            result.program.delegates.append(_lower(result, backend, islands[-1]))
            left -= set(nodes)
    result.num_delegated[lowering.name, method.name] = (len(graph.nodes) - len(left), len(graph.nodes))
    partitioned = replace_islands(graph, islands, first_delegate) if islands else method
    return replace(partitioned, lowering=lowering.name)


def _taken(
    result: Partitioned, lowering: Lowering, backend: Backend, graph: MethodGraph, candidates: set[int]
) -> set[int]:
    taken = set()
    for node in sorted(candidates):
        reason = backend.refusal(_subgraph(result, extract(graph, [node])))
        if reason is None:
            taken.add(node)
        else:
            result.refusals.append(_refusal(lowering, backend, graph, node, reason))
    return taken


def _lower(result: Partitioned, backend: Backend, island: Island) -> DelegateSpec:
    try:
        blob = backend.lower(_subgraph(result, island))
    except Unsupported as error:
        raise ProgramError(
            f"{backend.name}: {island.method.name}: takes {len(island.nodes)} instructions one by one, "
            f"and not together: {error}"
        ) from error
    return DelegateSpec(backend.name, blob.data, blob.weights, _ops(island.method))


def _ops(method: LoweredMethod) -> dict[str, int]:
    """How many instructions of each op it has, the most frequent first; views are not counted."""
    return dict(Counter(i.op for i in method.instructions if method.values[i.outputs[0]].alias_of < 0).most_common())


def _subgraph(result: Partitioned, island: Island) -> Subgraph:
    return Subgraph(island.method, result.program.weights, result.program.constants, result.embedded)


def _embedded(program: LoweredProgram) -> frozenset[int]:
    return frozenset(
        method.values[instruction.inputs[1]].weight
        for method in program.methods
        for instruction in method.instructions
        if instruction.op == "mote.embedding"
    )


def _refusal(lowering: Lowering, backend: Backend, graph: MethodGraph, node: int, reason: str) -> Refusal:
    instruction = graph.instruction(node)
    return Refusal(lowering.name, graph.method.name, instruction.op, instruction.origin, backend.name, reason)
