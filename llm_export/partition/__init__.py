"""Gives each target of a program its delegates.

Asks backends which instructions they take, groups these into islands, each of which runs as one call, and has the
backends lower the islands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from llm_export.errors import ProgramError
from llm_export.instructions.specialize import specialize
from llm_export.partition.backend import Backend, Subgraph, Unsupported
from llm_export.partition.divide import divide
from llm_export.partition.extract import Island, extract, replace_islands
from llm_export.partition.graph import MethodGraph
from llm_export.partition.islands import find_islands
from llm_export.partition.targets import Target
from llm_export.program.instructions import ON_CPU, DelegateSpec, Lowered, LoweredMethod, Program


@dataclass(frozen=True)
class Refusal:
    """An instruction that a backend does not run, and why."""

    target: str
    method: str
    op: str
    origin: str
    backend: str
    reason: str


@dataclass(frozen=True)
class Partitioned:
    """What `partition` returns: every method once a target.

    num_delegated: (target, label of a method) to the instructions in delegates and those in all, views not counted
    embedded: indices of the weights that embeddings read
    parts: what each delegate was made of
    """

    program: Program
    refusals: list[Refusal] = field(default_factory=list)
    num_delegated: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    embedded: frozenset[int] = frozenset()
    parts: list[Subgraph] = field(default_factory=list)


def partition(lowered: Lowered, targets: Sequence[Target]) -> Partitioned:
    """Has the backends of each target take their parts of every method; weights and states stay as they are.

    targets: in order of preference
    Errors: ProgramError if a backend takes the instructions of an island one by one and not together, or for token
        counts that cannot be
    """
    program = Program([], lowered.states, lowered.weights, lowered.constants)
    result = Partitioned(program, embedded=_embedded(lowered))
    for target in targets:
        methods = _methods(lowered, target)
        works = [_Work(MethodGraph(method)) for method in methods if method.name not in ON_CPU]
        for backend in target.backends:
            _take(result, target, backend, works)
        for work in works:
            result.program.methods.append(_replace(result, target, work))
        # The CPU alone gives embeddings: it computes several texts in one call. And it has the states of a draft head.
        on_cpu = [method for method in methods if method.name in ON_CPU]
        result.program.methods.extend(replace(method, target=target.name) for method in on_cpu)
    return result


def _methods(lowered: Lowered, target: Target) -> list[LoweredMethod]:
    """The methods of a target: one for each length that its backends ask for."""
    most = min(method.max_tokens for method in lowered.methods if not method.is_fixed)
    all_counts = {backend.name: tuple(backend.counts_for(most, lowered.states)) for backend in target.backends}
    asked = {counts: name for name, counts in all_counts.items() if counts}
    if len(asked) > 1:
        lengths = "; ".join(f"{name}: {', '.join(map(str, counts))}" for counts, name in asked.items())
        raise ProgramError(f"{target.name}: its backends ask for different token counts: {lengths}")
    counts = sorted(next(iter(asked), ()))
    if not counts:
        return lowered.methods
    if counts[0] < 2 or counts[-1] > most or len(set(counts)) < len(counts):
        given = f"{target.name}: token_counts = {tuple(counts)}"
        raise ProgramError(f"{given}: must be different numbers from 2 to {most}")
    methods: list[LoweredMethod] = []
    for method in lowered.methods:
        is_kept = method.is_fixed or method.name in ON_CPU
        methods += [method] if is_kept else [specialize(method, method.name, count) for count in counts]
    return methods


@dataclass
class _Work:
    """A method of a target while backends take parts of it.

    left: nodes that no backend has taken yet
    """

    graph: MethodGraph
    left: set[int] = field(init=False)
    islands: list[tuple[Backend, Island]] = field(default_factory=list)

    def __post_init__(self):
        self.left = set(self.graph.nodes)

    def made(self) -> list[Sequence[int]]:
        return [island.nodes for _, island in self.islands]


def _take(result: Partitioned, target: Target, backend: Backend, works: Sequence[_Work]) -> None:
    """Gives a backend its islands of every method. It gets all instructions that touch a state, or none of them."""
    taken = [_taken(result, target, backend, work) for work in works]
    refused: dict[tuple[int, int], str] = {}
    while True:
        found = [find_islands(work.graph, nodes, work.made()) for work, nodes in zip(works, taken, strict=True)]
        kept = [_worth_a_call(backend, islands) for islands in found]
        shared = _partly_taken(works, kept)
        if not shared:
            break
        for index, (work, nodes) in enumerate(zip(works, taken, strict=True)):
            for node in [node for node in nodes if _state(work.graph, node) in shared]:
                nodes.discard(node)
                refused[index, node] = "not all that touches its state is taken"
    for index, (work, islands) in enumerate(zip(works, found, strict=True)):
        for island in islands:
            if island[0] in kept[index]:
                parts = _divided(result, backend, work, island)
                work.islands += [(backend, extract(work.graph, part)) for part in parts]
            else:
                reason = f"too few to be worth a call: {len(island)} together, fewer than {backend.min_instructions}"
                refused.update({(index, node): reason for node in island})
        work.left -= kept[index]
    for (index, node), reason in sorted(refused.items()):
        result.refusals.append(_refusal(target, backend, works[index].graph, node, reason))


def _divided(result: Partitioned, backend: Backend, work: _Work, island: list[int]) -> list[list[int]]:
    if not backend.max_part_bytes:
        return [island]
    weights = result.program.weights
    return divide(work.graph, island, lambda index: backend.weight_bytes(weights[index]), backend.max_part_bytes)


def _taken(result: Partitioned, target: Target, backend: Backend, work: _Work) -> set[int]:
    taken = set()
    for node in sorted(work.left):
        reason = _reason(result, backend, work.graph, node)
        if reason is None:
            taken.add(node)
        else:
            result.refusals.append(_refusal(target, backend, work.graph, node, reason))
    return taken


def _reason(result: Partitioned, backend: Backend, graph: MethodGraph, node: int) -> str | None:
    if _depends_on_call(graph, node):
        return "what a token becomes depends on its call, which the runner must see"
    reason = backend.refusal(_subgraph(result, extract(graph, [node])))
    if reason is None and _state(graph, node) is not None and not backend.owns_states:
        return f"{graph.instruction(node).op}: it owns no states"
    return reason


def _depends_on_call(graph: MethodGraph, node: int) -> bool:
    """Whether a node takes the largest position of a call, as some RoPE types do: such calls cannot be padded."""
    instruction = graph.instruction(node)
    position_ids = graph.method.inputs[graph.method.input_names.index("position_ids")]
    return instruction.op == "aten.amax" and graph.root(instruction.inputs[0]) == position_ids


def _worth_a_call(backend: Backend, islands: Sequence[Sequence[int]]) -> set[int]:
    return {node for nodes in islands if len(nodes) >= backend.min_instructions for node in nodes}


def _state(graph: MethodGraph, node: int) -> int | None:
    state = graph.instruction(node).attributes.get("state")
    return state[0].constant if isinstance(state, tuple) else None


def _partly_taken(works: Sequence[_Work], kept: Sequence[set[int]]) -> set[int]:
    """States that are touched both by nodes that are kept and by nodes that are not."""
    inside = {
        state
        for work, nodes in zip(works, kept, strict=True)
        for node in nodes
        if (state := _state(work.graph, node)) is not None
    }
    outside = {
        _state(work.graph, node)
        for work, nodes in zip(works, kept, strict=True)
        for node in work.graph.nodes
        if node not in nodes
    }
    return inside & outside


def _replace(result: Partitioned, target: Target, work: _Work) -> LoweredMethod:
    graph, first_delegate = work.graph, len(result.program.delegates)
    for backend, island in work.islands:
        result.program.delegates.append(_lower(result, backend, island))
        result.parts.append(_subgraph(result, island))
    result.num_delegated[target.name, graph.method.label] = (len(graph.nodes) - len(work.left), len(graph.nodes))
    islands = [island for _, island in work.islands]
    partitioned = replace_islands(graph, islands, first_delegate) if islands else graph.method
    return replace(partitioned, target=target.name)


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
    """How many instructions of each op a method has, the most frequent first; views are not counted."""
    return dict(Counter(i.op for i in method.instructions if method.values[i.outputs[0]].alias_of < 0).most_common())


def _subgraph(result: Partitioned, island: Island) -> Subgraph:
    program = result.program
    return Subgraph(island.method, program.weights, program.constants, result.embedded, program.states)


def _embedded(lowered: Lowered) -> frozenset[int]:
    return frozenset(
        method.values[instruction.inputs[1]].weight
        for method in lowered.methods
        for instruction in method.instructions
        if instruction.op == "mote.embedding"
    )


def _refusal(target: Target, backend: Backend, graph: MethodGraph, node: int, reason: str) -> Refusal:
    instruction = graph.instruction(node)
    return Refusal(target.name, graph.method.label, instruction.op, instruction.origin, backend.name, reason)
