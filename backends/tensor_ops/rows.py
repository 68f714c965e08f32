"""Norms, reductions and orders of rows."""

from __future__ import annotations

from llm_export.program.instructions import Instruction, number

from .emitter import BOOLEAN, INTEGER, Emitter, Tensor
from .function import Function, integers
from .registry import op

REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min", "prod": "product"}


def rms_norm(e: Emitter, x: Tensor, weight: Tensor | None, eps: float, unit_offset: bool) -> Tensor:
    if weight is None:
        weight = e.broadcast(e.constant(1.0), (x.shape[-1],))
    elif unit_offset:
        weight = e.add(weight, e.constant(1.0))
    return e.rms_norm(x, weight, eps)


@op("mote.rms_norm")
def lower_rms_norm(f: Function, instruction: Instruction) -> None:
    x, weight = f.operand(instruction.inputs[0]), f.maybe(instruction, 1)
    eps, has_offset = number(instruction, "eps"), bool(number(instruction, "unit_offset"))
    f.give(instruction.outputs[0], rms_norm(f.emitter, x, weight, eps, has_offset))


@op("mote.layer_norm")
def layer_norm(f: Function, instruction: Instruction) -> None:
    e = f.emitter
    given = f.operand(instruction.inputs[0])
    x = e.precise(given)
    x = e.normalized(e.sub(x, e.reduce("mean", x, [-1])), number(instruction, "eps"))
    x, weight, bias = e.cast(x, given.dtype), f.maybe(instruction, 1), f.maybe(instruction, 2)
    x = x if weight is None else e.mul(x, weight)
    f.give(instruction.outputs[0], x if bias is None else e.add(x, bias))


@op(*(f"aten.{name}" for name in REDUCTIONS))
def reduce(f: Function, instruction: Instruction) -> None:
    x, axes = f.operand(instruction.inputs[0]), integers(instruction, "dims")
    if x.dtype == BOOLEAN:
        x = f.emitter.cast(x, INTEGER)
    if axes:
        x = f.emitter.reduce(REDUCTIONS[instruction.op.removeprefix("aten.")], x, axes)
    f.give(instruction.outputs[0], x)


@op("aten.any", "aten.all")
def quantify(f: Function, instruction: Instruction) -> None:
    e = f.emitter
    x = e.cast(e.cast(f.operand(instruction.inputs[0]), BOOLEAN), INTEGER)
    x = e.reduce("max" if instruction.op == "aten.any" else "min", x, integers(instruction, "dims"))
    f.give(instruction.outputs[0], e.cast(x, BOOLEAN))


@op("aten.softmax")
def softmax(f: Function, instruction: Instruction) -> None:
    f.give(instruction.outputs[0], f.emitter.softmax(f.operand(instruction.inputs[0]), integers(instruction, "dim")[0]))


@op("aten.log_softmax")
def log_softmax(f: Function, instruction: Instruction) -> None:
    (axis,), e = integers(instruction, "dim"), f.emitter
    x = f.operand(instruction.inputs[0])
    x = e.sub(x, e.reduce("max", x, [axis]))
    total = e.reduce("sum", e.unary("exp", x), [axis])
    f.give(instruction.outputs[0], e.sub(x, e.unary("log", total)))


@op("aten.cumsum")
def cumsum(f: Function, instruction: Instruction) -> None:
    x = f.operand(instruction.inputs[0])
    x = f.emitter.cast(x, INTEGER) if x.dtype == BOOLEAN else x
    f.give(instruction.outputs[0], f.emitter.cumulate(x, integers(instruction, "dim")[0]))


@op("aten.topk", "aten.sort", "aten.max", "aten.min", "aten.argmax")
def order(f: Function, instruction: Instruction) -> None:
    x, (axis,), e = f.operand(instruction.inputs[0]), integers(instruction, "dim"), f.emitter
    name, count, descending = instruction.op.removeprefix("aten."), 1, instruction.op != "aten.min"
    if name == "topk":
        count, descending = integers(instruction, "k")[0], bool(number(instruction, "largest", 1.0))
    elif name == "sort":
        count, descending = x.shape[axis], bool(number(instruction, "descending"))
    places = e.slice(e.order(x, axis, descending), axis, 0, count)
    if name == "argmax":
        f.give(instruction.outputs[0], places)
        return
    f.give(instruction.outputs[0], e.gather(x, places, axis))
    f.give(instruction.outputs[1], places)


def log_sum_exp(e: Emitter, x: Tensor) -> Tensor:
    """Over the last axis, which stays."""
    top = e.binary("maximum", e.reduce("max", x, [-1]), e.constant(-3e38))
    total = e.reduce("sum", e.unary("exp", e.sub(x, top)), [-1])
    return e.add(e.unary("log", total), top)
