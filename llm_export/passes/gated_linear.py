"""function(gate) * up, of two linears of one input or of the halves of one, becomes `mote::gated_linear`."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, only_user, rank
from llm_export.passes.match import products
from llm_export.passes.merge_linears import merge_key, merged_parameters

FUNCTIONS = {"aten.silu.default": "silu", "aten.relu.default": "relu", "aten.sigmoid.default": "sigmoid"}


def gated_linear(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls("aten.mul.Tensor"):
        for activated, up in products(node):
            name = _function(activated)
            if name is not None and isinstance(up, Node) and _fuse(editor, node, name, activated.args[0], up):
                break
    return editor.finish()


def _function(node: Any) -> str | None:
    if not isinstance(node, Node) or only_user(node) is None:
        return None
    if is_call(node, "aten.gelu.default"):
        return "gelu_tanh" if node.kwargs.get("approximate", "none") == "tanh" else "gelu"
    return FUNCTIONS.get(str(node.target))


def _fuse(editor: Editor, node: Node, function: str, gate: Node, up: Node) -> bool:
    found = _two_linears(editor, gate, up) or _halves(gate, up)
    if found is None:
        return False
    x, weight, bias, activations = found
    kwargs = {"activations": activations, "function": function}
    editor.replace(node, editor.call(torch.ops.mote.gated_linear.default, (x, weight, bias), kwargs, before=node))
    return True


def _two_linears(editor: Editor, gate: Node, up: Node) -> tuple | None:
    linears = [gate, up]
    if not all(is_call(linear, "mote.linear.default") and only_user(linear) is not None for linear in linears):
        return None
    keys = [merge_key(editor, linear) for linear in linears]
    if keys[0] is None or keys[0] != keys[1] or gate.args[1] is up.args[1]:
        return None
    if editor.weight(gate.args[1]).shape != editor.weight(up.args[1]).shape:
        return None
    weight, bias = merged_parameters(editor, linears)
    return gate.args[0], weight, bias, gate.kwargs["activations"]


def _halves(gate: Node, up: Node) -> tuple | None:
    """(x, weight, bias, activations) where gate and up are the halves of one linear that nothing else reads."""
    first, second = _half(gate), _half(up)
    if first is None or second is None or first[0] is not second[0] or (first[1], second[1]) != (0, 1):
        return None
    linear = first[0]
    if not is_call(linear, "mote.linear.default") or argument(linear, 3, "residual") is not None:
        return None
    if not all(_leads_only_to(user, (gate, up)) for user in linear.users):
        return None
    return linear.args[0], linear.args[1], argument(linear, 2, "bias"), linear.kwargs["activations"]


def _leads_only_to(node: Node, ends: tuple[Node, Node]) -> bool:
    if node in ends:
        return only_user(node) is not None
    return is_call(node, *SPLITS) and all(user in ends and only_user(user) is not None for user in node.users)


SPLITS = ("aten.split.Tensor", "aten.chunk.default", "aten.split_with_sizes.default")


def _half(node: Node) -> tuple[Node, int] | None:
    """(whole, 0 or 1) where node is that half of whole's last dimension."""
    if is_call(node, "aten.slice.Tensor"):
        whole = node.args[0]
        size, last = whole.meta["val"].shape[-1], rank(whole) - 1
        dim, start = argument(node, 1, "dim", 0), argument(node, 2, "start") or 0
        if dim not in (-1, last) or argument(node, 4, "step", 1) != 1 or 2 * node.meta["val"].shape[-1] != size:
            return None
        return (whole, 0) if start == 0 else (whole, 1) if start in (size // 2, -size // 2) else None
    if isinstance(node, Node) and len(node.args) == 2 and is_call(node.args[0], *SPLITS):
        parts = node.args[0]
        whole, dim = parts.args[0], argument(parts, 2, "dim", 0)
        sizes = [part.shape[-1] for part in parts.meta["val"]]
        if dim in (-1, rank(whole) - 1) and len(sizes) == 2 and sizes[0] == sizes[1]:
            return whole, node.args[1]
    return None
