"""Turns products with a stored matrix into `mote::linear`, and lookups in a stored table into `mote::embedding`.

Matrices that the checkpoint stores transposed get a weight of their own that holds them as the kernels read them.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, rank
from llm_export.program.specs import WeightSpec
from llm_export.quantize.uses import EXPERT_LINEARS, EXPERTS, HEADS, takes_first

TRANSPOSES = ("aten.t.default", "aten.transpose.int", "aten.permute.default", "aten.numpy_T.default")


def canonical_embedding(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls("aten.embedding.default"):
        table, ids = node.args[:2]
        spec = editor.weight(table)
        if spec is None or rank(table) != 2 or not spec.dtype.is_floating_point:
            continue
        kwargs = {"rotated": int(spec.is_rotated)}
        editor.replace(node, editor.call(torch.ops.mote.embedding.default, (ids, table), kwargs, before=node))
    return editor.finish()


def canonical_linear(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls("aten.linear.default"):
        x, weight, bias = node.args[0], node.args[1], argument(node, 2, "bias")
        _replace(editor, node, x, _as_weight(editor, weight, transposed=False), bias)
    for node in editor.calls("aten.addmm.default"):
        bias, x, weight = node.args[:3]
        if argument(node, 3, "beta", 1) == 1 and argument(node, 4, "alpha", 1) == 1 and rank(bias) == 1:
            _replace(editor, node, x, _as_weight(editor, weight, transposed=True), bias)
    for node in editor.calls("aten.mm.default", "aten.matmul.default"):
        if rank(node.args[0]) >= 2:
            _replace(editor, node, node.args[0], _as_weight(editor, node.args[1], transposed=True), None)
    return editor.finish()


def canonical_experts(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    """Says how products with stacks round their inputs, and stores stacks as kernels read them."""
    editor = Editor(program, methods)
    for node in editor.calls("mote.head_linear.default", "mote.expert_linear.default"):
        at = {**HEADS, **EXPERT_LINEARS}[node.target]
        spec = editor.weight(node.args[at])
        if spec is not None:
            node.kwargs = {**node.kwargs, "activations": spec.activations}
    for node in editor.calls("mote.moe_experts.default"):
        for stack in [x for x in node.args if isinstance(x, Node) and takes_first(x)]:
            spec = editor.weight(stack.args[0])
            if spec is not None and len(spec.sources) == 1 and not spec.transpose:
                first = replace(spec, shape=tuple(stack.meta["val"].shape), takes_first=True)
                node.replace_input_with(stack, editor.add_weight(first, suffix=".first"))
        stacks = [x for x in node.args if isinstance(x, Node) and is_call(x, *TRANSPOSES)]
        for stack in stacks:
            spec = editor.weight(stack.args[0])
            swapped = (*stack.args[0].meta["val"].shape[:-2], *stack.args[0].meta["val"].shape[:-3:-1])
            if spec is None or rank(stack) != 3 or tuple(stack.meta["val"].shape) != swapped:
                continue
            stored = _transposed(editor, stack.args[0], spec)
            if stored is not None:
                node.replace_input_with(stack, stored)
        specs = [editor.weight(node.args[at]) for at in EXPERTS[node.target]]  # whose inputs are rounded alike
        if None not in specs:
            node.kwargs = {**node.kwargs, "activations": specs[0].activations}
    return editor.finish()


def _as_weight(editor: Editor, node: Node, transposed: bool) -> Node | None:
    """The placeholder of the stored matrix [out, in] behind a factor; transposed: the factor is [in, out]."""
    while is_call(node, *TRANSPOSES) and rank(node) == 2:
        node, transposed = node.args[0], not transposed
    spec = editor.weight(node)
    if spec is None or len(spec.shape) != 2:
        return None
    return _transposed(editor, node, spec) if transposed else node


def _transposed(editor: Editor, node: Node, spec: WeightSpec) -> Node | None:
    """A weight of its own that holds the transposed matrix, as GPT-2's Conv1D needs it."""
    if len(spec.sources) != 1:
        return None
    shape = (*spec.shape[:-2], spec.shape[-1], spec.shape[-2])
    return editor.add_weight(replace(spec, shape=shape, transpose=not spec.transpose), suffix=".T")


def _replace(editor: Editor, node: Node, x: Node, weight: Node | None, bias: Node | None) -> None:
    if weight is None or (bias is not None and bias.meta["val"].shape != weight.meta["val"].shape[:1]):
        return
    spec = editor.weight(weight)
    if not spec.dtype.is_floating_point or x.meta["val"].dtype != torch.float32:
        return
    kwargs = {"activations": spec.activations}
    editor.replace(node, editor.call(torch.ops.mote.linear.default, (x, weight, bias, None), kwargs, before=node))
