"""Nodes drawn together where that saves dispatches, before values get their places in memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from llm_export.program.instructions import Dim

from .blob import Content, Graph, Node, Op, Value, ValueKind, View
from .maps import FUNCTIONS

RMS = 0  # of a norm
NORM_FOR_OTHERS = 2  # of what is rounded: a norm of its own, whose rows others read too
MOST_ROUNDED_BY_LAST = 4096  # columns of a row, which is then made and rounded by one dispatch
PRODUCTS = (Op.product, Op.group_product, Op.float_product)
NO_ROPE = 3  # of `heads`, beside the layouts of rope


@dataclass(frozen=True)
class Source:
    """Where queries or keys come from, and the nodes behind that which nobody else reads."""

    view: View
    rope: Node | None
    norm: Node | None

    @property
    def nodes(self) -> list[Node]:
        return [node for node in (self.rope, self.norm) if node is not None]

    @property
    def turns(self) -> tuple:
        return () if self.rope is None else (*self.rope.inputs[1:], *self.rope.integers)


@dataclass(frozen=True)
class Moves:
    """Where values come from that copies have made."""

    joined: dict[int, tuple[View, ...]]  # parts of a cat
    copied: dict[int, View]  # what a value is in order


def fuse(graph: Graph, moves: Moves) -> None:
    readers = Counter(view.value for node in graph.nodes for view in node.inputs if view is not None)
    makers = {view.value: node for node in graph.nodes for view in node.outputs}
    for value in (i for i, value in enumerate(graph.values) if value.kind is ValueKind.output):
        readers[value] += 1
    for node in [node for node in graph.nodes if node.op is Op.attention]:
        _fuse_heads(graph, node, readers, makers)
        _fuse_latent_heads(graph, node, readers, makers, moves)
    for node in graph.nodes:
        _turn_in_place(graph, node, readers)
    for node in [node for node in graph.nodes if node.op is Op.quantize]:
        _norm_and_round(graph, node, makers)
    for node in [node for node in graph.nodes if node.op in PRODUCTS]:
        _add_behind(graph, node, readers, makers)


def _norm_and_round(graph: Graph, node: Node, makers: dict[int, Node]) -> None:
    """What norms rows also rounds them: for experts, whose router reads the rows themselves."""
    x = node.inputs[0]
    norm = makers.get(x.value)
    if norm is None or norm.op is not Op.norm or len(node.outputs) != 3 or node.integers[0] != 0 or not _is_whole(x):
        return
    rows, weight, bias = norm.inputs
    if norm.integers[0] != RMS or bias is not None or x.sizes != rows.sizes:
        return
    outputs, integers = (*node.outputs, norm.outputs[0]), (NORM_FOR_OTHERS, *node.integers[1:])
    made = Node(Op.quantize, (rows, weight), outputs, integers, norm.numbers, norm.origin)
    graph.nodes[:] = [made if each is norm else each for each in graph.nodes if each is not node]
    makers[x.value] = made


def _add_behind(graph: Graph, node: Node, readers: Counter, makers: dict[int, Node]) -> None:
    """What experts' weighted rows are added to does not wait for their sum, which becomes a chain with what follows."""
    residual, y = node.inputs[-1], node.outputs[0]
    summed = makers.get(residual.value) if residual is not None and node.integers[1] == 0 else None
    if summed is None or summed.op is not Op.matmul or readers[residual.value] != 1:
        return
    graph.values.append(Value(ValueKind.scratch, Content.float32, graph.values[y.value].bytes))
    one, none, columns = Dim(0, 1), Dim(0, 0), residual.sizes[-1]
    sizes, strides = (one, *residual.sizes), (none, none, columns, one)
    made, result = (View(value, none, sizes, strides) for value in (len(graph.values) - 1, y.value))
    added = View(residual.value, residual.offset, sizes, (none, *residual.strides))
    node.inputs, node.outputs = (*node.inputs[:-1], None), (replace(y, value=made.value),)
    plus = Node(Op.map, (made, added, None), (result,), (FUNCTIONS.index("add"),), (0.0, 0.0), node.origin)
    graph.nodes.remove(summed)
    at = graph.nodes.index(node) + 1
    graph.nodes[at:at] = [summed, plus]


def _turn_in_place(graph: Graph, node: Node, readers: Counter) -> None:
    """Rows that nobody else reads are turned where they lie, which takes no memory beside them."""
    if node.op is not Op.quantize or len(node.outputs) < 4:
        return
    x = node.inputs[0]
    is_free = graph.values[x.value].kind is ValueKind.scratch and readers[x.value] == 1
    if is_free and _is_whole(x) and x.sizes[-1].constant > MOST_ROUNDED_BY_LAST:
        node.outputs = (*node.outputs[:3], x)


def _fuse_heads(graph: Graph, attention: Node, readers: Counter, makers: dict[int, Node]) -> None:
    """Norms and turns of queries and keys become one node with the writes into the caches."""
    q, k, v, positions, *_ = attention.inputs
    if k is None or v is None:
        return
    query, key = (_source(view, readers, makers) for view in (q, k))
    if query.rope is None and key.rope is None:  # queries are read as they are
        query, key = Source(q, None, None), Source(k, None, None)
    elif query.turns != key.turns:
        return
    fused = [*query.nodes, *key.nodes]
    norms = [source.norm for source in (query, key)]
    weights = [norm.inputs[1] if norm else None for norm in norms]
    numbers = [number for norm in norms for number in (norm.numbers if norm else (0.0, 0.0))]
    has_rope = query.rope is not None
    tables = query.rope.inputs[1:] if has_rope else (None, None)
    layout = query.rope.integers[0] if has_rope else NO_ROPE
    made = Node(
        Op.heads,
        (query.view if has_rope else None, key.view, v, positions, *weights, *tables),
        query.rope.outputs if has_rope else (),
        (attention.integers[0], layout, *(int(norm is not None) for norm in norms)),
        numbers,
        attention.origin,
    )
    _replace(graph, fused, made, attention)


def _replace(graph: Graph, fused: list[Node], made: Node, attention: Node) -> None:
    """`made`, before the attention, does what these nodes did, and writes keys and values."""
    graph.nodes[:] = [node for node in graph.nodes if not any(node is each for each in fused)]
    graph.nodes.insert(next(i for i, node in enumerate(graph.nodes) if node is attention), made)
    attention.inputs = (attention.inputs[0], None, None, *attention.inputs[3:])


def _fuse_latent_heads(
    graph: Graph, attention: Node, readers: Counter, makers: dict[int, Node], moves: Moves
) -> None:
    """The same over a latent, whose keys and queries are of two parts; the second ones are turned."""
    q, k, v, positions, *_ = attention.inputs
    if k is None or v is not None:
        return
    parts = [moves.joined.get(view.value, ()) for view in (q, k)]
    if any(len(each) != 2 for each in parts) or any(readers[view.value] != 1 for view in (q, k)) or not _is_whole(q):
        return
    (own, query), (latent, key) = parts
    turned = [_turned(view, readers, makers, moves) for view in (query, key)]
    if None in turned or turned[0].turns != turned[1].turns:
        return
    norm, behind = makers.get(latent.value), None
    if norm is not None and norm.op is Op.norm and readers[latent.value] == 1:
        behind = _behind(latent, norm)
    has_norm = behind is not None
    views = (own, turned[0].view, behind if has_norm else latent, turned[1].view)
    if any(view.strides[3] != Dim(0, 1) for view in views):
        return
    fused = [node for each in turned for node in each.nodes] + [norm] * has_norm
    fused += [node for node in graph.nodes if any(view.value in (q.value, k.value) for view in node.outputs)]
    made = Node(
        Op.latent_heads,
        (*views, positions, norm.inputs[1] if has_norm else None, *turned[0].rope.inputs[1:]),
        (q,),
        (attention.integers[0], turned[0].rope.integers[0], int(has_norm), *(int(each.in_pairs) for each in turned)),
        norm.numbers if has_norm else (0.0, 0.0),
        attention.origin,
    )
    _replace(graph, fused, made, attention)


@dataclass(frozen=True)
class _Turned:
    """What is turned, and the nodes that nobody else reads. in_pairs: its halves lie one after the other in turns"""

    view: View
    rope: Node
    copy: Node | None

    @property
    def in_pairs(self) -> bool:
        return self.copy is not None

    @property
    def nodes(self) -> list[Node]:
        return [self.rope] if self.copy is None else [self.rope, self.copy]

    @property
    def turns(self) -> tuple:
        return (*self.rope.inputs[1:], *self.rope.integers)


def _turned(view: View, readers: Counter, makers: dict[int, Node], moves: Moves) -> _Turned | None:
    rope = makers.get(view.value)
    if rope is None or rope.op is not Op.rope or readers[view.value] != 1 or rope.outputs[0] != view:
        return None
    x = rope.inputs[0]
    found = moves.copied.get(x.value)
    if found is None or readers[x.value] != 1 or not _is_whole(x) or len(found.sizes) != 5:
        return _Turned(x, rope, None)
    *sizes, halves, half = found.sizes
    are_pairs = (halves, *found.strides[3:]) == (Dim(0, 2), Dim(0, 1), Dim(0, 2))
    if not are_pairs or x.sizes != (*sizes, Dim(0, 2 * half.constant)):
        return _Turned(x, rope, None)
    return _Turned(View(found.value, found.offset, x.sizes, (*found.strides[:3], Dim(0, 1))), rope, makers[x.value])


def _is_whole(view: View) -> bool:
    """Whether its elements lie in order from the beginning of the value."""
    expected = Dim(0, 1)
    for size, stride in zip(reversed(view.sizes), reversed(view.strides), strict=True):
        if size != Dim(0, 1) and stride != expected:
            return False
        if size.tokens and expected.tokens:
            return False
        tokens = expected.tokens * size.constant + size.tokens * expected.constant
        expected = Dim(tokens, expected.constant * size.constant)
    return view.offset == Dim(0, 0)


def _source(view: View, readers: Counter, makers: dict[int, Node]) -> Source:
    rope = makers.get(view.value)
    if rope is None or rope.op is not Op.rope or readers[view.value] != 1 or rope.outputs[0] != view:
        return Source(view, None, None)
    x = rope.inputs[0]
    norm = makers.get(x.value)
    if norm is None or norm.op is not Op.norm or readers[x.value] != 1:
        return Source(x, rope, None)
    behind = _behind(x, norm)
    return Source(x, rope, None) if behind is None else Source(behind, rope, norm)


def _behind(view: View, norm: Node) -> View | None:
    """A view of a norm's output as one of its input; None: it is no such view, or the norm is of another kind.

    Rows of the output lie one behind the other, those of the input in two dimensions.
    """
    x, _, bias = norm.inputs
    columns, inner = x.sizes[2].constant, x.sizes[1]
    moves = (view.offset, *view.strides[:3])
    is_single = x.sizes[0] == Dim(0, 1)
    if (
        norm.integers[0] != RMS
        or bias is not None
        or any(stride.tokens for stride in x.strides)
        or view.sizes[3] != x.sizes[2]
        or any(move.tokens % columns or move.constant % columns for move in moves)
        or not (is_single or inner.tokens == 0)
    ):
        return None
    outer_stride, stride = x.strides[0].constant, x.strides[1].constant

    def moved(move: Dim) -> Dim | None:
        tokens, constant = move.tokens // columns, move.constant // columns
        if is_single:
            return Dim(tokens * stride, constant * stride)
        if tokens % inner.constant:
            return None
        outer, rest = divmod(constant, inner.constant)
        return Dim(tokens // inner.constant * outer_stride, outer * outer_stride + rest * stride)

    offset, *strides = (moved(move) for move in moves)
    # Within a dimension no step goes from the end of one outer row to the next.
    steps = [(size, stride.constant // columns) for size, stride in zip(view.sizes[:3], view.strides[:3], strict=True)]
    within = [(size, step) for size, step in steps if step % inner.constant] if not is_single else []
    reach = view.offset.constant // columns % inner.constant if not is_single else 0
    for size, step in within:
        if size.tokens:
            return None
        reach += (size.constant - 1) * step
    if offset is None or None in strides or (within and reach >= inner.constant):
        return None
    offset = Dim(offset.tokens + x.offset.tokens, offset.constant + x.offset.constant)
    return View(x.value, offset, view.sizes, (*strides, view.strides[3]))
