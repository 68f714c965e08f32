"""Which function lowers which graph op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import Node

from llm_export.instructions.builder import MethodBuilder

Arguments = dict[str, Any]
Handler = Callable[[MethodBuilder, Node, Arguments], Any]

HANDLERS: dict[str, Handler] = {}


def lowers(*targets: str) -> Callable[[Handler], Handler]:
    """Registers a handler for ops named as torch prints them, e.g. "aten.add.Tensor".

    A handler returns the index of the output value, or a list of indices for an op with several outputs.
    """

    def register(handler: Handler) -> Handler:
        for target in targets:
            HANDLERS[target] = handler
        return handler

    return register


def bind_arguments(node: Node) -> Arguments:
    """The node's arguments by the names of its schema, defaults included."""
    schema = node.target._schema.arguments
    bound = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    bound.update(zip((argument.name for argument in schema), node.args, strict=False))
    bound.update(node.kwargs)
    return bound


def axis(dim: int, rank: int) -> int:
    return dim + rank if dim < 0 else dim


def axes(dims: int | list[int] | None, rank: int) -> list[int]:
    """Non-negative dimensions; None or an empty list means all of them."""
    if dims is None or dims == []:
        return list(range(rank))
    return sorted(axis(dim, rank) for dim in ([dims] if isinstance(dims, int) else dims))
