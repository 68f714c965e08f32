"""Norms, linear layers, rotary embeddings and attention."""

from __future__ import annotations

import math

from llm_export.program.instructions import Instruction, number, optional

from .blob import Op, Value, ValueKind
from .elements import gate, softcapped
from .graph_builder import GraphBuilder, integers
from .refusals import Refusal
from .registry import op

LEAST = 2.0**-7  # float16 has all bits of its square
PRODUCT = (Refusal.COMPUTED_WEIGHT, Refusal.HALF_SCALES, Refusal.ROUNDED)


def rms_norm(graph: GraphBuilder, x: int, weight: int, eps: float, offset: float) -> int:
    shape = graph.shape_of(x)
    gains = graph.constant(1.0, shape[-1:]) if weight < 0 else graph.plain(weight, offset)
    return graph.node(Op.rms_norm, (x, gains), shape, epsilon=eps)


@op("mote.rms_norm")
def rms_norm_op(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    weight, eps, offset = (optional(instruction, 1), number(instruction, "eps"), number(instruction, "unit_offset"))
    graph.give(instruction.outputs[0], rms_norm(graph, x, weight, eps, offset))


@op("mote.layer_norm")
def layer_norm(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    x = graph.binary(Op.subtract, x, graph.of_rows(Op.mean, x))
    y = rms_norm(graph, x, optional(instruction, 1), number(instruction, "eps"), 0.0)
    bias = optional(instruction, 2)
    graph.give(instruction.outputs[0], y if bias < 0 else graph.binary(Op.add, y, graph.plain(bias)))


def normed_input(graph: GraphBuilder, instruction: Instruction, weight: int) -> int:
    if instruction.attributes["activations"] != "float":
        raise Refusal.ROUNDED.of()
    x = graph.activation(instruction.inputs[0])
    if instruction.attributes["norm"] == "none":
        return x
    return rms_norm(graph, x, weight, number(instruction, "norm_eps"), number(instruction, "norm_unit_offset"))


def product_of_words(graph: GraphBuilder, x: int, matrix: int, lengths: int) -> int:
    """Rows are divided by what makes their mean square 1, and those of the weight by their lengths: neither then has an
    element, nor their product, beyond the root of the width (Cauchy and Schwarz), so words need no calibration.
    """
    largest = graph.of_rows(Op.maximum_of, graph.unary(Op.abs, x))
    largest = graph.binary(Op.maximum, largest, graph.constant(LEAST))
    parts = graph.binary(Op.divide, x, largest)  # float16 holds no squares of numbers above 255
    mean = graph.of_rows(Op.mean, graph.binary(Op.multiply, parts, parts))
    size = graph.unary(Op.sqrt, graph.binary(Op.maximum, mean, graph.constant(LEAST**2)))
    size = graph.binary(Op.multiply, size, largest)
    most = math.sqrt(graph.shape_of(x)[-1])
    words = graph.in_words(graph.unary(Op.quantize, graph.binary(Op.divide, x, size)), most)
    y = graph.unary(Op.dequantize, graph.in_words(graph.matmul(words, matrix), most))
    return graph.binary(Op.multiply, graph.binary(Op.multiply, y, lengths), size)


def product(graph: GraphBuilder, x: int, weight: int, bias: int) -> int:
    matrix = graph.matrix(weight)
    if graph.is_in_blocks(matrix):
        y = product_of_words(graph, x, matrix, graph.lengths(weight))
    else:
        y = graph.matmul(x, matrix)
    return y if bias < 0 else graph.binary(Op.add, y, graph.plain(bias))


@op("mote.linear", refuses=PRODUCT)
def linear(graph: GraphBuilder, instruction: Instruction) -> None:
    weight, bias, residual, norm = (optional(instruction, i) for i in (1, 2, 3, 4))
    y = product(graph, normed_input(graph, instruction, norm), weight, bias)
    if residual >= 0:
        y = graph.binary(Op.add, y, graph.activation(residual))
    graph.give(instruction.outputs[0], y)


@op("mote.gated_linear", refuses=(*PRODUCT, Refusal.FUNCTION))
def gated_linear(graph: GraphBuilder, instruction: Instruction) -> None:
    weight, bias, norm = (optional(instruction, i) for i in (1, 2, 3))
    y = product(graph, normed_input(graph, instruction, norm), weight, bias)
    axis, width = len(graph.shape_of(y)) - 1, graph.shape_of(y)[-1]
    gates, ups = graph.slice(y, axis, 0, width // 2), graph.slice(y, axis, width // 2, width)
    gates = gate(graph, instruction.attributes["function"], gates)
    graph.give(instruction.outputs[0], graph.binary(Op.multiply, gates, ups))


@op("mote.rope")
def rope(graph: GraphBuilder, instruction: Instruction) -> None:
    x, cos, sin = (graph.activation(index) for index in instruction.inputs)
    size, rotated = graph.shape_of(x)[-1], graph.shape_of(cos)[-1]  # x [1, H, T, D], cos [1, T, R]
    cos, sin = (graph.reshape(table, (1, *graph.shape_of(table))) for table in (cos, sin))
    head = graph.slice(x, 3, 0, rotated)
    turned = quarter_turn(graph, instruction.attributes["layout"], head)
    y = graph.binary(Op.add, graph.binary(Op.multiply, head, cos), graph.binary(Op.multiply, turned, sin))
    if rotated != size:
        y = graph.concatenate((y, graph.slice(x, 3, rotated, size)), 3)
    graph.give(instruction.outputs[0], y)


def quarter_turn(graph: GraphBuilder, layout: str, x: int) -> int:
    """What is multiplied with the sines."""
    shape = graph.shape_of(x)
    half = shape[-1] // 2
    if layout == "interleaved":
        # Element 2i becomes that at 2i + 1, and the other way round with a minus: QNN moves no single elements of rows.
        turn = [0.0] * shape[-1] ** 2
        for i in range(0, shape[-1], 2):
            turn[(i + 1) * shape[-1] + i], turn[i * shape[-1] + i + 1] = -1.0, 1.0
        return graph.matmul(x, graph.constants(tuple(turn), (shape[-1], shape[-1])))
    first, second = graph.slice(x, 3, 0, half), graph.slice(x, 3, half, 2 * half)
    if layout == "half_flipped":
        return graph.concatenate((second, graph.unary(Op.negate, first)), 3)
    return graph.concatenate((graph.unary(Op.negate, second), first), 3)


@op("mote.attention", refuses=(Refusal.INPUT, Refusal.STATE, Refusal.ATTENTION))
def attention(graph: GraphBuilder, instruction: Instruction) -> None:
    refuse_attention(instruction)
    q, k, v = (graph.activation(index) for index in instruction.inputs[:3])
    graph.positions(instruction.inputs[3])
    state, window = integers(instruction, "state")[0], int(number(instruction, "window"))
    spec = graph.subgraph.states[state]
    if spec.kind != "kv_cache" or spec.num_sink_positions:
        raise Refusal.STATE.of(kind=spec.kind)
    keys = cached(graph, (ValueKind.past_keys, ValueKind.new_keys), state, k)
    values = cached(graph, (ValueKind.past_values, ValueKind.new_values), state, v)
    _, heads, tokens, width = graph.shape_of(q)
    groups, total = graph.shape_of(keys)[1], graph.shape_of(keys)[2]
    q = graph.reshape(graph.scaled(q, number(instruction, "scale")), (1, groups, heads // groups * tokens, width))
    scores = graph.reshape(graph.matmul(q, keys, transposed=True), (1, heads, tokens, total))
    softcap = number(instruction, "softcap")
    scores = softcapped(graph, scores, softcap) if softcap else scores
    mask = graph.once(Value(ValueKind.mask, (1, 1, tokens, total), window=window))
    slopes, sinks = optional(instruction, 5), optional(instruction, 4)
    if slopes >= 0:
        distances = graph.once(Value(ValueKind.distances, (1, 1, tokens, total), window=window))
        slope = graph.plain(slopes, shape=(1, heads, 1, 1))
        scores = graph.binary(Op.add, scores, graph.binary(Op.multiply, distances, slope))
    scores = graph.binary(Op.add, scores, mask)
    if sinks >= 0:
        scores = graph.concatenate((scores, sink_scores(graph, sinks, heads, mask)), 3)
    weights = graph.slice(graph.unary(Op.softmax, scores), 3, 0, total)
    weights = graph.reshape(weights, (1, groups, heads // groups * tokens, total))
    mixed = graph.reshape(graph.matmul(weights, values), (1, heads, tokens, graph.shape_of(values)[-1]))
    graph.give(instruction.outputs[0], graph.transpose(mixed, (0, 2, 1, 3)))


def sink_scores(graph: GraphBuilder, sinks: int, heads: int, mask: int) -> int:
    """The score of the sink for each head and token, [1, H, T, 1]."""
    tokens = graph.shape_of(mask)[2]
    if graph.method.values[sinks].kind != "weight":
        return graph.reshape(graph.transpose(graph.activation(sinks), (0, 2, 1)), (1, heads, tokens, 1))
    zeros = graph.of_rows(Op.maximum_of, mask)  # a token sees itself
    return graph.binary(Op.add, zeros, graph.plain(sinks, shape=(1, heads, 1, 1)))


def refuse_attention(instruction: Instruction) -> None:
    for position, what in enumerate(("chosen keys", "a bias by distance"), start=6):
        if optional(instruction, position) >= 0:
            raise Refusal.ATTENTION.of(what=what)
    if min(instruction.inputs[1:3]) < 0:
        raise Refusal.ATTENTION.of(what="keys or values of another layer")
    for name, usual in (("bidirectional", 0), ("chunked", 0), ("stride", 1), ("value_dim", 0)):
        if number(instruction, name, usual) != usual:
            raise Refusal.ATTENTION.of(what=name)


def cached(graph: GraphBuilder, kinds: tuple[ValueKind, ValueKind], state: int, rows: int) -> int:
    """What the slots hold, and behind it the rows of the tokens, which the caller puts into slots after the call."""
    past, new = kinds
    _, heads, _, width = graph.shape_of(rows)
    slots = graph.once(Value(past, (1, heads, graph.part.capacity, width), state))
    graph.written(new, state, rows)
    return graph.concatenate((slots, rows), 2)
