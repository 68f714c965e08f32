"""Attention over the session's caches, and what turns queries and keys."""

from __future__ import annotations

from llm_export.program.instructions import Instruction

from .blob import Op
from .graph_builder import GraphBuilder, fixed, integers, number, optional
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


@op(
    "mote.attention",
    refuses=(Refusal.SIGHT, Refusal.INPUT, Refusal.STATE, Refusal.WIDTH),
)
def attention(graph: GraphBuilder, instruction: Instruction) -> None:
    (state,) = integers(instruction, "state")
    for what, index in (("chosen keys", 6), ("biases by distance", 7)):
        if optional(instruction, index) >= 0:
            raise Refusal.SIGHT.of(what=what)
    sinks = optional(instruction, 4)
    if sinks >= 0 and len(graph.method.values[sinks].shape) != 1:
        raise Refusal.SIGHT.of(what="sinks of tokens")
    if number(instruction, "chunked", 0.0):
        raise Refusal.SIGHT.of(what="chunks of positions")
    if number(instruction, "value_dim", 0.0):
        raise Refusal.SIGHT.of(what="values that are parts of keys")
    if number(instruction, "stride", 1.0) != 1:
        raise Refusal.SIGHT.of(what="strides of keys")
    graph.cache(state)
    activations = [optional(instruction, i) for i in (0, 1, 2)]
    q, k, v = (graph.activation(index) if index >= 0 else None for index in activations)
    if any(view is not None and view.strides[-1] != fixed(1) for view in (q, k, v)):
        raise Refusal.STRIDES.of()
    positions = graph.integer_input(instruction.inputs[3], "positions")
    sinks, slopes = (optional(instruction, i) for i in (4, 5))
    parameters = [graph.parameter(index) for index in (sinks, slopes)]
    first = graph.subgraph.states[state].num_sink_positions
    window, is_bidirectional = (int(number(instruction, name)) for name in ("window", "bidirectional"))
    integers_ = (state, window, first, is_bidirectional)
    numbers = (number(instruction, "scale"), number(instruction, "softcap"))
    inputs = (q, k, v, positions, *parameters)
    graph.node(Op.attention, inputs, (graph.result(instruction.outputs[0]),), integers_, numbers)
