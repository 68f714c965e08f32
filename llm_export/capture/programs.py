"""Copies of captured graphs."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, GraphModule, Node


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
    program.graph.eliminate_dead_code()
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    for spec in list(signature.input_specs):
        node = placeholders[spec.arg.name]
        if spec.kind != InputKind.USER_INPUT and not node.users:
            program.graph.erase_node(node)
            signature.input_specs.remove(spec)
    program.graph_module.recompile()
    return program
