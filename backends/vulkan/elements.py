"""Functions of elements, and elements picked by others."""

from __future__ import annotations

import math

from llm_export.program.instructions import Instruction, fixed, number

from .blob import Content, Op, View
from .graph_builder import MAX_MAP_RANK, GraphBuilder, integers
from .maps import COMPARISONS, FLOAT_BINARY, FLOAT_UNARY, FUNCTIONS, LOGICAL
from .refusals import Refusal
from .registry import op

UNARY = (*(name for name in FLOAT_UNARY if name != "gelu_tanh"), "isnan", "logical_not", "bitwise_not")
BITWISE = ("bitwise_and", "bitwise_or")
SUFFIXES = {Content.float32: "", Content.int64: "_int", Content.boolean: "_bool"}


def function_of(name: str, graph: GraphBuilder, operand: View) -> str:
    """The function of this name for such operands."""
    content = graph.content(operand)
    if content is Content.boolean:
        name = name.replace("bitwise", "logical")
    found = name + SUFFIXES[content]
    if found not in FUNCTIONS:
        raise Refusal.DTYPE.of(dtype=content.name)
    return found


@op(*(f"aten.{name}" for name in UNARY), refuses=(Refusal.WALK,))
def unary(graph: GraphBuilder, instruction: Instruction) -> None:
    name = instruction.op.removeprefix("aten.")
    if instruction.attributes.get("approximate") == "tanh":
        name = "gelu_tanh"
    x = graph.operand(instruction.inputs[0])
    numbers = {
        "clamp": (number(instruction, "min", -math.inf), number(instruction, "max", math.inf)),
        "leaky_relu": (number(instruction, "negative_slope", 0.01), 0.0),
        "elu": (number(instruction, "alpha", 1.0), 0.0),
    }
    function, output = function_of(name, graph, x), graph.result(instruction.outputs[0])
    graph.map(function, (x,), output, numbers.get(name, (0.0, 0.0)))


@op(*(f"aten.{name}" for name in (*FLOAT_BINARY, *COMPARISONS, *LOGICAL, *BITWISE)), refuses=(Refusal.WALK,))
def binary(graph: GraphBuilder, instruction: Instruction) -> None:
    inputs = [graph.operand(index) for index in instruction.inputs]
    function = function_of(instruction.op.removeprefix("aten."), graph, inputs[0])
    graph.map(function, inputs, graph.result(instruction.outputs[0]))


@op("aten.where", refuses=(Refusal.WALK,))
def where(graph: GraphBuilder, instruction: Instruction) -> None:
    inputs = [graph.operand(index) for index in instruction.inputs]
    graph.map("where", inputs, graph.result(instruction.outputs[0]))


@op("aten.gather", "aten.index_select", refuses=(Refusal.WALK,))
def pick(graph: GraphBuilder, instruction: Instruction) -> None:
    x, index = (graph.operand(position) for position in instruction.inputs)
    (axis,) = integers(instruction, "dim")
    output = graph.result(instruction.outputs[0])
    if instruction.op == "aten.index_select":
        strides = tuple(index.strides[0] if i == axis else fixed(0) for i in range(len(output.sizes)))
        index = View(index.value, index.offset, output.sizes, strides)
    axis += MAX_MAP_RANK - len(x.sizes)
    graph.node(Op.pick, (graph.four(x), graph.four(index)), (output,), (axis,))


@op("aten.scatter", refuses=(Refusal.WALK,))
def scatter(graph: GraphBuilder, instruction: Instruction) -> None:
    views = [graph.operand(index) for index in instruction.inputs]
    axis = integers(instruction, "dim")[0] + MAX_MAP_RANK - len(views[0].sizes)
    graph.node(Op.scatter, [graph.four(view) for view in views], (graph.result(instruction.outputs[0]),), (axis,))


@op("aten.bmm", refuses=(Refusal.WALK,))
def bmm(graph: GraphBuilder, instruction: Instruction) -> None:
    a, b = (graph.four(graph.activation(index)) for index in instruction.inputs)
    graph.node(Op.matmul, (a, b), (graph.result(instruction.outputs[0]),))
