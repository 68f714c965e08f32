"""x * cos + turned(x) * sin, in each of the ways that models spell it, becomes `mote::rope`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor, argument, is_call, only_user, rank, same_shape
from llm_export.passes.match import products, sums

VIEWS = ("aten.view.default", "aten.flatten.using_ints", "aten.reshape.default", "aten._unsafe_view.default")


@dataclass(frozen=True)
class Match:
    x: Node  # [1, H, T, R] or [1, T, H, R]
    cos: Node  # [1, 1, T, R] or [1, T, 1, R]; `plain`: R/2 columns
    sin: Node
    layout: str
    plain: bool = False
    in_pairs: bool = False  # `half`, of the even columns of x in front of the odd ones


def fuse_rope(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in list(editor.graph.nodes):
        if is_call(node, "aten.add.Tensor"):
            found = next(_rotations(node), None)
        elif is_call(node, "aten.cat.default"):
            found = _by_halves(node)
        elif is_call(node, *VIEWS):
            found = _by_pairs(node)
        else:
            continue
        if found is not None:
            _replace(editor, node, found)
    for node in editor.calls("mote.rope.default"):
        _take_rest(editor, node)
    return editor.finish()


def _rotations(node: Node) -> Iterator[Match]:
    """x * cos + turn(x) * sin"""
    for left, right in sums(node):
        for x, cos in products(left):
            for turned, sin in products(right):
                layout = turn_of(turned, x) if isinstance(x, Node) and rank(x) == 4 else None
                if layout is not None and same_shape(node, x):
                    yield Match(x, cos, sin, layout)


def turn_of(node: Any, x: Node) -> str | None:
    """The layout in which node is the quarter turn of x."""
    size = x.meta["val"].shape[-1]
    if is_call(node, "aten.cat.default") and len(node.args[0]) == 2 and _is_last(node, argument(node, 1, "dim", 0)):
        first, second = node.args[0]
        if _is_part(_negated(first), x, size // 2, size) and _is_part(second, x, 0, size // 2):
            return "half"
        if _is_part(first, x, size // 2, size) and _is_part(_negated(second), x, 0, size // 2):
            return "half_flipped"
    pair = _pair(node)
    if pair is not None and _is_part(_negated(pair[0]), x, 1, size, 2) and _is_part(pair[1], x, 0, size, 2):
        return "interleaved"
    return None


def _negated(node: Any) -> Node | None:
    if is_call(node, "aten.neg.default"):
        return node.args[0]
    return node.args[0] if is_call(node, "aten.mul.Tensor") and node.args[1] == -1 else None


def _is_last(node: Node, dim: int) -> bool:
    return dim in (-1, rank(node) - 1)


def _part(node: Any) -> tuple[Node, int, int, int] | None:
    """(whole, start, end, step) where node is that slice of whole's last dimension."""
    if isinstance(node, Node) and len(node.args) == 2 and is_call(node.args[0], *SPLITS):
        split = node.args[0]
        whole, sizes = split.args[0], [part.shape[-1] for part in split.meta["val"]]
        if _is_last(whole, argument(split, 2, "dim", 0)):
            start = sum(sizes[: node.args[1]])
            return whole, start, start + sizes[node.args[1]], 1
        return None
    if not is_call(node, "aten.slice.Tensor") or not _is_last(node, argument(node, 1, "dim", 0)):
        return None
    size = node.args[0].meta["val"].shape[-1]
    start, end = argument(node, 2, "start") or 0, argument(node, 3, "end")
    if not isinstance(start, int) or not isinstance(end, (int, type(None))):
        return None
    start = start + size if start < 0 else start
    end = size if end is None else min(end + size if end < 0 else end, size)
    return node.args[0], start, end, argument(node, 4, "step", 1)


SPLITS = ("aten.split.Tensor", "aten.chunk.default", "aten.split_with_sizes.default")


def _is_part(node: Any, whole: Node, start: int, end: int, step: int = 1) -> bool:
    part = _part(node)
    if part is None:
        return False
    if part[0] is whole:
        return part[1:] == (start, end, step)
    # x may itself be the front of a larger tensor that the halves are cut from.
    front = _part(whole)
    return front is not None and front[3] == 1 and part == (front[0], front[1] + start, front[1] + end, step)


def _pair(node: Any) -> tuple[Node, Node] | None:
    """(a, b) where node is stack((a, b), -1) with its last two dimensions joined."""
    if not is_call(node, *VIEWS):
        return None
    stack = node.args[0]
    if not is_call(stack, "aten.stack.default", "aten.cat.default") or rank(stack) != rank(node) + 1:
        return None
    if stack.meta["val"].shape[-1] != 2 or not _is_last(stack, argument(stack, 1, "dim", 0)) or len(stack.args[0]) != 2:
        return None
    parts = stack.args[0]
    if is_call(stack, "aten.cat.default"):
        if not all(is_call(part, "aten.unsqueeze.default") for part in parts):
            return None
        parts = [part.args[0] for part in parts]
    return tuple(parts)


def _turned_parts(first: Any, second: Any) -> tuple[Node, Node, Node, Node] | None:
    """(a, b, cos, sin) where first is a cos - b sin and second is b cos + a sin."""
    if not is_call(first, "aten.sub.Tensor") or first.kwargs.get("alpha", 1) != 1:
        return None
    for a, cos in products(first.args[0]):
        for b, sin in products(first.args[1]):
            for left, right in sums(second):
                if (
                    set(left.args[:2]) == {b, cos}
                    and set(right.args[:2]) == {a, sin}
                    and is_call(left, *MUL)
                    and is_call(right, *MUL)
                ):
                    return a, b, cos, sin
    return None


MUL = ("aten.mul.Tensor",)


def _by_halves(node: Node) -> Match | None:
    """cat((x1 cos - x2 sin, x2 cos + x1 sin)) of halves or of even and odd columns, cos and sin with one for both."""
    if rank(node) != 4 or len(node.args[0]) != 2 or not _is_last(node, argument(node, 1, "dim", 0)):
        return None
    parts = _turned_parts(*node.args[0])
    pairs = _from_parts(parts, "interleaved")
    return replace(pairs, layout="half", in_pairs=True) if pairs is not None else _from_parts(parts, "half")


def _by_pairs(node: Node) -> Match | None:
    """The same over even and odd columns, stacked."""
    pair = _pair(node) if rank(node) == 4 else None
    return _from_parts(_turned_parts(*pair), "interleaved") if pair is not None else None


def _from_parts(parts: tuple | None, layout: str) -> Match | None:
    if parts is None:
        return None
    a, b, cos, sin = parts
    first = _part(a)
    if first is None:
        return None
    x, size = first[0], first[0].meta["val"].shape[-1]
    bounds = ((0, size // 2, 1), (size // 2, size, 1)) if layout == "half" else ((0, size, 2), (1, size, 2))
    if not (_is_part(a, x, *bounds[0]) and _is_part(b, x, *bounds[1])):
        return None
    return Match(x, cos, sin, layout, plain=True)


def _replace(editor: Editor, node: Node, match: Match) -> None:
    """Inserts the op, around which heads and tokens change places where x is [1, T, H, R]."""
    heads = _heads_dim(match)
    if heads is None or match.x.meta["val"].dtype != torch.float32:
        return
    cos, sin = (_table(editor, node, table, heads, match) for table in (match.cos, match.sin))
    x = _by_parity(editor, node, match.x) if match.in_pairs else match.x
    x = x if heads == 1 else editor.call(torch.ops.aten.transpose.int, (x, 1, 2), before=node)
    rope = editor.call(torch.ops.mote.rope.default, (x, cos, sin), {"layout": match.layout}, before=node)
    if heads == 2:
        rope = editor.call(torch.ops.aten.transpose.int, (rope, 1, 2), before=node)
    editor.replace(node, rope)


def _by_parity(editor: Editor, node: Node, x: Node) -> Node:
    """The even columns in front of the odd ones."""
    *outer, columns = [size if isinstance(size, int) else -1 for size in x.meta["val"].shape]
    pairs = editor.call(torch.ops.aten.reshape.default, (x, [*outer, columns // 2, 2]), before=node)
    halves = editor.call(torch.ops.aten.transpose.int, (pairs, 3, 4), before=node)
    return editor.call(torch.ops.aten.reshape.default, (halves, [*outer, columns]), before=node)


def _heads_dim(match: Match) -> int | None:
    """1 or 2, the dimension over which cos and sin are broadcast; None if their shapes are not those of tables."""
    columns = match.x.meta["val"].shape[-1] // (2 if match.plain else 1)
    for table in (match.cos, match.sin):
        if not isinstance(table, Node) or rank(table) != 4 or table.meta["val"].shape[-1] != columns:
            return None
    shape, x = match.cos.meta["val"].shape, match.x.meta["val"].shape
    if not same_shape(match.cos, match.sin) or shape[0] != 1:
        return None
    for heads, tokens in ((1, 2), (2, 1)):
        if str(shape[heads]) == "1" and str(shape[tokens]) == str(x[tokens]):
            return heads
    return None


def _table(editor: Editor, node: Node, table: Node, heads: int, match: Match) -> Node:
    """[1, T, R] of a table [1, 1, T, R] (heads 1) or [1, T, 1, R] (heads 2)."""
    if is_call(table, "aten.unsqueeze.default") and table.args[1] in (heads, heads - 4):
        flat = table.args[0]
    else:
        flat = editor.call(torch.ops.aten.squeeze.dim, (table, heads), before=node)
    if not match.plain:
        return flat
    if match.layout == "half":
        return editor.call(torch.ops.aten.cat.default, ([flat, flat], -1), before=node)
    return editor.call(torch.ops.aten.repeat_interleave.self_int, (flat, 2, -1), before=node)


def _take_rest(editor: Editor, rope: Node) -> None:
    """cat((rope(x[.., :R]), x[.., R:])) is rope(x), which copies the rest."""
    x, cos, sin = rope.args
    part, user = _part(x), only_user(rope)
    if part is None or part[1] != 0 or part[3] != 1 or not is_call(user, "aten.cat.default"):
        return
    whole, size = part[0], part[0].meta["val"].shape[-1]
    parts = user.args[0]
    if len(parts) != 2 or parts[0] is not rope or not _is_last(user, argument(user, 1, "dim", 0)):
        return
    if _is_part(parts[1], whole, part[2], size):
        editor.replace(
            user, editor.call(torch.ops.mote.rope.default, (whole, cos, sin), dict(rope.kwargs), before=user)
        )
