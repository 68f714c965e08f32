"""Linears that read the same input become one linear, of whose result each takes a slice (q, k and v; gate and up)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, rank
from llm_export.program.specs import WeightSpec


def merge_linears(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    groups: dict[tuple, list[Node]] = defaultdict(list)
    for node in editor.calls("mote.linear.default"):
        key = merge_key(editor, node)
        if key is not None:
            groups[key].append(node)
    for group in groups.values():
        if len(group) > 1 and len({node.args[1] for node in group}) == len(group):
            _merge(editor, group)
    return editor.finish()


def merge_key(editor: Editor, node: Node) -> tuple | None:
    """What linears must have in common to be merged; None for one that stays alone."""
    x, weight, bias = node.args[0], node.args[1], argument(node, 2, "bias")
    spec = editor.weight(weight)
    if spec is None or argument(node, 3, "residual") is not None or not _only_in_linears(weight):
        return None
    if bias is not None and (editor.weight(bias) is None or not _only_in_linears(bias)):
        return None
    if any(source in editor.methods.constants for source in spec.sources):
        return None
    return (x, bias is None, replace(spec, sources=(), shape=spec.shape[1:], source_rows=(), factors=()))


def _only_in_linears(weight: Node) -> bool:
    """A weight that something else reads too would have to be stored twice."""
    return all(is_call(user, "mote.linear.default") for user in weight.users)


def merged_parameters(editor: Editor, linears: Sequence[Node]) -> tuple[Node, Node | None]:
    """Adds the weight whose rows are those of the linears' weights in order, and likewise the bias."""
    specs = [editor.weight(node.args[1]) for node in linears]
    weight = editor.add_weight(_joined(specs), suffix=".T" if specs[0].transpose else "")
    if argument(linears[0], 2, "bias") is None:
        return weight, None
    return weight, editor.add_weight(_joined([editor.weight(argument(node, 2, "bias")) for node in linears]))


def _joined(specs: Sequence[WeightSpec]) -> WeightSpec:
    first = specs[0]
    factors = tuple(factor for spec in specs for factor in spec.factors or (1.0,) * len(spec.sources))
    return replace(
        first,
        sources=tuple(source for spec in specs for source in spec.sources),
        shape=(sum(spec.shape[0] for spec in specs), *first.shape[1:]),
        factors=factors if any(spec.factors for spec in specs) else (),
        source_rows=tuple(rows for spec in specs for rows in spec.source_rows or (spec.shape[0],)),
    )


def _merge(editor: Editor, linears: list[Node]) -> None:
    first = linears[0]
    sizes = [editor.weight(node.args[1]).shape[0] for node in linears]
    weight, bias = merged_parameters(editor, linears)
    merged = editor.call(
        torch.ops.mote.linear.default, (first.args[0], weight, bias, None), dict(first.kwargs), before=first
    )
    parts, start = [], 0
    for size in sizes:
        parts.append(
            editor.call(torch.ops.aten.slice.Tensor, (merged, rank(merged) - 1, start, start + size), before=first)
        )
        start += size
    for node, part in zip(linears, parts, strict=True):
        editor.replace(node, part)
