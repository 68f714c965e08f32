"""Norms, reductions and orders of rows, and convolutions over them."""

from __future__ import annotations

from llm_export.program.instructions import Instruction, fixed, number, optional

from .blob import Op, View
from .graph_builder import GraphBuilder, Shape, integers
from .refusals import Refusal
from .registry import ROWS, op

REDUCTIONS = ("sum", "mean", "amax", "amin", "prod")
NORM_OF_A_LINEAR = 2  # after the norms of ops
DESCENDING, ASCENDING, ASCENDING_NAN_FIRST = range(3)


@op("mote.rms_norm", "mote.layer_norm", refuses=ROWS)
def norm(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.rows(graph.activation(instruction.inputs[0]))
    weight, bias = (optional(instruction, i) for i in (1, 2))
    parameters = [graph.parameter(index) for index in (weight, bias)]
    is_layer = instruction.op == "mote.layer_norm"
    numbers = (number(instruction, "eps"), number(instruction, "unit_offset"))
    graph.node(Op.norm, (x, *parameters), (graph.result(instruction.outputs[0]),), (int(is_layer),), numbers)


@op(*(f"aten.{name}" for name in REDUCTIONS), refuses=(Refusal.ROWS,))
def reduce(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.strided_rows(graph.activation(instruction.inputs[0]), sorted(integers(instruction, "dims")))
    function = REDUCTIONS.index(instruction.op.removeprefix("aten."))
    graph.node(Op.reduce, (x,), (graph.result(instruction.outputs[0]),), (function,))


def along(graph: GraphBuilder, sizes: Shape, axis: int, output: int) -> tuple[View, bool]:
    """Where a node writes rows that lie along an axis of an output; whether they are moved there afterwards."""
    if axis == len(sizes) - 1:
        return graph.result(output), False
    return graph.new((*sizes[:axis], *sizes[axis + 1 :], sizes[axis]), graph.content_of(output)), True


def move(graph: GraphBuilder, rows: View, axis: int, output: int) -> None:
    moved = graph.moved(rows, lambda x, _: x.movedim(-1, axis))
    if moved is None:
        raise Refusal.GROWTH.of()
    graph.same(output, moved)


@op("aten.softmax", "aten.log_softmax", refuses=(Refusal.ROWS,))
def softmax(graph: GraphBuilder, instruction: Instruction) -> None:
    x, (axis,) = graph.activation(instruction.inputs[0]), integers(instruction, "dim")
    y, is_moved = along(graph, x.sizes, axis, instruction.outputs[0])
    is_log = int(instruction.op == "aten.log_softmax")
    graph.node(Op.softmax, (graph.strided_rows(x, (axis,)),), (y,), (is_log,))
    if is_moved:
        move(graph, y, axis, instruction.outputs[0])


@op("aten.topk", "aten.sort", "aten.max", "aten.min", "aten.argmax", refuses=(Refusal.ROWS,))
def top(graph: GraphBuilder, instruction: Instruction) -> None:
    x, (axis,) = graph.activation(instruction.inputs[0]), integers(instruction, "dim")
    name = instruction.op.removeprefix("aten.")
    count, order = fixed(1), ASCENDING_NAN_FIRST if name == "min" else DESCENDING
    if name == "topk":
        (count,) = instruction.attributes["k"]
        order = DESCENDING if number(instruction, "largest", 1.0) else ASCENDING
    if name == "sort":
        count = x.sizes[axis]
        order = DESCENDING if number(instruction, "descending") else ASCENDING
    if count.tokens:
        raise Refusal.GROWTH.of()
    # What keeps no dimension has the same elements in the same order.
    sizes = (*x.sizes[:axis], count, *x.sizes[axis + 1 :])
    places = [-1, *instruction.outputs] if name == "argmax" else instruction.outputs
    is_single = count == fixed(1)
    made = [
        (graph.new(sizes), False) if place < 0
        else (graph.result(place), False) if is_single
        else along(graph, sizes, axis, place)
        for place in places
    ]  # fmt: skip
    graph.node(Op.top, (graph.strided_rows(x, (axis,)),), [y for y, _ in made], (count.constant, order))
    for place, (y, is_moved) in zip(places, made, strict=True):
        if is_moved:
            move(graph, y, axis, place)


@op("mote.short_conv", refuses=(*ROWS, Refusal.STATE))
def short_conv(graph: GraphBuilder, instruction: Instruction) -> None:
    (state,) = integers(instruction, "state")
    graph.history(state)
    x = graph.rows(graph.activation(instruction.inputs[0]))
    if x.sizes[0] != fixed(1):
        raise Refusal.ROWS.of()
    weight, bias = (graph.parameter(optional(instruction, i)) for i in (1, 2))
    graph.node(Op.short_conv, (x, weight, bias), (graph.result(instruction.outputs[0]),), (state,))


@op("mote.linear_attention", refuses=(Refusal.STATE, Refusal.WIDE))
def linear_attention(graph: GraphBuilder, instruction: Instruction) -> None:
    (state,) = integers(instruction, "state")
    indices = [optional(instruction, i) for i in range(5)]
    q, k, v, decay, beta = (graph.activation(index) if index >= 0 else None for index in indices)
    decays = 0 if decay is None else 1 if len(decay.sizes) == 3 else k.sizes[3].constant
    graph.recurrence(state, k.sizes[2].constant, decays)
    graph.node(Op.linear_attention, (q, k, v, decay, beta), (graph.result(instruction.outputs[0]),), (state,))
