"""Reductions, softmax, sorting and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import Node

from llm_export.instructions import dims
from llm_export.instructions.builder import MethodBuilder
from llm_export.instructions.pointwise import binary, operand, result_dtype, unary
from llm_export.instructions.registry import Arguments, axes, axis, lowers
from llm_export.program.instructions import Dim, Value

REDUCTIONS = {
    "sum": ("default", "dim_IntList"), "mean": ("default", "dim"), "amax": ("default",), "amin": ("default",),
    "prod": ("default", "dim_int"), "any": ("default", "dim", "dims"), "all": ("default", "dim", "dims"),
}  # fmt: skip


def reduce(b: MethodBuilder, op: str, x: int, over: Sequence[int], keepdim: bool) -> int:
    kept = [dims.ONE if dim in over else size for dim, size in enumerate(b.shape(x)) if keepdim or dim not in over]
    return b.emit(f"aten.{op}", [x], kept, b.dtype(x), dims=list(over), keepdim=keepdim)


@lowers(*(f"aten.{op}.{overload}" for op, overloads in REDUCTIONS.items() for overload in overloads))
def reduction(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], result_dtype(node))
    return reduce(b, node.target._schema.name[6:], x, axes(a.get("dim"), b.rank(x)), a.get("keepdim", False))


@lowers("aten.max.default", "aten.min.default")
def extreme(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], result_dtype(node))
    return reduce(b, "amax" if "max" in str(node.target) else "amin", x, axes(None, b.rank(x)), False)


def squared_deviation(b: MethodBuilder, x: int, over: list[int]) -> tuple[int, int]:
    """The mean, and the squares of x's distance from it."""
    mean = reduce(b, "mean", x, over, True)
    return mean, unary(b, "square", binary(b, "sub", x, mean))


def variance(b: MethodBuilder, node: Node, a: Arguments) -> tuple[int, int]:
    x = operand(b, a["self"], torch.float32)
    over, keepdim = axes(a.get("dim"), b.rank(x)), a.get("keepdim", False)
    correction = a.get("correction", int(a.get("unbiased", True)))
    correction = 1 if correction is None else correction
    count = dims.product(b.shape(x)[dim] for dim in over)
    if count.tokens:
        raise b.unsupported("a variance over the tokens")
    mean, squares = squared_deviation(b, x, over)
    total = reduce(b, "sum", squares, over, keepdim)
    result = binary(b, "div", total, b.number(max(float(count.constant - correction), 0.0), torch.float32))
    return result, mean if keepdim else b.view(mean, b.shape(result))


@lowers("aten.var.correction", "aten.var.dim", "aten.var.default")
def lower_variance(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return variance(b, node, a)[0]


@lowers("aten.var_mean.correction", "aten.var_mean.dim")
def variance_and_mean(b: MethodBuilder, node: Node, a: Arguments) -> list[int]:
    return list(variance(b, node, a))


@lowers("aten.std.correction", "aten.std.dim", "aten.std.default")
def standard_deviation(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return unary(b, "sqrt", variance(b, node, a)[0])


@lowers("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def vector_norm(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], torch.float32)
    order, over = a.get("ord", a.get("p", 2)), axes(a.get("dim"), b.rank(x))
    keepdim = a.get("keepdim", False)
    if order == 1:
        return reduce(b, "sum", unary(b, "abs", x), over, keepdim)
    if order not in (2, None):
        raise b.unsupported(f"a norm of order {order}")
    return unary(b, "sqrt", reduce(b, "sum", unary(b, "square", x), over, keepdim))


@lowers("aten.argmax.default")
def argmax(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    if a["dim"] is None:
        x, dim = b.view(x, [dims.product(b.shape(x))]), 0
    else:
        dim = axis(a["dim"], b.rank(x))
    return b.emit("aten.argmax", [x], dims.shape_of(node.meta["val"]), torch.int64, dim=dim, keepdim=a["keepdim"])


def emit_pair(b: MethodBuilder, op: str, x: int, shape: Sequence[Dim], **attributes) -> list[int]:
    """Emits an op with outputs values and indices."""
    values = b.emit(op, [x], shape, b.dtype(x), **attributes)
    indices = b.add_value(Value("activation", torch.int64, tuple(shape)))
    b.method.instructions[-1].outputs.append(indices)
    return [values, indices]


@lowers("aten.max.dim", "aten.min.dim")
def extreme_with_index(b: MethodBuilder, node: Node, a: Arguments) -> list[int]:
    x = b.tensor(a["self"])
    shape, dim = dims.shape_of(node.meta["val"][0]), axis(a["dim"], b.rank(x))
    return emit_pair(b, "aten." + node.target._schema.name[6:], x, shape, dim=dim, keepdim=a["keepdim"])


@lowers("aten.topk.default")
def topk(b: MethodBuilder, node: Node, a: Arguments) -> list[int]:
    x = b.tensor(a["self"])
    shape, dim = dims.shape_of(node.meta["val"][0]), axis(a["dim"], b.rank(x))
    return emit_pair(b, "aten.topk", x, shape, k=b.dim(a["k"]), dim=dim, largest=a["largest"])


@lowers("aten.sort.default", "aten.sort.stable")
def sort(b: MethodBuilder, node: Node, a: Arguments) -> list[int]:
    x = b.tensor(a["self"])
    return emit_pair(b, "aten.sort", x, b.shape(x), dim=axis(a["dim"], b.rank(x)), descending=a["descending"])


@lowers("aten.argsort.default", "aten.argsort.stable")
def argsort(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return sort(b, node, a)[1]


@lowers(
    "aten.softmax.int", "aten._softmax.default", "aten.log_softmax.int", "aten._log_softmax.default",
    "aten.cumsum.default",
)  # fmt: skip
def along(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], result_dtype(node))
    op = node.target._schema.name[6:].removeprefix("_")
    return b.emit(f"aten.{op}", [x], b.shape(x), b.dtype(x), dim=axis(a["dim"], b.rank(x)))


@lowers("aten.logsumexp.default")
def logsumexp(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], torch.float32)
    over = axes(a["dim"], b.rank(x))
    top = reduce(b, "amax", x, over, True)
    total = reduce(b, "sum", unary(b, "exp", binary(b, "sub", x, top)), over, True)
    result = binary(b, "add", unary(b, "log", total), top)
    return b.view(result, dims.shape_of(node.meta["val"]))


def matrix_product(b: MethodBuilder, x: int, y: int) -> int:
    """x [.., M, K] by y [.., K, N], leading dimensions broadcast."""
    leading = dims.broadcast(b.shape(x)[:-2], b.shape(y)[:-2])
    x, y = b.expand(x, [*leading, *b.shape(x)[-2:]]), b.expand(y, [*leading, *b.shape(y)[-2:]])
    return b.emit("aten.bmm", [x, y], [*leading, b.shape(x)[-2], b.shape(y)[-1]])


@lowers("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def matmul(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = operand(b, a["self"], torch.float32)
    y = operand(b, a.get("mat2", a.get("other")), torch.float32)
    if b.rank(x) == 1:
        x = b.view(x, [dims.ONE, *b.shape(x)])
    if b.rank(y) == 1:
        y = b.view(y, [*b.shape(y), dims.ONE])
    return b.view(matrix_product(b, x, y), dims.shape_of(node.meta["val"]))


@lowers("aten.addmm.default", "aten.baddbmm.default")
def add_product(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x, y = (operand(b, a.get(f"mat{i}", a.get(f"batch{i}")), torch.float32) for i in (1, 2))
    product, bias = matrix_product(b, x, y), operand(b, a["self"], torch.float32)
    if a["alpha"] != 1:
        product = binary(b, "mul", product, b.number(a["alpha"], torch.float32))
    if a["beta"] == 0:
        return product
    if a["beta"] != 1:
        bias = binary(b, "mul", bias, b.number(a["beta"], torch.float32))
    return binary(b, "add", product, bias)


@lowers("aten.linear.default")
def linear(b: MethodBuilder, node: Node, a: Arguments) -> int:
    """A linear whose weight is computed; those with a stored weight became mote.linear in a pass."""
    x, weight = operand(b, a["input"], torch.float32), operand(b, a["weight"], torch.float32)
    rows = dims.product(b.shape(x)[:-1])
    product = matrix_product(b, b.view(x, [rows, b.shape(x)[-1]]), b.permute(weight, [1, 0]))
    if a["bias"] is not None:
        product = binary(b, "add", product, operand(b, a["bias"], torch.float32))
    return b.view(product, dims.shape_of(node.meta["val"]))


@lowers("aten.native_layer_norm.default", "aten.layer_norm.default")
def layer_norm(b: MethodBuilder, node: Node, a: Arguments) -> int | list[int]:
    """A layer norm that no pass took, because its weight is computed or it spans several dimensions."""
    x = operand(b, a["input"], torch.float32)
    over = list(range(b.rank(x) - len(a["normalized_shape"]), b.rank(x)))
    mean, squares = squared_deviation(b, x, over)
    shifted = binary(b, "add", reduce(b, "mean", squares, over, True), b.number(float(a["eps"]), torch.float32))
    result = binary(b, "mul", binary(b, "sub", x, mean), unary(b, "rsqrt", shifted))
    for op, name in (("mul", "weight"), ("add", "bias")):
        if a[name] is not None:
            result = binary(b, op, result, operand(b, a[name], torch.float32))
    return result if "native" not in str(node.target) else [result, -1, -1]
