"""Latent attention: layers whose keys and values are parts of one linear of a latent get a cache of that latent.

With k = cat(K c, r) and v = V c of a latent c, K and V a matrix for each head and r the same for all heads,

    q . k = K^T q_own . c + q_shared . r        sum of w v = V (sum of w c)

so attention runs over cat(c, r) as the one head of its cache, whose values are the first elements of its keys. Layers
are recognised by which numbers their keys and values are, however a class spells that out.
Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.2
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from llm_export.capture.methods import Captured
from llm_export.capture.programs import add_call, add_parameter, copy_program, erase_unused
from llm_export.checkpoint.parts import part_name
from llm_export.program.specs import WeightSpec

aten = torch.ops.aten

# What moves numbers and changes none.
MOVES = {
    "_to_copy", "_unsafe_view", "alias", "cat", "clone", "contiguous", "copy", "detach", "expand", "permute", "repeat",
    "reshape", "select", "select_scatter", "slice", "slice_scatter", "split", "split_with_sizes", "squeeze", "stack",
    "t", "transpose", "type_as", "unbind", "unsqueeze", "view",
}  # fmt: skip
EMPTY = {"empty", "empty_like", "new_empty", "new_zeros", "zeros", "zeros_like"}  # to be written over
TOKENS = 3  # that places are looked at with
WIDTHS = 16  # of latents that mote::attention takes: multiples


@dataclass
class _Linear:
    """Rows of a linear, a part of those of each head.

    weight: [heads * rows, in_features], of which each head has rows [start, stop)
    """

    x: Node
    weight: Node
    heads: int
    start: int
    stop: int


@dataclass
class _Latent:
    """An attention that can be absorbed. own: elements of keys that are of a head; the others are the same for all."""

    keys: _Linear
    values: _Linear
    own: range
    shared: Node | None  # [1, T, ..] of as many elements as the others


def absorb(captured: Captured) -> Captured:
    """Returns what was captured with the attention of each such layer over its latent; what it is given stays."""
    states, weights, programs = list(captured.states), dict(captured.weights), {}
    for method, original in captured.programs.items():
        programs[method] = program = copy_program(original)
        names = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
        calls = [node for node in program.graph.nodes if node.target is torch.ops.mote.attention.default]
        for node in calls:
            state = node.kwargs["state"]
            is_alone = sum(other.kwargs["state"] == state for other in calls) == 1
            latent = _find(node, names, weights) if is_alone else None
            if latent is not None:
                width = _Rewrite(program, names, weights, node).run(latent)
                states[state] = replace(captured.states[state], num_heads=1, head_dim=width, value_head_dim=0)
        erase_unused(program)
    read = {spec.target for program in programs.values() for spec in program.graph_signature.input_specs}
    weights = {name: spec for name, spec in weights.items() if name in read}
    return replace(captured, programs=programs, states=states, weights=weights)


def _find(node: Node, names: dict[str, str], weights: dict[str, WeightSpec]) -> _Latent | None:
    """Returns what the keys and values of an attention are made of, None if they are no parts of a latent's linear."""
    keys, values = node.args[1:3]
    if keys is None or values is None or not _has_one_choice(node):
        return None
    places = _Places()
    k, v = places.of(keys), places.of(values)  # [1, H, T, D]
    if k is None or v is None:
        return None
    is_own = (k[0, :, 0] != k[0, :1, 0]).any(0) if k.shape[1] > 1 else torch.zeros(k.shape[3], dtype=torch.bool)
    own = is_own.nonzero()[:, 0].tolist()
    if not own or own != list(range(own[0], own[-1] + 1)) or (own[0] != 0 and own[-1] != k.shape[3] - 1):
        return None
    of_keys = places.linear(k[..., own], names, weights)
    of_values = places.linear(v, names, weights)
    if of_keys is None or of_values is None or of_keys.x is not of_values.x:
        return None
    shared = None
    if len(own) < k.shape[3]:
        shared = places.find(k[0, 0][:, ~is_own])
        if shared is None:
            return None
    width = of_keys.x.meta["val"].shape[-1]
    cached = k.shape[1] * (k.shape[3] + v.shape[3])
    if width % WIDTHS or 2 * (width + k.shape[3] - len(own)) >= cached or not _is_row(of_keys.x):
        return None
    return _Latent(of_keys, of_values, range(own[0], own[-1] + 1), shared)


def _has_one_choice(node: Node) -> bool:
    """Whether all heads see the same keys, where keys are chosen."""
    chosen = _argument(node, "chosen")
    return chosen is None or chosen.meta["val"].shape[2] == 1


def _argument(node: Node, name: str) -> Any:
    names = [argument.name for argument in node.target._schema.arguments]
    at = names.index(name)
    return node.args[at] if at < len(node.args) else node.kwargs.get(name)


def _token_axis(node: Node) -> int | None:
    """The only dimension of a value that grows with T."""
    found = [i for i, size in enumerate(node.meta["val"].shape) if not isinstance(size, int)]
    return found[0] if len(found) == 1 else None


def _is_row(node: Node) -> bool:
    """Whether a value is [1, .. 1, T, ..]: the numbers of a token lie together."""
    axis = _token_axis(node)
    return axis is not None and all(size == 1 for size in node.meta["val"].shape[:axis])


class _Places:
    """Where numbers of a graph come from: each result that no move makes is numbered through, and moves are done."""

    def __init__(self) -> None:
        self.known: dict[Node, Any] = {}
        self.roots: list[tuple[int, Node]] = []  # number of the first element
        self.next = 0

    def of(self, node: Node) -> Tensor | None:
        """Returns int64 of the node's shape with TOKENS tokens: the number of each element. None: one has none."""
        found = self._evaluate(node)
        return None if (found < 0).any() else found.long()

    def linear(self, places: Tensor, names: dict[str, str], weights: dict[str, WeightSpec]) -> _Linear | None:
        """Returns the linear without a bias of which places [1, H, T, N] are rows, as many of each head."""
        first, node = max(root for root in self.roots if root[0] <= int(places.flatten()[0]))
        if node.target is not aten.linear.default or len(node.args) > 2 or not _is_row(node):
            return None
        x, weight = node.args
        spec = weights.get(names.get(weight.name, ""))
        features, heads = int(node.meta["val"].shape[-1]), places.shape[1]
        if spec is None or len(spec.sources) != 1 or len(weight.users) != 1 or features % heads:
            return None
        start = int(places[0, 0, 0, 0]) - first
        wanted = torch.arange(places.shape[3]) + torch.arange(TOKENS)[:, None] * features  # [T, N]
        wanted = wanted + (torch.arange(heads) * (features // heads))[:, None, None] + first + start
        stop = start + places.shape[3]
        fits = stop <= features // heads and torch.equal(places[0], wanted)
        return _Linear(x, weight, heads, start, stop) if fits else None

    def find(self, places: Tensor) -> Node | None:
        """Returns a value whose elements are those of places [T, N], one with a dimension of N if there is any."""
        same = [
            node
            for node, found in self.known.items()
            if isinstance(found, Tensor) and found.numel() == places.numel() and _is_row(node)
            if torch.equal(found.reshape(places.shape).long(), places)
        ]
        return next((node for node in same if node.meta["val"].shape[-1] == places.shape[1]), next(iter(same), None))

    def _evaluate(self, node: Node) -> Any:
        if node not in self.known:
            self.known[node] = self._compute(node)
        return self.known[node]

    def _compute(self, node: Node) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt | int):
            return _with_tokens(value)
        name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        if name in EMPTY:
            return torch.full([_with_tokens(size) for size in value.shape], -1.0, dtype=torch.float64)
        if node.target is operator.getitem or name in MOVES:
            args, kwargs = map_arg((node.args, node.kwargs), self._evaluate)
            return node.target(*args, **kwargs | ({"dtype": torch.float64} if "dtype" in kwargs else {}))
        shape = [_with_tokens(size) for size in value.shape]
        count = torch.Size(shape).numel()
        self.roots.append((self.next, node))
        self.next += count
        return torch.arange(self.next - count, self.next, dtype=torch.float64).view(shape)


def _with_tokens(size: int | torch.SymInt) -> int:
    if isinstance(size, int):
        return size
    expression = size.node.expr
    return int(expression.subs(dict.fromkeys(expression.free_symbols, TOKENS)))


class _Rewrite:
    """One attention that becomes that over a latent."""

    def __init__(self, program: ExportedProgram, names: dict[str, str], weights: dict[str, WeightSpec], node: Node):
        self.program, self.names, self.weights, self.node = program, names, weights, node

    def run(self, latent: _Latent) -> int:
        """Returns the width of a key."""
        query, node = self.node.args[0], self.node
        matrices = self._weight(latent.keys, transpose=True)
        own = self._call(aten.transpose.int, self._part(query, latent.own), 1, 2)
        absorbed = self._call(aten.transpose.int, self._call(torch.ops.mote.head_linear.default, own, matrices), 1, 2)
        key = self._head(latent.keys.x)
        width = int(key.meta["val"].shape[3])
        if latent.shared is not None:
            size = int(query.meta["val"].shape[3])
            others = range(len(latent.own), size) if latent.own.start == 0 else range(latent.own.start)
            absorbed = self._call(aten.cat.default, [absorbed, self._part(query, others)], 3)
            key = self._call(aten.cat.default, [key, self._head(latent.shared)], 3)
        result = self._call(node.target, absorbed, key, None, *node.args[3:], **node.kwargs, value_dim=width)
        result = self._call(torch.ops.mote.head_linear.default, result, self._weight(latent.values, transpose=False))
        node.replace_all_uses_with(result)
        return int(key.meta["val"].shape[3])

    def _part(self, x: Node, elements: range) -> Node:
        """Elements of the last of four dimensions; those of a cat are taken from where they come from."""
        if x.target is aten.cat.default and len(x.args) > 1 and x.args[1] in (-1, 3):
            start = 0
            for piece in x.args[0]:
                size = int(piece.meta["val"].shape[3])
                if (start, start + size) == (elements.start, elements.stop):
                    return piece
                start += size
        return self._call(aten.slice.Tensor, x, 3, elements.start, elements.stop)

    def _head(self, x: Node) -> Node:
        """[1, .. 1, T, ..] as [1, 1, T, width]."""
        axis = _token_axis(x)
        width = torch.Size(x.meta["val"].shape[axis + 1 :]).numel()
        if tuple(x.meta["val"].shape[:axis]) == (1, 1) and x.meta["val"].dim() == 4:
            return x
        return self._call(aten.reshape.default, x, [1, 1, -1, width])

    def _weight(self, linear: _Linear, transpose: bool) -> Node:
        """A parameter [H, rows, in_features]: some rows of each head. transpose: [H, in_features, rows]"""
        spec = self.weights[self.names[linear.weight.name]]
        name = part_name(spec.sources[0], linear.heads, linear.start, linear.stop)
        rows = linear.stop - linear.start
        shape = (linear.heads, spec.shape[1], rows) if transpose else (linear.heads, rows, spec.shape[1])
        node = add_parameter(self.program, name, shape)
        self.names[node.name] = name
        self.weights[name] = WeightSpec((name,), shape, spec.dtype, transpose=transpose)
        return node

    def _call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        return add_call(self.program, self.node, target, *args, **kwargs)
