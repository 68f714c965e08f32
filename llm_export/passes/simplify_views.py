"""Moves linears in front of the views that flatten their input, and joins views of views."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, rank, same_shape

VIEWS = ("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.flatten.using_ints")


def simplify_views(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls("mote.linear.default"):
        _unflatten(editor, node)
    for node in editor.calls(*VIEWS):
        source = node.args[0]
        while is_call(source, *VIEWS):
            source = source.args[0]
        if same_shape(source, node):
            editor.replace(node, source)
        elif source is not node.args[0] and not is_call(node, "aten.flatten.using_ints"):
            node.update_arg(0, source)
    return editor.finish()


def _unflatten(editor: Editor, node: Node) -> None:
    """linear(view(x, [T, K])) becomes view(linear(x), [T, N]) for an x [1, T, K]."""
    flat = node.args[0]
    if not is_call(flat, *VIEWS) or rank(flat) != 2 or argument(node, 3, "residual") is not None:
        return
    x = flat.args[0]
    if (
        rank(x) != 3
        or str(x.meta["val"].shape[0]) != "1"
        or str(x.meta["val"].shape[2]) != str(flat.meta["val"].shape[1])
    ):
        return
    linear = editor.call(torch.ops.mote.linear.default, (x, *node.args[1:]), dict(node.kwargs), before=node)
    editor.replace(
        node, editor.call(torch.ops.aten.view.default, (linear, [-1, node.meta["val"].shape[1]]), before=node)
    )
