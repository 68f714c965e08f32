"""Computes at export what depends on no input: tables, products of numbers, rearranged buffers."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, is_static

MAX_GROWTH_ELEMENTS = 1 << 16  # a folded constant may have as many elements more than what it is made from
RANDOM = {"rand", "randn", "randint", "bernoulli", "dropout", "empty", "empty_like", "new_empty", "empty_strided"}


def fold_constants(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    values: dict[Node, Any] = {}
    for node in list(editor.graph.nodes):
        if node.op == "placeholder" and editor.constant(node) is not None:
            values[node] = editor.constant(node)
        elif node.op == "call_function" and _is_foldable(node, values):
            values[node] = _evaluate(node, values)
    for node, value in values.items():
        needed = [user for user in node.users if user not in values]
        if node.op == "call_function" and needed and isinstance(value, Tensor):
            constant = editor.add_constant(f"folded.{node.name}", value.contiguous())
            node.replace_all_uses_with(constant, delete_user_cb=lambda user: user not in values)
    return editor.finish()


def _is_foldable(node: Node, values: dict[Node, Any]) -> bool:
    if not all(source in values for source in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
        return False
    value = node.meta.get("val")
    if node.target._schema.name.split("::")[1] in RANDOM or not _is_plain(value):
        return False
    made_from = sum(values[source].numel() for source in node.all_input_nodes if isinstance(values[source], Tensor))
    return not isinstance(value, Tensor) or value.numel() <= made_from + MAX_GROWTH_ELEMENTS


def _is_plain(value: Any) -> bool:
    """Whether a value is one or several tensors, of sizes that do not depend on T."""
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) for item in value)
    return isinstance(value, Tensor) and all(is_static(size) for size in value.shape)


def _evaluate(node: Node, values: dict[Node, Any]) -> Any:
    args, kwargs = map_arg((node.args, node.kwargs), lambda source: values[source])
    with torch.no_grad():
        return node.target(*args, **{key: value for key, value in kwargs.items() if key != "device"})
