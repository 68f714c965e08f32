"""Islands on graphs made by hand and at random."""

from __future__ import annotations

import networkx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_export.instructions.dims import constant
from llm_export.partition.graph import MethodGraph
from llm_export.partition.islands import find_islands
from llm_export.program.instructions import Dim, Instruction, LoweredMethod, Value


def method_of(edges: dict[int, list[int]], states: dict[int, int] | None = None) -> LoweredMethod:
    """A method whose instruction i reads what the instructions edges[i] make; one without any reads the input."""
    values = [Value("input", torch.float32, (constant(4),))]
    instructions = []
    for node, sources in edges.items():
        values.append(Value("activation", torch.float32, (constant(4),)))
        attributes = {"state": (Dim(0, states[node]),)} if states and node in states else {}
        inputs = [source + 1 for source in sources] or [0]
        instructions.append(Instruction("aten.cat", inputs, [node + 1], attributes))
    return LoweredMethod("verify", values, [0], ["x"], [len(edges)], instructions)


def islands(edges: dict[int, list[int]], taken: set[int], states: dict[int, int] | None = None) -> list[list[int]]:
    return find_islands(MethodGraph(method_of(edges, states)), taken)


def test_a_chain_is_one_island():
    assert islands({0: [], 1: [0], 2: [1]}, {0, 1, 2}) == [[0, 1, 2]]


def test_a_node_in_between_cuts_a_chain():
    assert islands({0: [], 1: [0], 2: [1]}, {0, 2}) == [[0], [2]]


def test_a_diamond_with_a_foreign_side_is_two_islands():
    # 0 and 3 are neighbours through 1, and 2 lies between them.
    found = islands({0: [], 1: [0], 2: [0], 3: [1, 2]}, {0, 1, 3})
    assert sorted(map(len, found)) == [1, 2]


def test_two_islands_may_not_wait_for_each_other():
    # 0 -> 1 -> 4 and 2 -> 3 -> 5 with foreign 1 and 3: {0, 5} and {2, 4} together would be a circle.
    edges = {0: [], 1: [0], 2: [], 3: [2], 4: [1, 2], 5: [3, 0]}
    check(edges, {0, 2, 4, 5})


def test_readers_of_one_value_are_one_island():
    assert islands({0: [], 1: [0], 2: [0], 3: [0]}, {1, 2, 3}) == [[1, 2, 3]]


def test_instructions_of_one_state_keep_their_order():
    edges = {0: [], 1: [0], 2: [], 3: [2, 0]}
    assert islands(edges, {0, 2, 3}, states={1: 7, 2: 7}) in ([[0], [2, 3]], [[0, 3], [2]], [[0], [2], [3]])


def test_islands_of_two_backends_may_not_wait_for_each_other():
    # 0 and 1 are read by two each; 2 -> 3 and 4 -> 5 lead from one pair of readers to the other and back.
    edges = {0: [], 1: [], 2: [0], 3: [1, 2], 4: [1], 5: [0, 4]}
    first = islands(edges, {3, 4})
    assert first == [[3, 4]]
    second = find_islands(MethodGraph(method_of(edges)), {2, 5}, first)
    assert second == [[2], [5]]


@st.composite
def graphs(draw):
    size = draw(st.integers(1, 24))
    edges = {
        node: draw(st.lists(st.integers(0, node - 1), max_size=3, unique=True)) if node else [] for node in range(size)
    }
    return edges, draw(st.sets(st.integers(0, size - 1)))


@given(graphs())
def test_islands_of_random_graphs_can_be_run_and_cannot_be_joined(case):
    check(*case)


@given(graphs(), st.sets(st.integers(0, 23)))
def test_islands_of_two_backends_on_random_graphs_can_be_run(case, others):
    edges, taken = case
    first = islands(edges, taken)
    second = find_islands(MethodGraph(method_of(edges)), (others & set(edges)) - taken, first)
    assert networkx.is_directed_acyclic_graph(contracted(edges, [*first, *second]))


def check(edges: dict[int, list[int]], taken: set[int]) -> None:
    found = islands(edges, taken)
    assert sorted(node for island in found for node in island) == sorted(taken)
    assert networkx.is_directed_acyclic_graph(contracted(edges, found))
    for i, one in enumerate(found):
        for j, other in enumerate(found[:i]):
            if any(source in other for node in one for source in edges[node]):
                joined = [*found[:j], *found[j + 1 : i], *found[i + 1 :], [*one, *other]]
                assert not networkx.is_directed_acyclic_graph(contracted(edges, joined)), (one, other)


def contracted(edges: dict[int, list[int]], found: list[list[int]]) -> networkx.DiGraph:
    group = {node: (node,) for node in edges} | {node: tuple(island) for island in found for node in island}
    graph = networkx.DiGraph()
    graph.add_nodes_from(group.values())
    graph.add_edges_from(
        (group[source], group[node])
        for node, sources in edges.items()
        for source in sources
        if group[source] != group[node]
    )
    return graph


@pytest.mark.parametrize("size", [2000])
def test_a_deep_model_is_grouped(size):
    edges = {node: [source for source in (node - 1, node - 7) if source >= 0] for node in range(size)}
    check_order = islands(edges, {node for node in edges if node % 7})
    assert len(check_order) == -(-size // 7)
