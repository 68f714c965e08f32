"""Ops on elements, and those that move them."""

from __future__ import annotations

import torch

from llm_export.program.instructions import Instruction, number

from .blob import Op
from .graph_builder import GraphBuilder, integers
from .refusals import MAX_COUNTED, Refusal
from .registry import op

UNARY = {
    "sigmoid": Op.sigmoid,
    "tanh": Op.tanh,
    "relu": Op.relu,
    "neg": Op.negate,
    "exp": Op.exp,
    "sqrt": Op.sqrt,
    "rsqrt": Op.rsqrt,
    "abs": Op.abs,
}
BINARY = {
    "add": Op.add,
    "sub": Op.subtract,
    "mul": Op.multiply,
    "div": Op.divide,
    "maximum": Op.maximum,
    "minimum": Op.minimum,
}
GATES = ("silu", "gelu", "gelu_tanh", "relu", "sigmoid", "identity", "relu_squared")


def gate(graph: GraphBuilder, function: str, x: int) -> int:
    if function == "silu":
        return graph.binary(Op.multiply, x, graph.unary(Op.sigmoid, x))
    if function == "relu_squared":
        x = graph.unary(Op.relu, x)
        return graph.binary(Op.multiply, x, x)
    if function == "gelu_tanh":
        cube = graph.binary(Op.multiply, graph.binary(Op.multiply, x, x), x)
        inner = graph.binary(Op.add, x, graph.scaled(cube, 0.044715))
        weight = graph.unary(Op.tanh, graph.scaled(inner, 0.7978845608028654))
        weight = graph.scaled(graph.binary(Op.add, weight, graph.constant(1.0)), 0.5)
        return graph.binary(Op.multiply, x, weight)
    if function == "identity":
        return x
    if function not in GATES:
        raise Refusal.FUNCTION.of(function=function)
    return graph.unary(Op[function], x)


def softcapped(graph: GraphBuilder, x: int, cap: float) -> int:
    return graph.scaled(graph.unary(Op.tanh, graph.scaled(x, 1 / cap)), cap)


@op(*(f"aten.{name}" for name in UNARY))
def unary(graph: GraphBuilder, instruction: Instruction) -> None:
    function = UNARY[instruction.op.removeprefix("aten.")]
    graph.give(instruction.outputs[0], graph.unary(function, graph.activation(instruction.inputs[0])))


@op("aten.silu")
def silu(graph: GraphBuilder, instruction: Instruction) -> None:
    graph.give(instruction.outputs[0], gate(graph, "silu", graph.activation(instruction.inputs[0])))


@op("aten.square")
def square(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    graph.give(instruction.outputs[0], graph.binary(Op.multiply, x, x))


@op("aten.gelu")
def gelu(graph: GraphBuilder, instruction: Instruction) -> None:
    function = "gelu_tanh" if instruction.attributes.get("approximate") == "tanh" else "gelu"
    graph.give(instruction.outputs[0], gate(graph, function, graph.activation(instruction.inputs[0])))


@op(*(f"aten.{name}" for name in BINARY))
def binary(graph: GraphBuilder, instruction: Instruction) -> None:
    a, b = (graph.operand(index) for index in instruction.inputs)
    graph.give(instruction.outputs[0], graph.binary(BINARY[instruction.op.removeprefix("aten.")], a, b))


@op("aten.view", "aten.unsqueeze", "aten.squeeze", "aten.clone", "aten._to_copy")
def reshape(graph: GraphBuilder, instruction: Instruction) -> None:
    if graph.method.values[instruction.inputs[0]].dtype != torch.float32:
        raise Refusal.DTYPE.of(dtype=str(graph.method.values[instruction.inputs[0]].dtype).removeprefix("torch."))
    graph.give(instruction.outputs[0], graph.activation(instruction.inputs[0]))


@op("aten.permute")
def permute(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    rank = len(graph.shape_of(x))
    axes = [axis % rank for axis in integers(instruction, "dims")]
    graph.give(instruction.outputs[0], graph.transpose(x, axes))


@op("aten.slice", refuses=(Refusal.SLICE_STEPS,))
def cut(graph: GraphBuilder, instruction: Instruction) -> None:
    axis, begin, end, step = (integers(instruction, name)[0] for name in ("dim", "start", "end", "step"))
    if step != 1:
        raise Refusal.SLICE_STEPS.of()
    graph.give(instruction.outputs[0], graph.slice(graph.activation(instruction.inputs[0]), axis, begin, end))


@op("aten.select")
def select(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,), (index,) = integers(instruction, "dim"), integers(instruction, "index")
    x = graph.activation(instruction.inputs[0])
    index %= graph.shape_of(x)[axis]
    graph.give(instruction.outputs[0], graph.slice(x, axis, index, index + 1))


@op("aten.cat")
def cat(graph: GraphBuilder, instruction: Instruction) -> None:
    parts = [graph.activation(index) for index in instruction.inputs]
    graph.give(instruction.outputs[0], graph.concatenate(parts, integers(instruction, "dim")[0]))


@op("aten.softmax", refuses=(Refusal.AXIS,))
def softmax(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    if integers(instruction, "dim") != [len(graph.shape_of(x)) - 1]:
        raise Refusal.AXIS.of()
    graph.give(instruction.outputs[0], graph.unary(Op.softmax, x))


@op("aten.sum", refuses=(Refusal.AXIS,))
def total(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    rank, width = len(graph.shape_of(x)), graph.shape_of(x)[-1]
    if [axis % rank for axis in integers(instruction, "dims")] != [rank - 1]:
        raise Refusal.AXIS.of()
    graph.give(instruction.outputs[0], graph.scaled(graph.of_rows(Op.mean, x), width))


@op("aten.topk", refuses=(Refusal.AXIS, Refusal.COUNTED, Refusal.ASCENDING))
def topk(graph: GraphBuilder, instruction: Instruction) -> None:
    x, (count,) = graph.activation(instruction.inputs[0]), integers(instruction, "k")
    rank, width = len(graph.shape_of(x)), graph.shape_of(x)[-1]
    if integers(instruction, "dim")[0] % rank != rank - 1:
        raise Refusal.AXIS.of()
    if width > MAX_COUNTED:
        raise Refusal.COUNTED.of(width=width)
    if not number(instruction, "largest", 1.0):
        raise Refusal.ASCENDING.of()
    graph.give(instruction.outputs[0], graph.largest(Op.top_values, x, count))
    graph.give(instruction.outputs[1], graph.largest(Op.top_places, x, count), torch.int64)


@op("aten.bmm")
def bmm(graph: GraphBuilder, instruction: Instruction) -> None:
    a, b = (graph.activation(index) for index in instruction.inputs)
    graph.give(instruction.outputs[0], graph.matmul(a, b))
