"""Activations that a model spells out become one op: x * sigmoid(x), and gelu by its tanh approximation."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, is_call
from llm_export.passes.match import number, products, sums


def fuse_activations(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls("aten.mul.Tensor"):
        x = _silu(node)
        if x is not None:
            editor.replace(node, editor.call(torch.ops.aten.silu.default, (x,), before=node))
            continue
        for function, approximate in ((_tanh_gelu, "tanh"), (_erf_gelu, "none")):
            x = function(editor, node)
            if x is not None:
                kwargs = {"approximate": approximate}
                editor.replace(node, editor.call(torch.ops.aten.gelu.default, (x,), kwargs, before=node))
                break
    return editor.finish()


def _silu(node: Node) -> Node | None:
    return next((x for x, gate in products(node) if is_call(gate, "aten.sigmoid.default") and gate.args[0] is x), None)


def _near(editor: Editor, argument: Any, expected: float) -> bool:
    value = number(editor, argument)
    return value is not None and math.isclose(value, expected, rel_tol=1e-6)


def _half_times_one_plus(editor: Editor, node: Node) -> tuple[Node, Node] | None:
    """(x, y) where node is 0.5 * x * (1 + y), in any grouping."""
    for left, right in products(node):
        for y, one in sums(right):
            if _near(editor, one, 1.0):
                for half, x in products(left):
                    if _near(editor, half, 0.5) and isinstance(x, Node):
                        return x, y
        if _near(editor, right, 0.5):
            for x, sum_node in products(left):
                for y, one in sums(sum_node):
                    if _near(editor, one, 1.0) and isinstance(x, Node):
                        return x, y
    return None


def _tanh_gelu(editor: Editor, node: Node) -> Node | None:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))"""
    found = _half_times_one_plus(editor, node)
    if found is None or not is_call(found[1], "aten.tanh.default"):
        return None
    x, root = found[0], math.sqrt(2 / math.pi)
    for inner, factor in products(found[1].args[0]):
        if not _near(editor, factor, root):
            continue
        for term, cubic in sums(inner):
            if term is x and _is_cubic(editor, cubic, x):
                return x
    return _factored(editor, found[1].args[0], x)


def _is_cubic(editor: Editor, node: Any, x: Node) -> bool:
    return any(
        _near(editor, factor, 0.044715) and is_call(cube, "aten.pow.Tensor_Scalar") and cube.args == (x, 3)
        for cube, factor in products(node)
    )


def _factored(editor: Editor, node: Any, x: Node) -> Node | None:
    """x * sqrt(2 / pi) * (1 + 0.044715 * x * x)"""
    for scaled, shifted in products(node):
        if not any(a is x and _near(editor, b, math.sqrt(2 / math.pi)) for a, b in products(scaled)):
            continue
        for quadratic, one in sums(shifted):
            if _near(editor, one, 1.0) and _is_quadratic(editor, quadratic, x):
                return x
    return None


def _is_quadratic(editor: Editor, node: Any, x: Node) -> bool:
    return any(
        other is x and any(a is x and _near(editor, b, 0.044715) for a, b in products(scaled))
        for scaled, other in products(node)
    )


def _erf_gelu(editor: Editor, node: Node) -> Node | None:
    """0.5 x (1 + erf(x / sqrt(2)))"""
    found = _half_times_one_plus(editor, node)
    if found is None or not is_call(found[1], "aten.erf.default"):
        return None
    x, inner = found[0], found[1].args[0]
    divided = is_call(inner, "aten.div.Tensor") and inner.args[0] is x and _near(editor, inner.args[1], math.sqrt(2))
    multiplied = any(a is x and _near(editor, b, math.sqrt(0.5)) for a, b in products(inner))
    return x if divided or multiplied else None
