"""Numbers that the input or the result of a linear is multiplied by become a part of its weight."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, only_user, same_shape
from llm_export.passes.match import number, products
from llm_export.program.specs import WeightSpec

MOVES = (
    "aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.permute.default",
    "aten.transpose.int", "aten.unsqueeze.default",
)  # fmt: skip


def fold_factors(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls("aten.mul.Tensor"):
        for x, by in products(node):
            factor = number(editor, by)
            if factor is not None and isinstance(x, Node) and same_shape(x, node):
                _fold(editor, node, x, factor)
                break
    return editor.finish()


def _fold(editor: Editor, node: Node, x: Node, factor: float) -> None:
    linear, users = _linear_behind(x), list(node.users)
    if linear is not None and _takes(editor, linear, factor) and not _is_output(editor, node):
        _multiply(editor, linear, factor, with_bias=True)
    elif users and all(_reads(user, node) and _takes(editor, user, factor) for user in users):
        for user in users:
            _multiply(editor, user, factor, with_bias=False)
    else:
        return
    editor.replace(node, x)


def _linear_behind(x: Node) -> Node | None:
    """The linear of which x is a view that nothing else reads."""
    while is_call(x, *MOVES) and only_user(x) is not None:
        x = x.args[0]
    return x if is_call(x, "mote.linear.default") and only_user(x) is not None else None


def _reads(linear: Node, x: Node) -> bool:
    return is_call(linear, "mote.linear.default") and linear.args[0] is x and linear.all_input_nodes.count(x) == 1


def _takes(editor: Editor, linear: Node, factor: float) -> bool:
    """Whether weight and bias times the factor are what the linear multiplies by and adds, to a rounding of float32."""
    parameters = [node for node in (linear.args[1], argument(linear, 2, "bias")) if node is not None]
    specs = [editor.weight(node) for node in parameters]
    if argument(linear, 3, "residual") is not None or not (0 < factor < math.inf):
        return False
    return all(
        spec is not None and len(node.users) == 1 and len(spec.sources) == 1
        and spec.sources[0] not in editor.methods.constants and _is_exact(spec, factor)
        for node, spec in zip(parameters, specs, strict=True)
    )  # fmt: skip


def _is_exact(spec: WeightSpec, factor: float) -> bool:
    """Rows of tiles that export rounds have float32 scales; other weights are stored in their own type."""
    return spec.is_rounded or (spec.bits == 0 and (spec.dtype == torch.float32 or math.frexp(factor)[0] == 0.5))


def _is_output(editor: Editor, node: Node) -> bool:
    """Whether the method gives this, or what a few steps make of it alone: other methods may share an output head."""
    while (user := next(iter(node.users), None)) is not None and len(node.users) == 1:
        if user.op == "output":
            return True
        if sum(editor.weight_name(source) is None for source in user.all_input_nodes) > 1:
            return False
        if is_call(user, "mote.linear.default"):
            return False
        node = user
    return False


def _multiply(editor: Editor, linear: Node, factor: float, with_bias: bool) -> None:
    for at in (1, 2) if with_bias else (1,):
        parameter = linear.args[at] if at < len(linear.args) else None
        if parameter is not None:
            spec = editor.weight(parameter)
            (present,) = spec.factors or (1.0,)
            scaled = editor.add_weight(
                replace(spec, factors=(present * factor,)), suffix=".T" if spec.transpose else ""
            )
            linear.update_arg(at, scaled)
