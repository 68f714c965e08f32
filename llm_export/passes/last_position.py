"""Makes `prefill` from `verify`: behind the last attention, only the last position is computed."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.capture.programs import copy_program
from llm_export.passes.edit import Editor, is_call, is_static

# Each position of the output depends on the same position of the inputs, whatever the sizes of the other dimensions.
POINTWISE = {
    "add", "sub", "rsub", "mul", "div", "neg", "abs", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal",
    "sin", "cos",
    "tanh", "sigmoid", "silu", "relu", "gelu", "erf", "softplus", "pow", "square", "maximum", "minimum", "clamp",
    "clamp_min",
    "clamp_max", "where", "leaky_relu", "elu", "_to_copy", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or",
    "logical_not", "bitwise_not", "bitwise_and", "bitwise_or", "masked_fill", "addcmul", "mish", "isnan", "relu6",
    "hardtanh",
}  # fmt: skip
LAST_DIMENSION = {"linear", "gated_linear", "rms_norm", "layer_norm"}  # of `mote::`: mix only the last dimension
POSITION_DIM = 1  # activations behind attention are [1, T, ..]


def last_position(program: ExportedProgram, methods: Methods, keep_others: bool = True) -> ExportedProgram:
    """Returns a copy of the graph whose first output is [1, 1, vocab_size]: the last position's.

    keep_others: whether further outputs stay those of every position
    """
    program = copy_program(program)
    editor = Editor(program, methods)
    kept = set(editor.graph.output_node().args[0][1:]) if keep_others else set()
    inside = _independent_nodes(editor, kept)
    cuts = {}
    for node in [node for node in editor.graph.nodes if node in inside or node.op == "output"]:
        arguments = [
            argument for argument in node.all_input_nodes if argument not in inside and _has_positions(argument)
        ]
        if node.op == "output":
            arguments = [argument for argument in arguments if argument not in kept]
        for argument in arguments:
            if argument not in cuts:
                cuts[argument] = editor.call(
                    torch.ops.aten.slice.Tensor, (argument, POSITION_DIM, -1, 2**63 - 1), before=node
                )
            node.replace_input_with(argument, cuts[argument])
        if node.op != "output":
            editor.update_value(node)
    return editor.finish()


def _has_positions(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dim() > POSITION_DIM and not is_static(value.shape[POSITION_DIM])


def _independent_nodes(editor: Editor, kept: set[Node]) -> set[Node]:
    """Nodes whose every use leads to the output, or to a choice of the last position, through nodes that treat each
    position on its own.

    kept: outputs of every position
    """
    inside: set[Node] = set()
    for node in reversed(editor.graph.nodes):
        if node.op != "call_function" or node in kept or not _has_positions(node) or not _is_independent(node):
            continue
        if node.users and all(user in inside or user.op == "output" or _takes_last(user) for user in node.users):
            inside.add(node)
    return inside


def _takes_last(node: Node) -> bool:
    """Whether a node takes the last position only, as a graph may do itself."""
    return is_call(node, "aten.slice.Tensor") and tuple(node.args[1:3]) == (POSITION_DIM, -1)


def _is_independent(node: Node) -> bool:
    """Whether node, [1, T, ..], treats positions alike; operands without positions broadcast over them."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not _static_arguments(node):
        return False
    name = target._schema.name.split("::")[1]
    operands = [x for x in node.all_input_nodes if isinstance(x.meta.get("val"), torch.Tensor)]
    if target.namespace == "mote":
        return name in LAST_DIMENSION and _positions_align(node, operands)
    if name in POINTWISE:
        return _positions_align(node, operands)
    if is_call(node, "aten.mean.dim", "aten.amax.default", "aten.sum.dim_IntList"):
        keepdim = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
        return keepdim and all(dim in (-1, node.meta["val"].dim() - 1) for dim in node.args[1])
    if is_call(node, "aten.slice.Tensor", "aten.cat.default"):
        dim = node.args[1] if len(node.args) > 1 else 0
        return dim % node.meta["val"].dim() > POSITION_DIM and all(_has_positions(x) for x in operands)
    return False


def _static_arguments(node: Node) -> bool:
    return all(isinstance(x.meta.get("val"), torch.Tensor) for x in node.all_input_nodes)


def _positions_align(node: Node, operands: list[Node]) -> bool:
    """Every operand either has T where the output has it, or no size that depends on T."""
    dim = node.meta["val"].dim()
    return all(_aligned(x, dim) for x in operands)


def _aligned(operand: Node, dim: int) -> bool:
    shape = operand.meta["val"].shape
    if all(is_static(size) for size in shape):
        return True
    return len(shape) == dim and [i for i, size in enumerate(shape) if not is_static(size)] == [POSITION_DIM]
