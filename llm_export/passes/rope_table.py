"""cos and sin of position * inv_freq, however a model spells them, become `mote::rope_table`."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, rank
from llm_export.passes.match import number, products


@dataclass(frozen=True)
class Table:
    """`function` (None: identity) of angles [1, T, R/2], laid out over R/2 (`plain`) or R columns, times scale."""

    angles: Node
    layout: str = "plain"
    function: str | None = None
    scale: float = 1.0


def rope_table(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    """Replaces the tables that `mote::rope` reads."""
    editor = Editor(program, methods)
    made: dict[tuple, Node] = {}
    for node in editor.calls("mote.rope.default"):
        for place in (1, 2):
            table = describe(editor, node.args[place])
            if table is None or table.function is None or table.layout == "plain":
                continue
            output = _output(editor, made, table)
            if output is not None:
                node.update_arg(place, output)
    return editor.finish()


def describe(editor: Editor, node: Any) -> Table | None:
    """How a node follows from angles position * inv_freq, None if it does not."""
    if not isinstance(node, Node) or node.op != "call_function":
        return None
    if _angle_factors(node) is not None:
        return Table(node)
    for name in ("cos", "sin"):
        if is_call(node, f"aten.{name}.default"):
            table = describe(editor, node.args[0])
            return replace(table, function=name) if table is not None and table.function is None else None
    if is_call(node, "aten.mul.Tensor"):
        return _scaled(editor, node)
    if is_call(node, "aten.cat.default"):
        return _concatenated(editor, node)
    if is_call(node, "aten.repeat_interleave.self_int"):
        table = describe(editor, node.args[0])
        doubled = argument(node, 1, "repeats") == 2 and argument(node, 2, "dim") in (-1, rank(node) - 1)
        return (
            replace(table, layout="interleaved") if table is not None and table.layout == "plain" and doubled else None
        )
    if is_call(node, "aten.unsqueeze.default", "aten.squeeze.dim"):  # of a dimension of size 1 before the last
        outer = node.args[0].meta["val"].shape[-1] == node.meta["val"].shape[-1]
        return describe(editor, node.args[0]) if outer else None
    if is_call(node, "aten.slice.Tensor"):
        return _first_half(editor, node)
    if is_call(node, "aten.view.default", "aten.flatten.using_ints", "aten.reshape.default"):
        return _stacked(editor, node)
    return None


def _scaled(editor: Editor, node: Node) -> Table | None:
    for x, factor in products(node):
        scale, table = number(editor, factor), describe(editor, x)
        if scale is not None and table is not None and table.function is not None:
            return replace(table, scale=table.scale * scale)
    return None


def _concatenated(editor: Editor, node: Node) -> Table | None:
    parts = node.args[0]
    if len(parts) != 2 or argument(node, 1, "dim", 0) not in (-1, rank(node) - 1):
        return None
    first, second = (describe(editor, part) for part in parts)
    return replace(first, layout="half") if first is not None and first == second and first.layout == "plain" else None


def _first_half(editor: Editor, node: Node) -> Table | None:
    """The first half of a table in layout `half` is the plain one."""
    table = describe(editor, node.args[0])
    size = node.args[0].meta["val"].shape[-1]
    start, dim = argument(node, 2, "start") or 0, argument(node, 1, "dim", 0)
    if table is None or table.layout != "half" or start not in (0, size // 2) or dim not in (-1, rank(node) - 1):
        return None
    whole = node.meta["val"].shape[-1] * 2 == size and argument(node, 4, "step", 1) == 1
    return replace(table, layout="plain") if whole else None


def _stacked(editor: Editor, node: Node) -> Table | None:
    """stack((x, x), -1) with its last two dimensions joined repeats each column."""
    stack = node.args[0]
    if not is_call(stack, "aten.stack.default", "aten.cat.default") or rank(stack) != rank(node) + 1:
        return None
    parts = stack.args[0]
    if is_call(stack, "aten.cat.default"):
        parts = [part.args[0] if is_call(part, "aten.unsqueeze.default") else part for part in parts]
    if argument(stack, 1, "dim", 0) not in (-1, rank(node)) or len(parts) != 2 or stack.meta["val"].shape[-1] != 2:
        return None
    tables = [describe(editor, part) for part in parts]
    plain = tables[0] is not None and tables[0] == tables[1] and tables[0].layout == "plain"
    return replace(tables[0], layout="interleaved") if plain else None


def _angle_factors(node: Node) -> tuple[Node, Node] | None:
    """(positions int64 [1, T], frequencies with R/2 elements in their last dimension) whose product the node is."""
    if not is_call(node, "aten.mul.Tensor"):
        return None
    for left, right in products(node):
        positions = _positions(left)
        if positions is None or not isinstance(right, Node):
            continue
        shape = right.meta["val"].shape
        if (
            shape
            and all(size == 1 for size in shape[:-1])
            and node.meta["val"].shape[-1] == shape[-1]
            and rank(node) == 3
        ):
            return positions, right
    return None


def _positions(node: Any) -> Node | None:
    """int64 [1, T] where node is [1, T, 1] and its values as float32."""
    while is_call(node, "aten._to_copy.default", "aten.to.dtype", "aten.expand.default"):
        node = node.args[0]
    if not is_call(node, "aten.unsqueeze.default") or node.args[1] not in (2, -1):
        return None
    source = node.args[0]
    while is_call(source, "aten._to_copy.default", "aten.to.dtype"):
        source = source.args[0]
    return source if source.meta["val"].dtype == torch.int64 and rank(source) == 2 else None


def _output(editor: Editor, made: dict[tuple, Node], table: Table) -> Node | None:
    positions, frequencies = _angle_factors(table.angles)
    key = (positions, frequencies, table.layout, table.scale)
    if key not in made:
        made[key] = _make(editor, table, positions, frequencies)
    index = 0 if table.function == "cos" else 1
    return next(user for user in made[key].users if user.args[1] == index)


def _make(editor: Editor, table: Table, positions: Node, frequencies: Node) -> Node:
    place = table.angles
    if rank(frequencies) != 1:
        size = frequencies.meta["val"].shape[-1]
        frequencies = editor.call(torch.ops.aten.view.default, (frequencies, [size]), before=place)
    kwargs = {"scale": table.scale, "layout": table.layout}
    made = editor.call(torch.ops.mote.rope_table.default, (positions, frequencies), kwargs, before=place)
    for index in (0, 1):
        editor.call(operator.getitem, (made, index), before=place)
    return made
