"""Attention over the session's caches, and what turns queries and keys."""

from __future__ import annotations

from llm_export.program.instructions import Instruction, fixed, number, optional

from .blob import Op
from .graph_builder import GraphBuilder, integers
from .refusals import Refusal
from .registry import op

LAYOUTS = ("half", "half_flipped", "interleaved")


@op("mote.rope_table")
def rope_table(graph: GraphBuilder, instruction: Instruction) -> None:
    positions = graph.integers(instruction.inputs[0])
    frequencies = graph.parameter(instruction.inputs[1])
    outputs = [graph.result(index) for index in instruction.outputs]
    is_interleaved = instruction.attributes.get("layout") == "interleaved"
    scale = number(instruction, "scale", 1.0)
    graph.node(Op.rope_table, (positions, frequencies), outputs, (int(is_interleaved),), (scale,))


@op("mote.rope", refuses=(Refusal.STRIDES,))
def rope(graph: GraphBuilder, instruction: Instruction) -> None:
    x, cos, sin = (graph.activation(index) for index in instruction.inputs)
    if x.strides[-1] != fixed(1):
        raise Refusal.STRIDES.of()
    layout = LAYOUTS.index(instruction.attributes["layout"])
    graph.node(Op.rope, (x, cos, sin), (graph.result(instruction.outputs[0]),), (layout,))


@op("mote.attention", "mote.attention_lse", refuses=(Refusal.INPUT, Refusal.STATE, Refusal.WIDTH))
def attention(graph: GraphBuilder, instruction: Instruction) -> None:
    (state,) = integers(instruction, "state")
    graph.cache(state)
    activations = [optional(instruction, i) for i in (0, 1, 2)]
    q, k, v = (graph.activation(index) if index >= 0 else None for index in activations)
    if any(view is not None and view.strides[-1] != fixed(1) for view in (q, k, v)):
        raise Refusal.STRIDES.of()
    positions = graph.integer_input(instruction.inputs[3], "positions")
    sinks, slopes, chosen, biases = (optional(instruction, i) for i in (4, 5, 6, 7))
    parameters = [graph.parameter(index) for index in (sinks, slopes)]
    parameters.append(graph.integers(chosen) if chosen >= 0 else None)
    parameters.append(graph.parameter(biases))
    first = graph.subgraph.states[state].num_sink_positions
    names = ("window", "bidirectional", "chunked", "stride")
    window, is_bidirectional, is_chunked, stride = (int(number(instruction, name)) for name in names)
    integers_ = (state, window, first, is_bidirectional, is_chunked, max(stride, 1))
    numbers = (number(instruction, "scale"), number(instruction, "softcap"))
    inputs = (q, k, v, positions, *parameters)
    graph.node(Op.attention, inputs, [graph.result(index) for index in instruction.outputs], integers_, numbers)


@op(
    "mote.indexer",
    refuses=(Refusal.STRIDES, Refusal.INPUT, Refusal.STATE, Refusal.WIDTH, Refusal.SPREAD),
)
def indexer(graph: GraphBuilder, instruction: Instruction) -> None:
    (state,) = integers(instruction, "state")
    cache = graph.cache(state, has_values=False)
    if cache.value_head_dim != 1:
        raise Refusal.SPREAD.of(width=cache.value_head_dim)
    q, k = (graph.activation(instruction.inputs[i]) for i in (0, 1))
    if any(view.strides[-1] != fixed(1) for view in (q, k)):
        raise Refusal.STRIDES.of()
    positions = graph.integer_input(instruction.inputs[2], "positions")
    weights = graph.parameter(optional(instruction, 3))
    (topk,) = integers(instruction, "topk")
    block, stride = (int(number(instruction, name, 1.0)) for name in ("block", "stride"))
    inputs, outputs = (q, k, positions, weights), (graph.result(instruction.outputs[0]),)
    graph.node(Op.indexer, inputs, outputs, (state, topk, max(block, stride), int(stride > 1)))
