"""Products with stored weights, and with what the part computes."""

from __future__ import annotations

import math

from llm_export.program.instructions import Instruction, number

from .elements import gate
from .emitter import Emitter, Tensor
from .function import Function
from .refusals import Refusal
from .registry import op
from .rows import rms_norm

WEIGHT = (Refusal.COMPUTED_WEIGHT, Refusal.ROUNDED, Refusal.HALF_SCALES, Refusal.GROUPS)


def by_rows(f: Function, x: Tensor, matrix: int) -> Tensor:
    """x [.., K] by the rows of a stored matrix [N, K]."""
    flat = f.emitter.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    y = f.weights.product(f.emitter, flat, f.spec(matrix))
    return f.emitter.reshape(y, (*x.shape[:-1], y.shape[-1]))


def normed(f: Function, instruction: Instruction, norm_weight: int) -> Tensor:
    x = f.operand(instruction.inputs[0])
    if instruction.attributes.get("norm", "none") == "none":
        return x
    eps, has_offset = number(instruction, "norm_eps"), bool(number(instruction, "norm_unit_offset"))
    return rms_norm(f.emitter, x, f.maybe(instruction, norm_weight), eps, has_offset)


@op("mote.linear", refuses=WEIGHT)
def linear(f: Function, instruction: Instruction) -> None:
    f.expect_float(instruction)
    y = by_rows(f, normed(f, instruction, 4), instruction.inputs[1])
    for position in (2, 3):  # bias, residual
        added = f.maybe(instruction, position)
        y = y if added is None else f.emitter.add(y, added)
    f.give(instruction.outputs[0], y)


@op("mote.gated_linear", refuses=(*WEIGHT, Refusal.FUNCTION))
def gated_linear(f: Function, instruction: Instruction) -> None:
    f.expect_float(instruction)
    e, bias = f.emitter, f.maybe(instruction, 2)
    y = by_rows(f, normed(f, instruction, 3), instruction.inputs[1])
    y = y if bias is None else e.add(y, bias)
    half = y.shape[-1] // 2
    gates, up = e.slice(y, -1, 0, half), e.slice(y, -1, half, 2 * half)
    f.give(instruction.outputs[0], e.mul(gate(e, instruction.attributes["function"], gates), up))


@op("mote.embedding", refuses=WEIGHT)
def embedding(f: Function, instruction: Instruction) -> None:
    if number(instruction, "rotated"):
        raise Refusal.ROUNDED.of()
    ids = f.operand(instruction.inputs[0])
    f.give(instruction.outputs[0], f.rows(instruction.inputs[1], f.emitter.reshape(ids, (math.prod(ids.shape),))))


@op("aten.bmm")
def bmm(f: Function, instruction: Instruction) -> None:
    f.give(instruction.outputs[0], f.emitter.matmul(*(f.operand(index) for index in instruction.inputs)))


@op("mote.head_linear", refuses=WEIGHT)
def head_linear(f: Function, instruction: Instruction) -> None:
    f.expect_float(instruction)
    x, weight, e = f.operand(instruction.inputs[0]), f.matrix(instruction.inputs[1]), f.emitter
    rows, (heads, width) = math.prod(x.shape[:-2]), x.shape[-2:]
    x = e.transpose(e.reshape(x, (rows, heads, width)), (1, 0, 2))
    y = e.matmul_by_rows(x, weight)  # [H, rows, N]
    f.give(instruction.outputs[0], e.transpose(y, (1, 0, 2)))


def by_experts(f: Function, x: Tensor, chosen: Tensor, weight: int) -> Tensor:
    """x [M, K] by the matrix [N, K] of the expert that is chosen for each row: [M, N]"""
    e, matrices = f.emitter, f.rows(weight, chosen)
    y = e.matmul(matrices, e.reshape(x, (*x.shape, 1)))
    return e.reshape(y, y.shape[:2])


def each_choice(f: Function, instruction: Instruction) -> tuple[Tensor, Tensor, int, int]:
    """x with its rows once for each expert [N * K, D], the experts [N * K], N and K."""
    e = f.emitter
    x, indices = f.operand(instruction.inputs[0]), f.operand(instruction.inputs[1])
    rows, count = indices.shape
    return e.repeated(x, 0, count), e.reshape(indices, (rows * count,)), rows, count


@op("mote.expert_linear", refuses=WEIGHT)
def expert_linear(f: Function, instruction: Instruction) -> None:
    f.expect_float(instruction)
    x, chosen, _, _ = each_choice(f, instruction)
    f.give(instruction.outputs[0], by_experts(f, x, chosen, instruction.inputs[2]))


@op("mote.moe_experts", refuses=(*WEIGHT, Refusal.FUNCTION))
def moe_experts(f: Function, instruction: Instruction) -> None:
    f.expect_float(instruction)
    e = f.emitter
    x, chosen, rows, count = each_choice(f, instruction)
    y = _biased(f, instruction, 5, by_experts(f, x, chosen, instruction.inputs[3]), chosen)
    y = _gated(e, instruction, y)
    y = _biased(f, instruction, 6, by_experts(f, y, chosen, instruction.inputs[4]), chosen)
    y = e.mul(e.reshape(y, (rows, count, y.shape[-1])), e.reshape(f.operand(instruction.inputs[2]), (rows, count, 1)))
    f.give(instruction.outputs[0], e.reduce("sum", y, [1]))


def _biased(f: Function, instruction: Instruction, position: int, y: Tensor, chosen: Tensor) -> Tensor:
    biases = f.maybe(instruction, position)
    return y if biases is None else f.emitter.add(y, f.emitter.rows(biases, chosen))


def _gated(e: Emitter, instruction: Instruction, y: Tensor) -> Tensor:
    function, layout = instruction.attributes.get("function", "silu"), instruction.attributes.get("layout")
    if layout == "single":
        return gate(e, function, y)
    width = y.shape[-1]
    starts, step = ((0, 1), 2) if layout == "interleaved" else ((0, width // 2), 1)
    ends = (width, width) if layout == "interleaved" else (width // 2, width)
    gates, up = (e.slice(y, -1, start, end, step) for start, end in zip(starts, ends, strict=True))
    limit, alpha, gate_cap, up_cap = (
        number(instruction, name) for name in ("limit", "alpha", "gate_softcap", "up_softcap")
    )
    if limit:
        gates = e.binary("minimum", gates, e.constant(limit))
        up = e.binary("maximum", e.binary("minimum", up, e.constant(limit)), e.constant(-limit))
    if up_cap:
        up = softcapped(e, up, up_cap)
    if gate_cap:
        return e.mul(e.mul(softcapped(e, gates, gate_cap), e.unary("sigmoid", gates)), up)
    if alpha:
        swish = e.mul(gates, e.unary("sigmoid", e.scaled(gates, alpha)))
        return e.mul(e.add(up, e.constant(1.0)), swish)
    return e.mul(gate(e, function, gates), up)


def softcapped(e: Emitter, x: Tensor, cap: float) -> Tensor:
    return e.scaled(e.unary("tanh", e.scaled(x, 1 / cap)), cap)
