"""Copies and first edits of captured graphs, and parameters that graphs gain and lose."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg


def copy_program(program: ExportedProgram) -> ExportedProgram:
    """A program with a graph of its own over the same fake weights."""
    graph = Graph()
    nodes: dict[Node, Node] = {}
    output = graph.graph_copy(program.graph, nodes)
    graph.output(output)
    for old, new in nodes.items():
        new.meta = dict(old.meta)
    module = GraphModule(torch.nn.Module(), graph)
    module.meta = dict(program.graph_module.meta)
    return program._update(module, copy.deepcopy(program.graph_signature), state_dict=program.state_dict)


def with_outputs(program: ExportedProgram, indices: Sequence[int]) -> ExportedProgram:
    """A copy that computes some of the outputs, and reads only what these need."""
    program = copy_program(program)
    output = program.graph.output_node()
    output.args = (tuple(output.args[0][index] for index in indices),)
    signature = program.graph_signature
    signature.output_specs[:] = [signature.output_specs[index] for index in indices]
    erase_unused(program)
    return program


def erase_unused(program: ExportedProgram) -> None:
    """Erases what nothing reads, weights too."""
    program.graph.eliminate_dead_code()
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    for spec in list(program.graph_signature.input_specs):
        node = placeholders[spec.arg.name]
        if spec.kind != InputKind.USER_INPUT and not node.users:
            program.graph.erase_node(node)
            program.graph_signature.input_specs.remove(spec)
    program.graph_module.recompile()


def fake_mode(program: ExportedProgram) -> FakeTensorMode:
    values = (node.meta.get("val") for node in program.graph.nodes)
    return next(value.fake_mode for value in values if isinstance(value, FakeTensor))


def add_parameter(program: ExportedProgram, name: str, shape: Sequence[int]) -> Node:
    """Returns a float32 parameter that the graph reads under this name from now on."""
    mode = fake_mode(program)
    with program.graph.inserting_before(next(iter(program.graph.nodes))):
        node = program.graph.placeholder("w_" + "".join(c if c.isalnum() else "_" for c in name))
    with mode:
        node.meta["val"] = torch.empty(shape, dtype=torch.float32, device="cpu")
    entry = InputSpec(InputKind.PARAMETER, TensorArgument(name=node.name), target=name, persistent=None)
    program.graph_signature.input_specs.insert(0, entry)
    program.state_dict[name] = torch.nn.Parameter(node.meta["val"], requires_grad=False)
    return node


def add_call(program: ExportedProgram, before: Node, target: Callable, *args: Any, **kwargs: Any) -> Node:
    """Inserts a call in front of a node, with that node's origin and the fake value that the op computes."""
    with program.graph.inserting_before(before):
        node = program.graph.call_function(target, args, kwargs)
    node.meta.update({key: before.meta[key] for key in ("nn_module_stack", "stack_trace") if key in before.meta})
    values = map_arg((args, kwargs), lambda argument: argument.meta["val"])
    with fake_mode(program):
        node.meta["val"] = target(*values[0], **values[1])
    return node


REDUNDANT = {
    torch.ops.aten._assert_tensor_metadata.default,
    torch.ops.aten.detach.default,
    torch.ops.aten.detach_.default,
    torch.ops.aten.alias.default,
    torch.ops.aten.lift_fresh_copy.default,
}


def remove_redundant(program: ExportedProgram) -> None:
    """Removes nodes of `REDUNDANT` ops and nodes whose result is not used."""
    for node in list(program.graph.nodes):
        if node.op == "call_function" and node.target in REDUNDANT:
            if node.args and isinstance(node.args[0], Node) and node.users:
                node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)
    program.graph.eliminate_dead_code()
    outputs = program.graph.output_node().args[0]
    for spec, node in zip(program.graph_signature.output_specs, outputs, strict=True):
        spec.arg = TensorArgument(name=node.name)
    program.graph_module.recompile()


COUNTS = {torch.ops.aten.arange.default: 0, torch.ops.aten.arange.start: 1, torch.ops.aten.arange.start_step: 1}  # end


def number_by_position(program: ExportedProgram) -> None:
    """Makes 0, 1 .. T - 1, which a module without a cache takes for its positions, those of the call's tokens."""
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    positions = placeholders["position_ids"]
    tokens = str(positions.meta["val"].shape[1])
    for node in [node for node in program.graph.nodes if node.target in COUNTS]:
        end = node.args[COUNTS[node.target]]
        start, step = node.args[0] if COUNTS[node.target] else 0, (*node.args[2:], 1)[0]
        if (start, step) != (0, 1) or not isinstance(end, Node) or str(end.meta["val"]) != tokens:
            continue
        with program.graph.inserting_before(node):
            row = program.graph.call_function(torch.ops.aten.select.int, (positions, 0, 0))
            cast = program.graph.call_function(
                torch.ops.aten._to_copy.default, (row,), {"dtype": node.meta["val"].dtype}
            )
        row.meta = node.meta | {"val": positions.meta["val"][0]}
        cast.meta = dict(node.meta)
        node.replace_all_uses_with(cast)
