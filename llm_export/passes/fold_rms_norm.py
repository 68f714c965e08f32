"""A `mote::rms_norm` that only one linear reads becomes part of that linear, which then normalises as it reads."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, only_user

# The argument in which these take the weight of a norm.
NORM_WEIGHT = {"mote.linear.default": 4, "mote.gated_linear.default": 3}


def fold_rms_norm(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for norm in editor.calls("mote.rms_norm.default"):
        linear = only_user(norm)
        if linear is not None and _takes(linear, norm):
            _fold(editor, norm, linear)
    return editor.finish()


def _takes(linear: Node, norm: Node) -> bool:
    """Whether the linear multiplies the norm's result, does nothing else with it, and has no norm yet."""
    if not is_call(linear, *NORM_WEIGHT) or linear.kwargs.get("norm", "none") != "none":
        return False
    return linear.args[0] is norm and norm not in linear.args[1:]


def _fold(editor: Editor, norm: Node, linear: Node) -> None:
    x, norm_weight = norm.args[0], argument(norm, 1, "weight")
    operands = linear.args[1 : NORM_WEIGHT[str(linear.target)]]
    absent = (None,) * (NORM_WEIGHT[str(linear.target)] - 1 - len(operands))
    kwargs = dict(linear.kwargs) | {
        "norm": "rms", "norm_eps": norm.kwargs["eps"], "norm_unit_offset": norm.kwargs.get("unit_offset", 0),
    }  # fmt: skip
    arguments = (x, *operands, *absent, norm_weight)
    editor.replace(linear, editor.call(linear.target, arguments, kwargs, before=linear))
    editor.graph.erase_node(norm)
