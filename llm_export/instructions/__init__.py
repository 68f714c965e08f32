"""Turns captured graphs into the instructions of docs/ops.md."""

from __future__ import annotations

import operator
from dataclasses import replace

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from llm_export.errors import ProgramError, UnsupportedError
from llm_export.instructions import dims, pointwise, reductions, tensors, views  # noqa: F401  (they register their handlers)
from llm_export.instructions.builder import MethodBuilder, WeightTable, canonical_dtype
from llm_export.instructions.language import is_language_op, lower_language_op
from llm_export.instructions.registry import HANDLERS, bind_arguments
from llm_export.instructions.specialize import specialize
from llm_export.passes import Fused
from llm_export.program.instructions import Lowered, LoweredMethod
from llm_export.program.specs import WeightSpec

# Arguments of these ops may be stored in any format; every other weight is stored as the op's dtype.
MATRIX_ARGUMENTS = {
    "linear": {1}, "gated_linear": {1}, "embedding": {1}, "head_linear": {1}, "expert_linear": {2},
    "moe_experts": {3, 4},
}  # fmt: skip


def lower(fused: Fused) -> Lowered:
    """Turns every graph into instructions, and adds `decode`, which is `prefill` with T = 1.

    Errors: UnsupportedError names an op that has no instruction and its line in the Hugging Face source.
    """
    table = WeightTable(_storable(fused), fused.constants)
    lowered = [_lower_method(name, program, table, fused.model_type) for name, program in fused.programs.items()]
    for method in lowered:
        method.max_tokens = fused.max_tokens
    lowered += [specialize(method, "decode", 1) for method in lowered if method.name == "prefill"]
    used = {spec.name for spec in table.weights}
    constants = {name: _canonical(tensor) for name, tensor in table.constants.items() if name in used}
    return Lowered(lowered, fused.states, table.weights, constants)


def _canonical(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(canonical_dtype(tensor.dtype)).contiguous()


def _storable(fused: Fused) -> dict[str, WeightSpec]:
    """Gives weights that no matrix kernel reads the dtype that instructions compute in."""
    matrices = {
        target
        for program in fused.programs.values()
        for node, target in weight_nodes(program).items()
        if node.users and all(_is_matrix_argument(user, node) for user in node.users)
    }
    return {
        name: spec if spec.bits or name in matrices else replace(spec, dtype=canonical_dtype(spec.dtype))
        for name, spec in fused.weights.items()
    }


def _is_matrix_argument(user: Node, node: Node) -> bool:
    if not is_language_op(user.target):
        return False
    places = MATRIX_ARGUMENTS.get(user.target._schema.name.removeprefix("mote::"), set())
    return node not in [x for i, x in enumerate(user.args) if i not in places] and node not in user.kwargs.values()


def weight_nodes(program: ExportedProgram) -> dict[Node, str]:
    """The placeholders of parameters, buffers and constants, with their names."""
    names = {
        spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.kind != InputKind.USER_INPUT
    }
    return {node: names[node.name] for node in program.graph.nodes if node.op == "placeholder" and node.name in names}


def _lower_method(name: str, program: ExportedProgram, table: WeightTable, model_type: str) -> LoweredMethod:
    builder = MethodBuilder(name, table, model_type)
    weights = weight_nodes(program)
    for node in program.graph.nodes:
        builder.node = node
        if node.op == "placeholder":
            _lower_placeholder(builder, node, weights.get(node))
        elif node.op == "output":
            builder.method.outputs = [builder.contiguous(builder.tensor(value)) for value in node.args[0]]
        elif node.op == "call_function":
            try:
                _lower_call(builder, node)
            except ProgramError as error:
                raise builder.unsupported(str(error)) from error
        else:
            raise UnsupportedError(model_type, f"graph node {node.format_node()}")
    return builder.method


def _lower_placeholder(builder: MethodBuilder, node: Node, weight: str | None) -> None:
    if weight is None:
        value = node.meta["val"]
        builder.environment[node] = builder.add_input(node.name, value.dtype, dims.shape_of(value))
    elif node.users:
        if weight not in builder.table.specs:
            raise ProgramError(f"the graph reads '{weight}', which has no entry in Fused.weights")
        builder.environment[node] = builder.weight(builder.table.specs[weight])


def _lower_call(builder: MethodBuilder, node: Node) -> None:
    result = node.meta.get("val")
    if node.target is operator.getitem:
        builder.environment[node] = builder.environment[node.args[0]][node.args[1]]
    elif is_language_op(node.target):
        builder.environment[node] = lower_language_op(builder, node)
    elif result is None or isinstance(result, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return  # sizes are read from node.meta where they are used
    elif str(node.target) not in HANDLERS:
        raise builder.unsupported("no instruction computes this op")
    else:
        builder.environment[node] = HANDLERS[str(node.target)](builder, node, bind_arguments(node))
