"""Pointwise ops, with type promotion spelled out."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from llm_export.instructions import dims
from llm_export.instructions.builder import MethodBuilder, canonical_dtype
from llm_export.instructions.registry import Arguments, lowers

UNARY = [
    "neg",
    "abs",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "silu",
    "relu",
    "erf",
    "floor",
    "ceil",
    "round",
    "sign",
    "square",
    "bitwise_not",
]
ARITHMETIC = ["mul", "maximum", "minimum", "remainder", "fmod", "pow", "bitwise_and", "bitwise_or"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
OVERLOADS = ("Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "default")


def result_dtype(node: Node) -> torch.dtype:
    return canonical_dtype(node.meta["val"].dtype)


def operand(b: MethodBuilder, argument: Any, dtype: torch.dtype) -> int:
    """A tensor cast to dtype, or a number as a constant of that dtype."""
    if isinstance(argument, (bool, int, float)):
        return b.number(argument, dtype)
    return b.cast(b.tensor(argument), dtype)


def unary(b: MethodBuilder, op: str, x: int, dtype: torch.dtype | None = None, **attributes: Any) -> int:
    return b.emit(f"aten.{op}", [x], b.shape(x), dtype or b.dtype(x), **attributes)


def binary(b: MethodBuilder, op: str, x: int, y: int, dtype: torch.dtype | None = None) -> int:
    """Inputs already have one dtype; it is the output's unless `dtype` says otherwise."""
    return b.emit(f"aten.{op}", [x, y], dims.broadcast(b.shape(x), b.shape(y)), dtype or b.dtype(x))


@lowers(*(f"aten.{op}.default" for op in UNARY))
def lower_unary(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return unary(b, node.target._schema.name.removeprefix("aten::"), operand(b, a["self"], result_dtype(node)))


@lowers("aten.logical_not.default", "aten.isnan.default")
def lower_predicate(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    x = b.cast(x, canonical_dtype(b.dtype(x)))
    return unary(b, node.target._schema.name.removeprefix("aten::"), x, torch.bool)


@lowers("aten.gelu.default")
def gelu(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return unary(b, "gelu", operand(b, a["self"], torch.float32), approximate=a["approximate"])


@lowers("aten.softplus.default")
def softplus(b: MethodBuilder, node: Node, a: Arguments) -> int:
    """softplus_beta(x) = softplus(beta x) / beta; the kernel is linear above 20, as PyTorch's default."""
    x, beta = operand(b, a["self"], torch.float32), float(a["beta"])
    if a["threshold"] != 20:
        raise b.unsupported(f"softplus with threshold {a['threshold']}")
    if beta == 1:
        return unary(b, "softplus", x)
    scaled = unary(b, "softplus", binary(b, "mul", x, b.number(beta, torch.float32)))
    return binary(b, "div", scaled, b.number(beta, torch.float32))


@lowers("aten.mish.default")
def mish(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], torch.float32)
    return binary(b, "mul", x, unary(b, "tanh", unary(b, "softplus", x)))


@lowers("aten.log_sigmoid.default", "aten.log_sigmoid_forward.default")
def log_sigmoid(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], torch.float32)
    return unary(b, "neg", unary(b, "softplus", unary(b, "neg", x)))


@lowers("aten.leaky_relu.default")
def leaky_relu(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return unary(b, "leaky_relu", operand(b, a["self"], torch.float32), negative_slope=float(a["negative_slope"]))


@lowers("aten.elu.default")
def elu(b: MethodBuilder, node: Node, a: Arguments) -> int:
    if a["scale"] != 1 or a["input_scale"] != 1:
        raise b.unsupported("elu with a scale")
    return unary(b, "elu", operand(b, a["self"], torch.float32), alpha=float(a["alpha"]))


@lowers(
    "aten.clamp.default", "aten.clamp_min.default", "aten.clamp_max.default", "aten.hardtanh.default",
    "aten.relu6.default",
)  # fmt: skip
def clamp(b: MethodBuilder, node: Node, a: Arguments) -> int:
    low, high = a.get("min", a.get("min_val")), a.get("max", a.get("max_val"))
    if "relu6" in str(node.target):
        low, high = 0.0, 6.0
    if isinstance(low, Node) or isinstance(high, Node):
        raise b.unsupported("clamp with symbolic bounds")
    bounds = {name: float(bound) for name, bound in (("min", low), ("max", high)) if bound is not None}
    return unary(b, "clamp", operand(b, a["self"], result_dtype(node)), **bounds)


@lowers("aten.clamp.Tensor", "aten.clamp_min.Tensor", "aten.clamp_max.Tensor")
def clamp_tensor(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype = result_dtype(node)
    x = operand(b, a["self"], dtype)
    for op, bound in (("maximum", a.get("min")), ("minimum", a.get("max"))):
        if bound is not None:
            x = binary(b, op, x, operand(b, bound, dtype))
    return x


@lowers(
    "aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar", "aten.rsub.Tensor"
)
def add(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype, name = result_dtype(node), node.target._schema.name.removeprefix("aten::")
    x, y, alpha = operand(b, a["self"], dtype), operand(b, a["other"], dtype), a.get("alpha", 1)
    if name == "rsub":
        x, y, name = y, x, "sub"
        if alpha != 1:
            y = binary(b, "mul", y, b.number(alpha, dtype))
    elif alpha != 1:
        y = binary(b, "mul", y, b.number(alpha, dtype))
    return binary(b, name, x, y)


@lowers(
    *(f"aten.{op}.{overload}" for op in ARITHMETIC for overload in OVERLOADS),
    "aten.pow.Scalar",
    "aten.multiply.Tensor",
    "aten.multiply.Scalar",
)
def arithmetic(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype, name = result_dtype(node), node.target._schema.name.removeprefix("aten::")
    name = "mul" if name == "multiply" else name
    other = a.get("other", a.get("exponent"))
    if name == "pow" and dtype == torch.float32 and other in (2, 0.5, -0.5):
        op = {2: "square", 0.5: "sqrt", -0.5: "rsqrt"}[other]
        return unary(b, op, operand(b, a["self"], dtype))
    return binary(b, name, operand(b, a["self"], dtype), operand(b, other, dtype))


@lowers(
    "aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.true_divide.Tensor",
    "aten.floor_divide.default", "aten.floor_divide.Scalar",
)  # fmt: skip
def divide(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype = result_dtype(node)
    x, y = operand(b, a["self"], dtype), operand(b, a["other"], dtype)
    mode = a.get("rounding_mode", "floor" if "floor_divide" in str(node.target) else None)
    if mode == "trunc":  # exact after the remainder, which has the sign of x, is taken away
        exact = binary(b, "sub", x, binary(b, "fmod", x, y))
        return binary(b, "div" if dtype.is_floating_point else "floor_divide", exact, y)
    return binary(b, "floor_divide" if mode == "floor" else "div", x, y)


@lowers(*(f"aten.{op}.{overload}" for op in COMPARISONS for overload in ("Tensor", "Scalar")))
def compare(b: MethodBuilder, node: Node, a: Arguments) -> int:
    values = [x.meta["val"] if isinstance(x, Node) else x for x in (a["self"], a["other"])]
    dtype = canonical_dtype(torch.result_type(*values))
    op = node.target._schema.name.removeprefix("aten::")
    return binary(b, op, operand(b, a["self"], dtype), operand(b, a["other"], dtype), torch.bool)


@lowers(*(f"aten.{op}.default" for op in LOGICAL))
def logical(b: MethodBuilder, node: Node, a: Arguments) -> int:
    op = node.target._schema.name.removeprefix("aten::")
    return binary(b, op, operand(b, a["self"], torch.bool), operand(b, a["other"], torch.bool))


@lowers("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def where(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype = result_dtype(node)
    return choose(
        b, operand(b, a["condition"], torch.bool), operand(b, a["self"], dtype), operand(b, a["other"], dtype)
    )


def choose(b: MethodBuilder, condition: int, x: int, y: int) -> int:
    shape = dims.broadcast(b.shape(condition), b.shape(x), b.shape(y))
    return b.emit("aten.where", [condition, x, y], shape, b.dtype(x))


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype = result_dtype(node)
    return choose(b, operand(b, a["mask"], torch.bool), operand(b, a["value"], dtype), operand(b, a["self"], dtype))


@lowers("aten.addcmul.default", "aten.addcdiv.default")
def addcmul(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype = result_dtype(node)
    x, y, z = (operand(b, a[name], dtype) for name in ("self", "tensor1", "tensor2"))
    product = binary(b, "mul" if "addcmul" in str(node.target) else "div", y, z)
    if a["value"] != 1:
        product = binary(b, "mul", product, b.number(a["value"], dtype))
    return binary(b, "add", x, product)


@lowers("aten.max.other", "aten.min.other")
def extremum(b: MethodBuilder, node: Node, a: Arguments) -> int:
    dtype = result_dtype(node)
    op = "maximum" if "max" in str(node.target) else "minimum"
    return binary(b, op, operand(b, a["self"], dtype), operand(b, a["other"], dtype))


@lowers("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x, y, weight = (operand(b, a[name], torch.float32) for name in ("self", "end", "weight"))
    return binary(b, "add", x, binary(b, "mul", weight, binary(b, "sub", y, x)))


@lowers("aten.glu.default")
def glu(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], torch.float32)
    dim = a["dim"] % b.rank(x)
    half, size = dims.dim_of(node.meta["val"].shape[dim]), b.shape(x)[dim]
    gate = unary(b, "sigmoid", b.slice(x, dim, half, size))
    return binary(b, "mul", b.slice(x, dim, dims.ZERO, half), gate)
