"""Instructions to nodes of XNNPACK: a function for each op, by its name in docs/ops.md."""

from __future__ import annotations

import math

from llm_export.partition.backend import Backend, Blob, OpTable, Subgraph
from llm_export.program.instructions import Dim, Instruction, fixed, number, optional

from .blob import DType, Function, Op, WeightForm
from .graph_builder import GraphBuilder, integers
from .refusals import MAX_CONSTANT_ELEMENTS, MAX_POWER, Refusal

MAX_CONCATENATED = 5
OPS = OpTable()
op = OPS.op
# Of `multiply` and `finish`.
PRODUCT = (Refusal.MATRIX_RANK, Refusal.TIED, Refusal.ROTATED, Refusal.GROUPED, Refusal.INT8_WITH_DENSE, Refusal.SHAPE)


class XnnpackBackend(Backend):
    """Runs islands between attentions with XNNPACK on a CPU.

    weights: how weights of 1 to 4 bits that meet int8 activations are packed. `int4` takes the memory that they have in
    the file and is the faster one for single tokens, `int8` takes twice that and is the faster one for many
    half: whether products with dense weights are computed in float16, which takes half the memory of float32 and rounds
    activations too: beyond 65504 they become infinite
    takes_tied: whether to run an output head that is the embedding too, which then is in memory twice
    """

    name = "xnnpack"
    takes_rotated_inputs = False

    def __init__(self, weights: str = "int4", *, half: bool = False, takes_tied: bool = False):
        self.weights, self.half, self.takes_tied = weights, half, takes_tied
        self.takes_signed_multipliers = weights == "int8"  # XNNPACK refuses blocks with a negative scale

    def lower(self, subgraph: Subgraph) -> Blob:
        if any(instruction.op not in OPS for instruction in subgraph.method.instructions):
            raise Refusal.OP.of()
        prefers_int8 = self.weights == "int8"
        graph = GraphBuilder(subgraph, prefers_int8=prefers_int8, half=self.half, takes_tied=self.takes_tied)
        for instruction in subgraph.method.instructions:
            OPS[instruction.op].lower(graph, instruction)
        return Blob(graph.graph.build(), tuple(graph.weights))


# Pointwise

UNARY = {
    "abs": Function.abs, "ceil": Function.ceil, "cos": Function.cos, "exp": Function.exp, "floor": Function.floor,
    "log": Function.log, "neg": Function.neg, "round": Function.round, "rsqrt": Function.rsqrt,
    "sigmoid": Function.sigmoid, "sin": Function.sin, "sqrt": Function.sqrt, "square": Function.square,
    "tanh": Function.tanh,
}  # fmt: skip
BINARY = {
    "add": Function.add, "sub": Function.subtract, "mul": Function.multiply, "div": Function.divide,
    "maximum": Function.maximum, "minimum": Function.minimum,
}  # fmt: skip
ROOTS = {0.5: Function.sqrt, -0.5: Function.rsqrt}


@op(*(f"aten.{name}" for name in UNARY))
def unary(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    graph.unary(UNARY[instruction.op.removeprefix("aten.")], x, graph.result(instruction.outputs[0]))


@op(*(f"aten.{name}" for name in BINARY))
def binary(graph: GraphBuilder, instruction: Instruction) -> None:
    a, b = (graph.operand(index) for index in instruction.inputs)
    graph.binary(BINARY[instruction.op.removeprefix("aten.")], a, b, graph.result(instruction.outputs[0]))


@op("aten.relu")
def relu(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    graph.unary(Function.clamp, x, graph.result(instruction.outputs[0]), (0.0, math.inf))


@op("aten.clamp", refuses=(Refusal.BOUNDS,))
def clamp(graph: GraphBuilder, instruction: Instruction) -> None:
    least, most = number(instruction, "min", -math.inf), number(instruction, "max", math.inf)
    if not least < most:
        raise Refusal.BOUNDS.of()
    x = graph.activation(instruction.inputs[0])
    graph.unary(Function.clamp, x, graph.result(instruction.outputs[0]), (least, most))


@op("aten.silu")
def silu(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    graph.binary(Function.multiply, x, graph.unary(Function.sigmoid, x), graph.result(instruction.outputs[0]))


@op("aten.gelu")
def gelu(graph: GraphBuilder, instruction: Instruction) -> None:
    is_tanh = instruction.attributes.get("approximate") == "tanh"
    x = graph.activation(instruction.inputs[0])
    graph.unary(Function.approximate_gelu if is_tanh else Function.gelu, x, graph.result(instruction.outputs[0]))


@op("aten.elu", "aten.leaky_relu")
def elu(graph: GraphBuilder, instruction: Instruction) -> None:
    is_elu = instruction.op == "aten.elu"
    factor = number(instruction, "alpha" if is_elu else "negative_slope", 1.0 if is_elu else 0.01)
    x = graph.activation(instruction.inputs[0])
    graph.unary(Function.elu if is_elu else Function.leaky_relu, x, graph.result(instruction.outputs[0]), (factor,))


@op("aten.reciprocal")
def reciprocal(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    graph.binary(Function.divide, graph.constant([1.0]), x, graph.result(instruction.outputs[0]))


@op("aten.pow", refuses=(Refusal.EXPONENT, Refusal.SHAPE))
def power(graph: GraphBuilder, instruction: Instruction) -> None:
    exponent, x = graph.scalar(instruction.inputs[1]), graph.activation(instruction.inputs[0])
    if exponent in ROOTS:
        finish(graph, instruction, graph.unary(ROOTS[exponent], x))
        return
    if exponent is None or exponent != int(exponent) or not 1 <= abs(exponent) <= MAX_POWER:
        raise Refusal.EXPONENT.of()
    product = whole_power(graph, x, int(abs(exponent)))
    if exponent < 0:
        finish(graph, instruction, graph.binary(Function.divide, graph.constant([1.0]), product))
    elif exponent == 1:
        graph.same(instruction.outputs[0], x)
    else:
        finish(graph, instruction, product)


def whole_power(graph: GraphBuilder, x: int, exponent: int) -> int:
    if exponent == 1:
        return x
    root = whole_power(graph, x, exponent // 2)
    square = graph.unary(Function.square, root)
    return graph.binary(Function.multiply, square, x) if exponent % 2 else square


# Views and copies: XNNPACK has contiguous values only, so what moves no element costs nothing inside a subgraph.


@op("aten.view", "aten.unsqueeze", "aten.squeeze", "aten.clone", "aten._to_copy")
def reshape(graph: GraphBuilder, instruction: Instruction) -> None:
    graph.same(instruction.outputs[0], graph.activation(instruction.inputs[0]))


@op("aten.expand", refuses=(Refusal.EXPANSION_GROWS, Refusal.EXPANSION))
def expand(graph: GraphBuilder, instruction: Instruction) -> None:
    before, after = graph.shape(instruction.inputs[0]), graph.shape(instruction.outputs[0])
    if before == after:
        reshape(graph, instruction)
        return
    before = (fixed(1),) * (len(after) - len(before)) + before
    repeats = [b if a != b else fixed(1) for a, b in zip(before, after, strict=True)]
    if any(size.tokens for size in repeats):
        raise Refusal.EXPANSION_GROWS.of()
    count = math.prod(size.constant for size in repeats)
    if count > MAX_CONSTANT_ELEMENTS:
        raise Refusal.EXPANSION.of(count=count)
    ones = graph.constant([1.0] * count, [size.constant for size in repeats])
    graph.binary(Function.multiply, graph.activation(instruction.inputs[0]), ones, graph.result(instruction.outputs[0]))


@op("aten.permute")
def permute(graph: GraphBuilder, instruction: Instruction) -> None:
    x, axes = graph.activation(instruction.inputs[0]), integers(instruction, "dims")
    graph.node(Op.transpose, (x,), graph.result(instruction.outputs[0]), axes=axes)


@op("aten.slice", refuses=(Refusal.SLICE_STEPS,))
def slice_(graph: GraphBuilder, instruction: Instruction) -> None:
    if integers(instruction, "step") != [1]:
        raise Refusal.SLICE_STEPS.of()
    (axis,), x = integers(instruction, "dim"), graph.activation(instruction.inputs[0])
    (begin,), (end,) = instruction.attributes["start"], instruction.attributes["end"]
    graph.slice(x, axis, begin, end, graph.result(instruction.outputs[0]))


@op("aten.select")
def select(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,), (index,) = integers(instruction, "dim"), instruction.attributes["index"]
    piece = graph.slice(graph.activation(instruction.inputs[0]), axis, index, Dim(index.tokens, index.constant + 1))
    graph.same(instruction.outputs[0], piece)


@op("aten.cat")
def cat(graph: GraphBuilder, instruction: Instruction) -> None:
    inputs, (axis,) = [graph.activation(index) for index in instruction.inputs], integers(instruction, "dim")
    if len(inputs) == 1:
        graph.same(instruction.outputs[0], inputs[0])
        return
    while len(inputs) > MAX_CONCATENATED:
        inputs = [graph.concatenate(inputs[:MAX_CONCATENATED], axis), *inputs[MAX_CONCATENATED:]]
    graph.concatenate(inputs, axis, graph.result(instruction.outputs[0]))


# Reductions and products


def last_axis(graph: GraphBuilder, instruction: Instruction, name: str) -> None:
    if integers(instruction, name) != [len(graph.shape(instruction.inputs[0])) - 1]:
        raise Refusal.AXIS.of()


@op("aten.softmax", refuses=(Refusal.AXIS,))
def softmax(graph: GraphBuilder, instruction: Instruction) -> None:
    last_axis(graph, instruction, "dim")
    graph.node(Op.softmax, (graph.activation(instruction.inputs[0]),), graph.result(instruction.outputs[0]))


@op("aten.mean", refuses=(Refusal.AXIS,))
def mean(graph: GraphBuilder, instruction: Instruction) -> None:
    last_axis(graph, instruction, "dims")
    x = graph.activation(instruction.inputs[0])
    if integers(instruction, "keepdim") == [1]:
        graph.mean(x, graph.result(instruction.outputs[0]))
    else:
        graph.same(instruction.outputs[0], graph.mean(x))


@op("aten.bmm")
def bmm(graph: GraphBuilder, instruction: Instruction) -> None:
    a, b = (graph.activation(index) for index in instruction.inputs)
    output = graph.result(instruction.outputs[0])
    if len(graph.shape_of(a)) > 2:
        graph.node(Op.batch_matrix_multiply, (a, b), output)
        return
    a, b = (graph.reshape(x, graph.new((fixed(1), *graph.shape_of(x)))) for x in (a, b))
    product = graph.new((fixed(1), *graph.shape_of(output)))
    graph.reshape(graph.node(Op.batch_matrix_multiply, (a, b), product), output)


# Language-model ops


def scaled(graph: GraphBuilder, x: int, eps: float) -> int:
    """x / sqrt(mean(x^2) + eps), the mean over the last dimension."""
    square = graph.mean(graph.unary(Function.square, x))
    root = graph.unary(Function.rsqrt, graph.binary(Function.add, square, graph.constant([eps])))
    return graph.binary(Function.multiply, x, root)


def affine(graph: GraphBuilder, x: int, factors: list[tuple[Function, int, float]], output: int | None = None) -> int:
    """Applies (function, weight of the method or -1, what is added to the weight) one after the other."""
    present = [(function, graph.dense(index, offset=offset)) for function, index, offset in factors if index >= 0]
    for i, (function, weight) in enumerate(present):
        x = graph.binary(function, x, weight, output if i + 1 == len(present) else None)
    return x


def rms_norm(graph: GraphBuilder, x: int, weight: int, eps: float, unit_offset: float) -> int:
    return affine(graph, scaled(graph, x, eps), [(Function.multiply, weight, unit_offset)])


@op("mote.rms_norm", refuses=(Refusal.SHAPE,))
def rms_norm_op(graph: GraphBuilder, instruction: Instruction) -> None:
    x, eps = graph.activation(instruction.inputs[0]), number(instruction, "eps")
    normed = rms_norm(graph, x, optional(instruction, 1), eps, number(instruction, "unit_offset", 0.0))
    finish(graph, instruction, normed)


@op("mote.layer_norm", refuses=(Refusal.SHAPE,))
def layer_norm(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    normed = scaled(graph, graph.binary(Function.subtract, x, graph.mean(x)), number(instruction, "eps"))
    factors = [(Function.multiply, optional(instruction, 1), 0.0), (Function.add, optional(instruction, 2), 0.0)]
    finish(graph, instruction, affine(graph, normed, factors))


def finish(graph: GraphBuilder, instruction: Instruction, value: int) -> None:
    """The last node of an instruction writes its output instead of a value of its own."""
    output = graph.result(instruction.outputs[0])
    if graph.shape_of(value) != graph.shape_of(output):
        raise Refusal.SHAPE.of()
    graph.graph.nodes[-1].output = output


def multiply(
    graph: GraphBuilder, instruction: Instruction, x: int, rows: tuple[int, int], weight: int, bias: int
) -> int:
    """x W^T + bias for rows (first, number) of W and of the bias."""
    (first, count), spec = rows, graph.spec(weight)
    shape = (*graph.shape_of(x)[:-1], fixed(count))
    if len(spec.shape) != 2:
        raise Refusal.MATRIX_RANK.of(rank=len(spec.shape))
    if graph.method.values[weight].weight in graph.subgraph.embedded and not graph.takes_tied:
        raise Refusal.TIED.of()

    def product(x: int, form: WeightForm, bias: int = -1) -> int:
        inputs = [x]
        if form in (WeightForm.float32, WeightForm.float16):
            inputs.append(graph.dense(weight, first, count, form=form, shared=False))
        else:
            inputs.append(graph.weight(weight, (count, spec.shape[1]), form, first, shared=False))
        if bias >= 0:
            inputs.append(graph.dense(bias, first, count))
        dtype = DType.float16 if form is WeightForm.float16 else DType.float32
        return graph.node(Op.fully_connected, inputs, graph.new(shape, dtype))

    def with_bias(y: int) -> int:
        return graph.binary(Function.add, y, graph.dense(bias, first, count)) if bias >= 0 else y

    activations = instruction.attributes["activations"]
    if activations == "rotated_int8":
        raise Refusal.ROTATED.of()
    if activations == "grouped_int8" or spec.scales is not None:
        raise Refusal.GROUPED.of()
    is_int8 = activations == "int8"
    if spec.bits == 0:
        if is_int8:
            raise Refusal.INT8_WITH_DENSE.of()
        if not graph.half:
            return product(x, WeightForm.float32, bias)
        y = product(graph.convert(x, DType.float16), WeightForm.float16)
        return with_bias(graph.convert(y, DType.float32))
    x = graph.convert(x, DType.int8_rows) if is_int8 else x
    if spec.per_channel:
        y = product(x, WeightForm.int8_rows if spec.bits > 4 or graph.prefers_int8 else WeightForm.int4_rows)
    elif spec.bits > 4:
        y = graph.binary(Function.add, product(x, WeightForm.int8_high), product(x, WeightForm.int8_low))
    elif not is_int8 or graph.prefers_int8 or spec.signed:
        y = product(x, WeightForm.int8_rows)
    else:
        scales = graph.weight(weight, (count,), WeightForm.row_scales, first)
        y = graph.binary(Function.multiply, product(x, WeightForm.int4_blocks), scales)
    # With float inputs and 8-bit weights XNNPACK multiplies its own bias by the scales of the rows.
    return with_bias(y)


def normed_input(graph: GraphBuilder, instruction: Instruction, norm_weight: int) -> int:
    x = graph.activation(instruction.inputs[0])
    if instruction.attributes["norm"] == "none":
        return x
    unit_offset = number(instruction, "norm_unit_offset", 0.0)
    return rms_norm(graph, x, norm_weight, number(instruction, "norm_eps"), unit_offset)


@op("mote.linear", refuses=PRODUCT)
def linear(graph: GraphBuilder, instruction: Instruction) -> None:
    weight, bias, residual = (optional(instruction, i) for i in (1, 2, 3))
    x = normed_input(graph, instruction, optional(instruction, 4))
    y = multiply(graph, instruction, x, (0, graph.spec(weight).shape[0]), weight, bias)
    if residual >= 0:
        y = graph.binary(Function.add, y, graph.activation(residual))
    finish(graph, instruction, y)


def gate(graph: GraphBuilder, function: str, x: int) -> int:
    if function == "silu":
        return graph.binary(Function.multiply, x, graph.unary(Function.sigmoid, x))
    if function == "relu_squared":
        return graph.unary(Function.square, gate(graph, "relu", x))
    if function == "relu":
        return graph.unary(Function.clamp, x, numbers=(0.0, math.inf))
    if function == "identity":
        return x
    functions = {"gelu": Function.gelu, "gelu_tanh": Function.approximate_gelu, "sigmoid": Function.sigmoid}
    if function not in functions:
        raise Refusal.FUNCTION.of(function=function)
    return graph.unary(functions[function], x)


@op("mote.gated_linear", refuses=(*PRODUCT, Refusal.FUNCTION))
def gated_linear(graph: GraphBuilder, instruction: Instruction) -> None:
    weight, bias = (optional(instruction, i) for i in (1, 2))
    half = graph.spec(weight).shape[0] // 2
    x = normed_input(graph, instruction, optional(instruction, 3))
    gates, ups = (multiply(graph, instruction, x, (first, half), weight, bias) for first in (0, half))
    gates = gate(graph, instruction.attributes["function"], gates)
    finish(graph, instruction, graph.binary(Function.multiply, gates, ups))


@op("mote.rope", refuses=(Refusal.SHAPE,))
def rope(graph: GraphBuilder, instruction: Instruction) -> None:
    x, cos, sin = (graph.activation(index) for index in instruction.inputs)
    shape, rotated = graph.shape_of(x), graph.shape_of(cos)[-1].constant  # x [1, H, T, D], cos [1, T, R]
    table = (fixed(1), *graph.shape_of(cos))
    cos, sin = (graph.reshape(value, graph.new(table)) for value in (cos, sin))
    size = shape[-1].constant
    head = x if rotated == size else graph.slice(x, 3, fixed(0), fixed(rotated))
    turned = quarter_turn(graph, instruction.attributes["layout"], head)
    y = graph.binary(
        Function.add, graph.binary(Function.multiply, head, cos), graph.binary(Function.multiply, turned, sin)
    )
    if rotated != size:
        y = graph.concatenate((y, graph.slice(x, 3, fixed(rotated), fixed(size))), 3)
    finish(graph, instruction, y)


def quarter_turn(graph: GraphBuilder, layout: str, x: int) -> int:
    """What is multiplied with the sines."""
    shape = graph.shape_of(x)
    half = shape[-1].constant // 2
    if layout == "interleaved":
        pairs = graph.reshape(x, graph.new((*shape[:-1], fixed(half), fixed(2))))
        even, odd = (graph.slice(pairs, 4, fixed(i), fixed(i + 1)) for i in (0, 1))
        turned = graph.concatenate((graph.unary(Function.neg, odd), even), 4)
        return graph.reshape(turned, graph.new(shape))
    first, second = graph.slice(x, 3, fixed(0), fixed(half)), graph.slice(x, 3, fixed(half), fixed(2 * half))
    if layout == "half_flipped":
        return graph.concatenate((second, graph.unary(Function.neg, first)), 3)
    return graph.concatenate((graph.unary(Function.neg, second), first), 3)
