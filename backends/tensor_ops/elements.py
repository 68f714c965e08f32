"""Functions of elements."""

from __future__ import annotations

import math

from llm_export.program.instructions import Instruction, number

from .emitter import BOOLEAN, INTEGER, Emitter, Tensor
from .function import Function
from .refusals import Refusal
from .registry import op

DIRECT = ("abs", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "relu", "round")
BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "pow": "pow", "maximum": "maximum", "minimum": "minimum",
    "fmod": "modulo", "eq": "equal", "ne": "not_equal", "gt": "greater",
}  # fmt: skip
LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "and", "bitwise_or": "or"}
HALF_PI_ROOT = math.sqrt(2 / math.pi)


def floor(e: Emitter, x: Tensor) -> Tensor:
    return e.binary("floor_divide", x, e.constant(1, x.dtype))


def softplus(e: Emitter, x: Tensor) -> Tensor:
    """max(x, 0) + log(1 + exp(-|x|))"""
    zero, one = e.constant(0.0), e.constant(1.0)
    tail = e.unary("log", e.add(one, e.unary("exp", e.neg(e.unary("abs", x)))))
    return e.add(e.binary("maximum", x, zero), tail)


def expm1(e: Emitter, x: Tensor) -> Tensor:
    """tanh(x / 2) * (exp(x) + 1), which is exact about zero too"""
    half = e.unary("tanh", e.scaled(x, 0.5))
    return e.mul(half, e.add(e.unary("exp", x), e.constant(1.0)))


def gelu_tanh(e: Emitter, x: Tensor) -> Tensor:
    cube = e.mul(e.square(x), x)
    inner = e.scaled(e.add(x, e.scaled(cube, 0.044715)), HALF_PI_ROOT)
    return e.mul(e.scaled(x, 0.5), e.add(e.constant(1.0), e.unary("tanh", inner)))


def gelu(e: Emitter, x: Tensor) -> Tensor:
    return e.mul(e.scaled(x, 0.5), e.add(e.constant(1.0), e.unary("erf", e.scaled(x, math.sqrt(0.5)))))


def sign(e: Emitter, x: Tensor) -> Tensor:
    zero = e.constant(0, x.dtype)
    return e.sub(e.cast(e.greater(x, zero), x.dtype), e.cast(e.greater(zero, x), x.dtype))


COMPOSED = {
    "neg": lambda e, x: e.neg(x),
    "square": lambda e, x: e.square(x),
    "reciprocal": lambda e, x: e.binary("divide", e.constant(1.0), x),
    "floor": floor,
    "ceil": lambda e, x: e.neg(floor(e, e.neg(x))),
    "sign": sign,
    "softplus": softplus,
    "expm1": expm1,
    "log1p": lambda e, x: e.unary("log", e.add(e.constant(1.0), x)),
    "log2": lambda e, x: e.scaled(e.unary("log", x), 1 / math.log(2)),
    "isnan": lambda e, x: e.binary("not_equal", x, x),
    "logical_not": lambda e, x: e.unary("not", e.cast(x, BOOLEAN)),
}

# Functions of gates.
GATES = {
    "silu": lambda e, x: e.unary("silu", x),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": lambda e, x: e.unary("relu", x),
    "sigmoid": lambda e, x: e.unary("sigmoid", x),
    "identity": lambda e, x: x,
    "relu_squared": lambda e, x: e.square(e.unary("relu", x)),
}


def gate(e: Emitter, function: str, x: Tensor) -> Tensor:
    if function not in GATES:
        raise Refusal.FUNCTION.of(function=function)
    return GATES[function](e, x)


@op(*(f"aten.{name}" for name in (*DIRECT, *COMPOSED)))
def unary(f: Function, instruction: Instruction) -> None:
    x, name = f.operand(instruction.inputs[0]), instruction.op.removeprefix("aten.")
    found = COMPOSED[name](f.emitter, x) if name in COMPOSED else f.emitter.unary(name, x)
    f.give(instruction.outputs[0], found)


@op("aten.gelu")
def lower_gelu(f: Function, instruction: Instruction) -> None:
    function = gelu_tanh if instruction.attributes.get("approximate") == "tanh" else gelu
    f.give(instruction.outputs[0], function(f.emitter, f.operand(instruction.inputs[0])))


@op("aten.clamp")
def clamp(f: Function, instruction: Instruction) -> None:
    x, e = f.operand(instruction.inputs[0]), f.emitter
    for bound, function in (("min", "maximum"), ("max", "minimum")):
        value = number(instruction, bound, math.nan)
        if not math.isnan(value) and (x.dtype != INTEGER or math.isfinite(value)):
            x = e.binary(function, x, e.constant(value, x.dtype))
    f.give(instruction.outputs[0], x)


@op("aten.leaky_relu", "aten.elu")
def slopes(f: Function, instruction: Instruction) -> None:
    x, e = f.operand(instruction.inputs[0]), f.emitter
    if instruction.op == "aten.elu":
        other = e.scaled(expm1(e, e.binary("minimum", x, e.constant(0.0))), number(instruction, "alpha", 1.0))
    else:
        other = e.scaled(x, number(instruction, "negative_slope", 0.01))
    f.give(instruction.outputs[0], e.where(e.greater(x, e.constant(0.0)), x, other))


@op("aten.bitwise_not")
def bitwise_not(f: Function, instruction: Instruction) -> None:
    x, e = f.operand(instruction.inputs[0]), f.emitter
    found = e.unary("not", x) if x.dtype == BOOLEAN else e.sub(e.constant(-1, x.dtype), x)
    f.give(instruction.outputs[0], found)


@op(*(f"aten.{name}" for name in BINARY))
def binary(f: Function, instruction: Instruction) -> None:
    x, y = (f.operand(index) for index in instruction.inputs)
    f.give(instruction.outputs[0], f.emitter.binary(BINARY[instruction.op.removeprefix("aten.")], x, y))


@op(*(f"aten.{name}" for name in LOGICAL), refuses=(Refusal.DTYPE,))
def logical(f: Function, instruction: Instruction) -> None:
    x, y = (f.operand(index) for index in instruction.inputs)
    if x.dtype != BOOLEAN:
        raise Refusal.DTYPE.of(dtype=x.dtype)
    f.give(instruction.outputs[0], f.emitter.binary(LOGICAL[instruction.op.removeprefix("aten.")], x, y))


@op("aten.lt", "aten.le", "aten.ge")
def compare(f: Function, instruction: Instruction) -> None:
    x, y = (f.operand(index) for index in instruction.inputs)
    if instruction.op != "aten.ge":
        x, y = y, x
    found = f.emitter.greater(x, y) if instruction.op == "aten.lt" else f.emitter.at_least(x, y)
    f.give(instruction.outputs[0], found)


@op("aten.div", "aten.floor_divide", "aten.remainder")
def divide(f: Function, instruction: Instruction) -> None:
    x, y = (f.operand(index) for index in instruction.inputs)
    e = f.emitter
    if instruction.op == "aten.div":
        found = e.binary("divide", x, y)
    elif instruction.op == "aten.floor_divide":
        found = e.binary("floor_divide", x, y)
    else:
        found = e.sub(x, e.mul(e.binary("floor_divide", x, y), y))
    f.give(instruction.outputs[0], found)


@op("aten.where")
def where(f: Function, instruction: Instruction) -> None:
    f.give(instruction.outputs[0], f.emitter.where(*(f.operand(index) for index in instruction.inputs)))
