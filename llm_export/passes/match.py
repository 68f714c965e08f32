"""Small pieces of patterns, for passes that recognise what a model spells out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.fx import Node

from llm_export.passes.edit import Editor, is_call

Operands = tuple[Any, Any]


def either_order(node: Any, *targets: str) -> Iterator[Operands]:
    """Both orders of the two operands of a commutative call; nothing if the node is no such call."""
    if is_call(node, *targets) and len(node.args) >= 2 and node.kwargs.get("alpha", 1) == 1:
        yield node.args[0], node.args[1]
        yield node.args[1], node.args[0]


def products(node: Any) -> Iterator[Operands]:
    return either_order(node, "aten.mul.Tensor")


def sums(node: Any) -> Iterator[Operands]:
    return either_order(node, "aten.add.Tensor")


def number(editor: Editor, argument: Any) -> float | None:
    """A number written in the graph or held by a constant of one element."""
    if isinstance(argument, (int, float)) and not isinstance(argument, bool):
        return float(argument)
    value = editor.constant(argument)
    return float(value.item()) if value is not None and value.numel() == 1 else None


def is_square(node: Any) -> bool:
    return (is_call(node, "aten.pow.Tensor_Scalar") and node.args[1] == 2) or is_call(node, "aten.square.default") or (
        is_call(node, "aten.mul.Tensor") and node.args[0] is node.args[1]
    )  # fmt: skip


def is_inverse_root(node: Any) -> Node | None:
    """x where node computes 1 / sqrt(x)."""
    if is_call(node, "aten.rsqrt.default") or (is_call(node, "aten.pow.Tensor_Scalar") and node.args[1] == -0.5):
        return node.args[0]
    if is_call(node, "aten.pow.Tensor_Tensor"):
        return None
    if is_call(node, "aten.reciprocal.default") and is_root(node.args[0]):
        return node.args[0].args[0]
    return None


def is_root(node: Any) -> bool:
    return is_call(node, "aten.sqrt.default") or (is_call(node, "aten.pow.Tensor_Scalar") and node.args[1] == 0.5)


def over_last(node: Node) -> bool:
    """Whether a mean or sum reduces exactly the last dimension and keeps it."""
    dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    keepdim = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
    last = node.args[0].meta["val"].dim() - 1
    return bool(keepdim) and list(dims or []) in ([-1], [last])
