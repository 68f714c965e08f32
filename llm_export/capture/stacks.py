"""Stacks of matrices that a checkpoint stores as one matrix become weights of their own, which ops read as they are.

An expert's matrices may lie one below the other, gates apart from ups; so may those of a linear for each group of
features, which is then a `mote::head_linear`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.programs import add_call, add_parameter, erase_unused
from llm_export.checkpoint.parts import part_name
from llm_export.program.specs import WeightSpec

aten, mote = torch.ops.aten, torch.ops.mote

STACKS = {mote.moe_experts.default: (3, 4), mote.expert_linear.default: (2,), mote.head_linear.default: (1,)}
VIEWS = {aten.view.default, aten._unsafe_view.default, aten.reshape.default}


class _Stack(NamedTuple):
    """matrices: of each part of its rows   transposed: whether the parts lie [in_features, out_features]"""

    matrices: tuple[Node, ...]
    transposed: bool


def separate(programs: Iterable[ExportedProgram], weights: dict[str, WeightSpec]) -> None:
    """Rewrites the stacks of graphs. weights: what these read, by name; gains and loses entries with them"""
    read = set()
    for program in programs:
        _separate(program, weights)
        read |= {spec.target for spec in program.graph_signature.input_specs}
    for name in weights.keys() - read:
        del weights[name]


def _separate(program: ExportedProgram, weights: dict[str, WeightSpec]) -> None:
    names = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
    for node in list(program.graph.nodes):
        for at in STACKS.get(node.target, ()):
            found = _find(node.args[at], names, weights)
            if found is not None:
                node.update_arg(at, _weight(program, node.args[at], found, names, weights))
        if node.target is aten.bmm.default:
            found = _find(node.args[1], names, weights)
            if found is not None:
                _multiply_groups(program, node, found, names, weights)
    erase_unused(program)


def _find(node: Node, names: dict[str, str], weights: dict[str, WeightSpec]) -> _Stack | None:
    """Returns the stored matrices that a stack is a view of, None if it is anything else."""
    if node.op != "call_function" or len(node.users) != 1:
        return None
    if node.target is aten.transpose.int and sorted(dim % 3 for dim in node.args[1:3]) == [1, 2]:
        found = _find(node.args[0], names, weights)
        return found and found._replace(transposed=not found.transposed)
    if node.target is aten.cat.default and len(node.args) > 1 and node.args[1] in (1, -2):
        parts = [_find(part, names, weights) for part in node.args[0]]
        if None in parts or any(part.transposed for part in parts):
            return None
        return _Stack(tuple(matrix for part in parts for matrix in part.matrices), False)
    if node.target not in VIEWS or node.meta["val"].dim() != 3:
        return None
    matrix = node.args[0]
    spec = weights.get(names.get(matrix.name, ""))
    is_stored = matrix.op == "placeholder" and spec is not None and len(matrix.users) == 1
    if not is_stored or len(spec.shape) != 2 or len(spec.sources) != 1 or spec.shape[1] != node.meta["val"].shape[2]:
        return None
    return _Stack((matrix,), False)


def _weight(
    program: ExportedProgram, node: Node, found: _Stack, names: dict[str, str], weights: dict[str, WeightSpec]
) -> Node:
    """A parameter of the shape of `node`, which is a view of the stored matrices."""
    shape = tuple(node.meta["val"].shape)
    specs = [weights[names[matrix.name]] for matrix in found.matrices]
    rows = [spec.shape[0] // shape[0] for spec in specs]
    sources = tuple(part_name(spec.sources[0], shape[0], 0, each) for spec, each in zip(specs, rows, strict=True))
    several = tuple(rows) if len(rows) > 1 else ()
    made = WeightSpec(sources, shape, specs[0].dtype, transpose=found.transposed, source_rows=several)
    weights[made.name] = made
    return add_parameter(program, made.name, shape)


def _multiply_groups(
    program: ExportedProgram, node: Node, found: _Stack, names: dict[str, str], weights: dict[str, WeightSpec]
) -> None:
    """Makes x [G, T, K] times [G, K, N] a linear for each group."""
    with_rows = add_call(program, node, aten.transpose.int, node.args[1], 1, 2)
    weight = _weight(program, with_rows, found._replace(transposed=not found.transposed), names, weights)
    x = add_call(program, node, aten.transpose.int, node.args[0], 0, 1)
    y = add_call(program, node, mote.head_linear.default, x, weight)
    node.replace_all_uses_with(add_call(program, node, aten.transpose.int, y, 0, 1))
