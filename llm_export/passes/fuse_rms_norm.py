"""x * rsqrt(mean(x^2) + eps) * weight becomes `mote::rms_norm`."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, only_user, rank
from llm_export.passes.match import is_inverse_root, is_root, is_square, number, over_last, products, sums


def fuse_rms_norm(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in list(editor.graph.nodes):
        if is_call(node, "aten.rms_norm.default", "aten._fused_rms_norm.default"):
            _from_op(editor, node)
        elif is_call(node, "aten.mul.Tensor", "aten.div.Tensor"):
            _from_parts(editor, node)
    for node in editor.calls("mote.rms_norm.default"):
        _scale(editor, node)
    return editor.finish()


def _from_op(editor: Editor, node: Node) -> None:
    x, shape = node.args[0], node.args[1]
    weight, eps = argument(node, 2, "weight"), argument(node, 3, "eps")
    users = list(node.users)
    fused = is_call(node, "aten._fused_rms_norm.default")
    if len(shape) != 1 or (fused and not all(is_call(user, "operator.getitem") or user.args[1] == 0 for user in users)):
        return
    if weight is not None and not _is_weight(editor, weight, x):
        return
    eps = torch.finfo(torch.float32).eps if eps is None else float(eps)
    norm = editor.call(torch.ops.mote.rms_norm.default, (x, weight), {"eps": eps}, before=node)
    if not fused:
        editor.replace(node, norm)
        return
    for user in users:
        editor.replace(user, norm)


def _from_parts(editor: Editor, node: Node) -> None:
    for x, eps in _matches(editor, node):
        if isinstance(x, Node) and x.meta["val"].dtype == torch.float32:
            norm = editor.call(torch.ops.mote.rms_norm.default, (x, None), {"eps": eps}, before=node)
            editor.replace(node, norm)
            return


def _matches(editor: Editor, node: Node):
    """Yields (x, eps) where node is x / sqrt(mean(x^2) + eps)."""
    if is_call(node, "aten.div.Tensor") and is_root(node.args[1]):
        candidates = [(node.args[0], node.args[1].args[0])]
    else:
        candidates = [(x, is_inverse_root(other)) for x, other in products(node)]
    for x, shifted in candidates:
        for mean, eps in sums(shifted):
            eps = number(editor, eps)
            if eps is not None and _is_mean_square(mean, x):
                yield x, eps


def _is_mean_square(node: Any, x: Any) -> bool:
    return is_call(node, "aten.mean.dim") and over_last(node) and is_square(node.args[0]) and node.args[0].args[0] is x


def _is_weight(editor: Editor, node: Any, x: Node) -> bool:
    spec = editor.weight(node)
    return spec is not None and spec.shape == (x.meta["val"].shape[-1],)


def _unit_offset(editor: Editor, factor: Any, x: Node) -> tuple[Node, int] | None:
    """(weight, 0) or, where factor is 1 + weight, (weight, 1)."""
    if _is_weight(editor, factor, x):
        return factor, 0
    for weight, one in sums(factor):
        if number(editor, one) == 1 and _is_weight(editor, weight, x):
            return weight, 1
    return None


def _scale(editor: Editor, norm: Node) -> None:
    """Takes the product with a weight that follows into the norm."""
    user = only_user(norm)
    if norm.args[1] is not None or user is None or rank(user) != rank(norm):
        return
    for x, factor in products(user):
        found = _unit_offset(editor, factor, norm) if x is norm else None
        if found is not None:
            kwargs = {"eps": norm.kwargs["eps"], "unit_offset": found[1]}
            editor.replace(
                user, editor.call(torch.ops.mote.rms_norm.default, (norm.args[0], found[0]), kwargs, before=user)
            )
            editor.graph.erase_node(norm)
            return
