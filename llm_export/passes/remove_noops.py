"""Removes nodes that compute nothing."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, is_static, same_shape

ASSERTIONS = {
    "aten._assert_tensor_metadata.default", "aten._assert_async.msg", "aten._assert_async.default",
    "aten._assert_scalar.default",
    "aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default",
}  # fmt: skip
IDENTITIES = {
    "aten.alias.default", "aten.detach.default", "aten.detach_.default", "aten.lift_fresh_copy.default",
    "aten.clone.default",
    "aten.contiguous.default", "aten.dropout.default", "aten.positive.default",
}  # fmt: skip
SAME_SHAPE = {
    "aten.expand.default", "aten.view.default", "aten.reshape.default", "aten._unsafe_view.default",
    "aten.slice.Tensor",
    "aten.flatten.using_ints", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default",
    "aten.expand_as.default",
    "aten.repeat.default",
}  # fmt: skip
CASTS = {"aten._to_copy.default", "aten.to.dtype", "aten.type_as.default", "aten.to.dtype_layout"}
FLOATS = {torch.float32, torch.float16, torch.bfloat16, torch.float64}


def remove_noops(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in list(editor.graph.nodes):
        if is_call(node, *ASSERTIONS):
            editor.graph.erase_node(node)
        elif is_call(node, "aten.cat.default"):
            _drop_empty_parts(editor, node)
        elif node.op == "call_function" and _is_identity(node):
            editor.replace(node, node.args[0])
    return editor.finish()


def _drop_empty_parts(editor: Editor, node: Node) -> None:
    """Drops parts without elements, for instance the columns that a full rotation leaves as they are."""
    parts = [part for part in node.args[0] if all(not is_static(size) or size != 0 for size in part.meta["val"].shape)]
    same_dtype = all(part.meta["val"].dtype == node.meta["val"].dtype for part in parts)
    if not parts or len(parts) == len(node.args[0]) or not same_dtype:
        return
    if len(parts) == 1:
        editor.replace(node, parts[0])
    else:
        node.update_arg(0, parts)


def _is_identity(node: Node) -> bool:
    target, value = str(node.target), node.meta.get("val")
    source = node.args[0] if node.args else None
    if (
        not isinstance(source, Node)
        or not isinstance(value, torch.Tensor)
        or not isinstance(source.meta["val"], torch.Tensor)
    ):
        return False
    before = source.meta["val"].dtype
    if target in IDENTITIES:
        return True
    if target in CASTS:  # every float is computed in float32
        return before == value.dtype or (before in FLOATS and value.dtype in FLOATS)
    if not same_shape(node, source) or before != value.dtype:
        return False
    if target in SAME_SHAPE:
        return True
    return _is_neutral(node, target)


def _is_neutral(node: Node, target: str) -> bool:
    other = argument(node, 1, "other")
    if isinstance(other, bool) or not isinstance(other, (int, float)):
        return False
    if target in ("aten.mul.Tensor", "aten.div.Tensor", "aten.mul.Scalar", "aten.div.Scalar"):
        return other == 1
    if target == "aten.pow.Tensor_Scalar":
        return other == 1
    return target in ("aten.add.Tensor", "aten.sub.Tensor") and other == 0
