"""Computes equal expressions once, for instance what every layer derives from the positions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor


def merge_duplicates(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    seen: dict[Hashable, Node] = {}
    for node in list(editor.graph.nodes):
        if node.op != "call_function" or not _is_pure(node):
            continue
        key = (node.target, _frozen(node.args), _frozen(node.kwargs))
        if key in seen:
            editor.replace(node, seen[key])
        else:
            seen[key] = node
    return editor.finish()


def _is_pure(node: Node) -> bool:
    """Ops with a `state` read and write it; torch's own ops in the graph are functional."""
    return "state" not in node.kwargs and (
        not isinstance(node.target, torch._ops.OpOverload)
        or all(a.name != "state" for a in node.target._schema.arguments)
    )


def _frozen(value: Any) -> Hashable:
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    if isinstance(value, (bool, int, float)):
        return type(value).__name__, repr(value)
    return value
