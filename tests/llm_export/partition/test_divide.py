"""Islands cut where weights are too large for one part, on chains made by hand."""

from __future__ import annotations

import torch

from llm_export.instructions.dims import constant
from llm_export.partition.divide import divide
from llm_export.partition.graph import MethodGraph
from llm_export.program.instructions import Instruction, LoweredMethod, Value

# Two layers of a decoder: each node's number, the nodes that it reads, its weight. Residuals cross what is between.
LAYERS = [([], 0), ([0], 1), ([0, 1], 2), ([2], 3), ([2, 3], 4), ([4], 5), ([4, 5], 6)]


def graph_of(nodes: list[tuple[list[int], int]]) -> MethodGraph:
    shape, count = (constant(4),), len(nodes)
    values = [Value("activation", torch.float32, shape) for _ in nodes]
    values += [Value("weight", torch.float32, shape, weight=weight) for _, weight in nodes]
    values.append(Value("input", torch.float32, shape))
    steps = [Instruction("aten.cat", [*(reads or [2 * count]), count + i], [i]) for i, (reads, _) in enumerate(nodes)]
    return MethodGraph(LoweredMethod("decode", values, [2 * count], ["x"], [count - 1], steps))


def divided(nodes: list[tuple[list[int], int]], most: int, size: int = 10) -> list[list[int]]:
    graph = graph_of(nodes)
    return divide(graph, graph.nodes, lambda index: size, most)


def test_what_fits_is_one_part():
    assert divided(LAYERS, 70) == [[*range(7)]]


def test_cuts_lie_where_one_value_crosses():
    assert divided(LAYERS, 40) == [[0, 1, 2], [3, 4, 5, 6]]
    assert divided(LAYERS, 60) == [[0, 1, 2, 3, 4], [5, 6]]


def test_a_weight_that_several_read_counts_once():
    assert divided([(reads, 0) for reads, _ in LAYERS], 10) == [[*range(7)]]


def test_an_instruction_is_never_cut():
    assert divided(LAYERS, 5) == [[i] for i in range(7)]
