"""A sum with the result of a linear becomes the linear's residual."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, only_user, same_shape
from llm_export.passes.match import sums


def fuse_residual(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls("aten.add.Tensor"):
        _fuse(editor, node)
    return editor.finish()


def _fuse(editor: Editor, node: Node) -> None:
    # Of two linears the later one takes the other as residual: the earlier result exists by then.

    pairs = [
        (residual, linear) for residual, linear in sums(node) if _is_free_linear(linear) and isinstance(residual, Node)
    ]
    for residual, linear in sorted(pairs, key=lambda pair: pair[1], reverse=True):
        if residual is not linear and same_shape(residual, linear) and residual.meta["val"].dtype == torch.float32:
            x, weight, bias = linear.args[0], linear.args[1], argument(linear, 2, "bias")
            arguments = (x, weight, bias, residual)
            editor.replace(
                node, editor.call(torch.ops.mote.linear.default, arguments, dict(linear.kwargs), before=node)
            )
            editor.graph.erase_node(linear)
            return


def _is_free_linear(node: Node) -> bool:
    return (
        is_call(node, "mote.linear.default") and argument(node, 3, "residual") is None and only_user(node) is not None
    )
