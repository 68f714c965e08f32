"""PyTorch's layer norm over the last dimension, and its spelled-out form, become `mote::layer_norm`."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, only_user, rank
from llm_export.passes.match import is_inverse_root, is_root, is_square, number, over_last, products, sums


def fuse_layer_norm(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in list(editor.graph.nodes):
        if is_call(node, "aten.layer_norm.default", "aten.native_layer_norm.default"):
            _from_op(editor, node)
        elif is_call(node, "aten.mul.Tensor", "aten.div.Tensor"):
            _from_parts(editor, node)
    for node in editor.calls("mote.layer_norm.default"):
        _affine(editor, node)
    return editor.finish()


def _is_vector(editor: Editor, node: Any, x: Node) -> bool:
    spec = editor.weight(node)
    return spec is not None and spec.shape == (x.meta["val"].shape[-1],)


def _from_op(editor: Editor, node: Node) -> None:
    x, shape = node.args[0], node.args[1]
    weight, bias, eps = argument(node, 2, "weight"), argument(node, 3, "bias"), argument(node, 4, "eps", 1e-5)
    if len(shape) != 1 or not all(part is None or _is_vector(editor, part, x) for part in (weight, bias)):
        return
    native = is_call(node, "aten.native_layer_norm.default")
    users = list(node.users)
    if native and any(user.args[1] != 0 for user in users):
        return
    norm = editor.call(torch.ops.mote.layer_norm.default, (x, weight, bias), {"eps": float(eps)}, before=node)
    for user in users if native else [node]:
        editor.replace(user, norm)


def _from_parts(editor: Editor, node: Node) -> None:
    """(x - mean(x)) / sqrt(variance + eps), variance as mean((x - mean)^2) or var(x, correction=0)."""
    if is_call(node, "aten.div.Tensor") and is_root(node.args[1]):
        candidates = [(node.args[0], node.args[1].args[0])]
    else:
        candidates = [(centered, is_inverse_root(other)) for centered, other in products(node)]
    for centered, shifted in candidates:
        x = _centered(centered)
        for variance, eps in sums(shifted) if x is not None else ():
            eps = number(editor, eps)
            if eps is not None and _is_variance(variance, x, centered):
                norm = editor.call(torch.ops.mote.layer_norm.default, (x, None, None), {"eps": eps}, before=node)
                editor.replace(node, norm)
                return


def _centered(node: Any) -> Node | None:
    """x where node is x - mean(x)."""
    if not is_call(node, "aten.sub.Tensor") or node.kwargs.get("alpha", 1) != 1:
        return None
    x, mean = node.args[:2]
    return x if is_call(mean, "aten.mean.dim") and over_last(mean) and mean.args[0] is x else None


def _is_variance(node: Any, x: Node, centered: Node) -> bool:
    if is_call(node, "aten.var.correction", "aten.var.dim"):
        uncorrected = (
            node.kwargs.get("correction", 1) == 0
            or node.kwargs.get("unbiased", argument(node, 2, "unbiased", True)) is False
        )
        dims, keepdim = argument(node, 1, "dim"), node.kwargs.get("keepdim", argument(node, 3, "keepdim", False))
        return uncorrected and keepdim and list(dims or []) in ([-1], [rank(x) - 1]) and node.args[0] is x
    if not (is_call(node, "aten.mean.dim") and over_last(node) and is_square(node.args[0])):
        return False
    return node.args[0].args[0] is centered or _centered(node.args[0].args[0]) is x


def _affine(editor: Editor, norm: Node) -> None:
    """Takes a following product with a weight, and then a sum with a bias, into the norm."""
    x, weight, bias = norm.args
    for operands, place in ((products, 1), (sums, 2)):
        user = only_user(norm)
        taken = weight is not None if place == 1 else bias is not None
        if taken or bias is not None or user is None or rank(user) != rank(norm):
            continue
        for source, factor in operands(user):
            if source is norm and _is_vector(editor, factor, norm):
                weight, bias = (factor, bias) if place == 1 else (weight, factor)
                new = editor.call(
                    torch.ops.mote.layer_norm.default, (x, weight, bias), {"eps": norm.kwargs["eps"]}, before=user
                )
                editor.replace(user, new)
                editor.graph.erase_node(norm)
                norm = new
                break
