"""Experts: a token's own matrices, gathered out of a stack; of longer calls those of all experts, one by one."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from llm_export.program.instructions import Instruction, number, optional

from .blob import Op
from .elements import gate, softcapped
from .graph_builder import GraphBuilder
from .layers import PRODUCT
from .refusals import MAX_COUNTED, MAX_SHARE, Refusal
from .registry import op


@op("mote.moe_experts", refuses=(*PRODUCT, Refusal.FUNCTION, Refusal.COUNTED, Refusal.EXPERTS))
def moe_experts(graph: GraphBuilder, instruction: Instruction) -> None:
    if instruction.attributes["activations"] != "float":
        raise Refusal.ROUNDED.of()
    x = graph.activation(instruction.inputs[0])
    tokens, width = graph.shape_of(x)
    x, y = graph.reshape(x, (1, tokens, width)), -1
    for place, weight in weighted(graph, instruction):
        hidden = gated(graph, instruction, product(graph, instruction, (3, 5), x, place))
        part = graph.binary(Op.multiply, product(graph, instruction, (4, 6), hidden, place), weight)
        y = part if y < 0 else graph.binary(Op.add, y, part)
    graph.give(instruction.outputs[0], y)


def weighted(graph: GraphBuilder, instruction: Instruction) -> Iterator[tuple[int, int]]:
    """The places [1] of experts in their stacks, with weights [tokens, 1] of what they give."""
    places, weights = graph.activation(instruction.inputs[1], torch.int64), graph.activation(instruction.inputs[2])
    tokens, chosen = graph.shape_of(places)
    experts = graph.spec(instruction.inputs[3]).shape[0]
    if experts > MAX_COUNTED:
        raise Refusal.COUNTED.of(width=experts)
    if tokens == 1:
        for i in range(chosen):
            yield graph.reshape(graph.slice(places, 1, i, i + 1), (1,)), graph.slice(weights, 1, i, i + 1)
        return
    if experts > MAX_SHARE * chosen:
        raise Refusal.EXPERTS.of(experts=experts, chosen=chosen)
    # Made of the places, as the compiler turns matrices at constant places into weights of their own.
    first = graph.reshape(graph.slice(graph.slice(places, 0, 0, 1), 1, 0, 1), (1,))
    zero = graph.unary(Op.relu, graph.unary(Op.negate, graph.unary(Op.abs, first)))
    for expert in range(experts):
        number = graph.constant(float(expert))
        distance = graph.unary(Op.abs, graph.binary(Op.subtract, places, number))
        is_chosen = graph.unary(Op.relu, graph.binary(Op.subtract, graph.constant(1.0), distance))
        share = graph.of_rows(Op.mean, graph.binary(Op.multiply, weights, is_chosen))
        yield graph.binary(Op.add, zero, number), graph.scaled(share, chosen)


def product(graph: GraphBuilder, instruction: Instruction, positions: tuple[int, int], x: int, place: int) -> int:
    """positions: of the stack and of its biases"""
    stack, scales = graph.stack(instruction.inputs[positions[0]])
    y = graph.matmul(x, graph.gather(stack, place))
    if scales >= 0:
        y = graph.binary(Op.multiply, y, graph.gather(scales, place))
    biases = optional(instruction, positions[1])
    return y if biases < 0 else graph.binary(Op.add, y, graph.gather(graph.plain(biases), place))


def gated(graph: GraphBuilder, instruction: Instruction, y: int) -> int:
    function, layout = instruction.attributes["function"], instruction.attributes["layout"]
    if layout == "single":
        return gate(graph, function, y)
    _, tokens, width = graph.shape_of(y)
    if layout == "interleaved":
        pairs = graph.transpose(graph.reshape(y, (tokens, width // 2, 2)), (2, 0, 1))
        gates, ups = graph.slice(pairs, 0, 0, 1), graph.slice(pairs, 0, 1, 2)
    else:
        gates, ups = graph.slice(y, 2, 0, width // 2), graph.slice(y, 2, width // 2, width)
    limit, alpha, gate_cap, up_cap = (
        number(instruction, name) for name in ("limit", "alpha", "gate_softcap", "up_softcap")
    )
    if limit:
        most, least = graph.constant(limit), graph.constant(-limit)
        gates = graph.binary(Op.minimum, gates, most)
        ups = graph.binary(Op.maximum, graph.binary(Op.minimum, ups, most), least)
    if up_cap:
        ups = softcapped(graph, ups, up_cap)
    if gate_cap:
        gates = graph.binary(Op.multiply, softcapped(graph, gates, gate_cap), graph.unary(Op.sigmoid, gates))
    elif alpha:
        gates = graph.binary(Op.multiply, gates, graph.unary(Op.sigmoid, graph.scaled(gates, alpha)))
        ups = graph.binary(Op.add, ups, graph.constant(1.0))
    else:
        gates = gate(graph, function, gates)
    return graph.binary(Op.multiply, gates, ups)
