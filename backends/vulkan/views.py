"""What moves elements, and copies."""

from __future__ import annotations

from collections.abc import Callable

import torch

from llm_export.program.instructions import Instruction, fixed, number

from .blob import Content, View
from .graph_builder import GraphBuilder, contiguous, integers, plus, product
from .refusals import Refusal
from .registry import op

Move = Callable[[torch.Tensor, int], torch.Tensor]  # of a tensor and T
CASTS = {
    (Content.int64, Content.float32): "int_to_float", (Content.boolean, Content.float32): "int_to_float",
    (Content.float32, Content.int64): "float_to_int", (Content.float32, Content.boolean): "float_to_bool",
    (Content.int64, Content.boolean): "int_to_bool", (Content.boolean, Content.int64): "copy",
}  # fmt: skip


def view_of(graph: GraphBuilder, instruction: Instruction, function: Move) -> None:
    x = graph.operand(instruction.inputs[0])
    moved = graph.moved(x, function)
    if moved is None:  # as PyTorch: what no strides can say is copied first
        moved = graph.moved(graph.in_order(x), function)
    if moved is None:
        raise Refusal.GROWTH.of()
    graph.same(instruction.outputs[0], moved)


@op("aten.view")
def view(graph: GraphBuilder, instruction: Instruction) -> None:
    sizes = instruction.attributes["size"]
    view_of(graph, instruction, lambda x, tokens: x.view([size.at(tokens) for size in sizes]))


@op("aten.permute")
def permute(graph: GraphBuilder, instruction: Instruction) -> None:
    axes = integers(instruction, "dims")
    view_of(graph, instruction, lambda x, _: x.permute(axes))


@op("aten.unsqueeze")
def unsqueeze(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,) = integers(instruction, "dim")
    view_of(graph, instruction, lambda x, _: x.unsqueeze(axis))


@op("aten.squeeze")
def squeeze(graph: GraphBuilder, instruction: Instruction) -> None:
    axes = integers(instruction, "dims")
    view_of(graph, instruction, lambda x, _: x.squeeze(axes))


@op("aten.expand")
def expand(graph: GraphBuilder, instruction: Instruction) -> None:
    sizes = instruction.attributes["size"]
    view_of(graph, instruction, lambda x, tokens: x.expand([size.at(tokens) for size in sizes]))


@op("aten.slice")
def slice_(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,), (step,) = integers(instruction, "dim"), integers(instruction, "step")
    (begin,), (end,) = instruction.attributes["start"], instruction.attributes["end"]
    before = (slice(None),) * axis
    view_of(graph, instruction, lambda x, tokens: x[(*before, slice(begin.at(tokens), end.at(tokens), step))])


@op("aten.select")
def select(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,), (index,) = integers(instruction, "dim"), instruction.attributes["index"]
    view_of(graph, instruction, lambda x, tokens: x.select(axis, index.at(tokens)))


@op("aten.clone", "aten._to_copy", refuses=(Refusal.WALK,))
def clone(graph: GraphBuilder, instruction: Instruction) -> None:
    x, output = graph.operand(instruction.inputs[0]), instruction.outputs[0]
    made = graph.content_of(output)
    if made is not graph.content(x):
        graph.map(CASTS[graph.content(x), made], (x,), graph.result(output))
    elif x.strides == contiguous(x.sizes):
        graph.same(output, x)
    else:
        result = graph.result(output)
        graph.copy(x, result)
        graph.moves.copied[result.value] = x


@op("aten.cat", refuses=(Refusal.WALK,))
def cat(graph: GraphBuilder, instruction: Instruction) -> None:
    parts, (axis,) = [graph.operand(index) for index in instruction.inputs], integers(instruction, "dim")
    output = graph.result(instruction.outputs[0])
    graph.moves.joined[output.value] = tuple(parts)
    begin = fixed(0)
    for part in parts:
        offset = plus(output.offset, product((begin, output.strides[axis])))
        graph.copy(part, View(output.value, offset, part.sizes, output.strides))
        begin = plus(begin, part.sizes[axis])


@op("aten.repeat_interleave", refuses=(Refusal.WALK,))
def repeat_interleave(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,), (repeats,) = integers(instruction, "dim"), integers(instruction, "repeats")
    x, output = graph.operand(instruction.inputs[0]), graph.result(instruction.outputs[0])
    stride = output.strides[axis]
    sizes = (*x.sizes[: axis + 1], fixed(repeats), *x.sizes[axis + 1 :])
    one = View(x.value, x.offset, (*x.sizes[: axis + 1], fixed(1), *x.sizes[axis + 1 :]),
               (*x.strides[: axis + 1], fixed(0), *x.strides[axis + 1 :]))  # fmt: skip
    steps = (*output.strides[:axis], product((stride, fixed(repeats))), *output.strides[axis:])
    graph.copy(one, View(output.value, output.offset, sizes, steps))


@op("aten.full", refuses=(Refusal.WALK,))
def full(graph: GraphBuilder, instruction: Instruction) -> None:
    output = graph.result(instruction.outputs[0])
    value = number(instruction, "value")
    function = "fill" if graph.content(output) is Content.float32 else "fill_int"
    graph.map(function, (), output, (value, 0.0))
