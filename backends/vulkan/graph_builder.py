"""The values and nodes of one part while it is lowered. What only moves elements is a view and costs nothing."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import torch

from llm_export.partition.backend import Subgraph
from llm_export.program.instructions import Dim, Instruction, fixed
from llm_export.program.specs import WeightSpec

from .blob import Cache, Content, Graph, History, Node, Op, Recurrence, Value, ValueKind, View
from .fusion import Moves, fuse
from .maps import FUNCTIONS
from .refusals import MAX_MAP_RANK, MAX_RANK, MAX_WIDTH, Refusal

DENSE = (torch.float32, torch.float16, torch.bfloat16)
CONTENTS = {torch.float32: Content.float32, torch.int64: Content.int64, torch.bool: Content.boolean}
MAX_OPERANDS = 3  # of a map
SMALL = (Op.map, Op.reduce, Op.softmax, Op.top, Op.pick, Op.scatter, Op.matmul, Op.norm)  # steps of chains
MAKERS_OF_ROWS = (Op.product, Op.group_product, Op.float_product, Op.attention)
ROUNDERS = (Op.quantize, Op.quantize_groups)
USUAL_TOKENS = 256  # of a prompt, by which values are compared
SAMPLES = (5, 7, 11)  # numbers of tokens at which views are computed
Shape = tuple[Dim, ...]


def plus(a: Dim, b: Dim) -> Dim:
    return Dim(a.tokens + b.tokens, a.constant + b.constant)


def times(a: Dim, b: Dim) -> Dim:
    if a.tokens and b.tokens:
        raise Refusal.GROWTH.of()
    return Dim(a.tokens * b.constant + b.tokens * a.constant, a.constant * b.constant)


def product(sizes: Sequence[Dim]) -> Dim:
    result = fixed(1)
    for size in sizes:
        result = times(result, size)
    return result


def contiguous(sizes: Shape) -> Shape:
    return tuple(product(sizes[i + 1 :]) for i in range(len(sizes)))


def integers(instruction: Instruction, name: str) -> list[int]:
    return [size.constant for size in instruction.attributes[name]]


class GraphBuilder:
    def __init__(self, subgraph: Subgraph):
        self.subgraph, self.method = subgraph, subgraph.method
        self.graph = Graph()
        self.origin = ""  # of the instruction that is lowered
        self.weights: list[int] = []  # of the program's table, in the order of the blob's references
        self._views: dict[int, View] = {}  # of the method's values
        self._outputs: dict[int, View] = {}
        self._weights: dict[tuple[int, Content], View] = {}
        self._made: dict[tuple, tuple[View, ...]] = {}
        self.moves = Moves({}, {})
        for index in self.method.inputs:
            self._views[index] = self._argument(index, ValueKind.input)
        for index in self.method.outputs:
            self._outputs[index] = self._argument(index, ValueKind.output)

    # Values of the method.

    def shape(self, index: int) -> Shape:
        shape = tuple(self.method.values[index].shape)
        if len(shape) > MAX_RANK:
            raise Refusal.RANK.of(rank=len(shape))
        return shape

    def is_weight(self, index: int) -> bool:
        return self.method.values[index].kind == "weight"

    def spec(self, index: int) -> WeightSpec:
        value = self.method.values[index]
        if value.kind != "weight":
            raise Refusal.COMPUTED_WEIGHT.of()
        return self.subgraph.weights[value.weight]

    def operand(self, index: int) -> View:
        """Elements of any dtype that there is: activations, or a dense weight."""
        return self.dense(index) if self.is_weight(index) else self._views[index]

    def activation(self, index: int) -> View:
        """Floats; a dense weight may stand for them."""
        return self._of(Content.float32, index)

    def integers(self, index: int) -> View:
        """int64 numbers, in order."""
        return self.in_order(self._of(Content.int64, index))

    def integer_input(self, index: int, name: str) -> View:
        """Positions, which the runner checks before the device reads them."""
        if index not in self.method.inputs:
            raise Refusal.INPUT.of(name=name)
        return self.integers(index)

    def dense(self, index: int) -> View:
        """A weight that is not quantized, [..]."""
        spec = self.spec(index)
        if spec.bits:
            raise Refusal.QUANTIZED_OPERAND.of(bits=spec.bits)
        if spec.dtype not in CONTENTS:
            raise Refusal.WEIGHT_FORM.of(dtype=_name(spec.dtype), rank=len(spec.shape))
        return self._weight(index, CONTENTS[spec.dtype])

    def parameter(self, index: int) -> View | None:
        """All of a row of floats, in order; None: index is -1, absent."""
        return self.in_order(self.activation(index)) if index >= 0 else None

    def matrix(self, index: int, rank: int = 2) -> View:
        """A weight [N, K] for products and lookups, or a stack [E, N, K]: tiles or dense."""
        spec = self.spec(index)
        if len(spec.shape) != rank or (not spec.bits and spec.dtype not in DENSE):
            raise Refusal.WEIGHT_FORM.of(dtype=_name(spec.dtype), rank=len(spec.shape))
        return self._weight(index, Content.tiles if spec.bits else Content.dense)

    def result(self, index: int) -> View:
        """Where an instruction writes its output."""
        self._check(index, *CONTENTS)
        dtype = self.method.values[index].dtype
        shape = self.shape(index)
        self._views[index] = self._outputs[index] if index in self._outputs else self.new(shape, CONTENTS[dtype])
        return self._views[index]

    def same(self, index: int, view: View) -> None:
        """The output `index` is a view of what is there."""
        if index in self._outputs:
            self.copy(view, self.result(index))
        else:
            self._views[index] = view

    # Values of the graph.

    def new(self, shape: Shape, content: Content = Content.float32) -> View:
        count = product(shape)
        value = self._add(Value(ValueKind.scratch, content, times(count, fixed(4))))
        return View(value, fixed(0), shape, contiguous(shape))

    def bytes(self, rows: Dim, each: int) -> View:
        """What a node writes for another one: `each` bytes for each of `rows`."""
        size = times(rows, fixed(each))
        return View(self._add(Value(ValueKind.scratch, Content.bytes, size)), fixed(0), (size,), (fixed(1),))

    def moved(self, view: View, function: Callable[[torch.Tensor, int], torch.Tensor]) -> View | None:
        """What PyTorch makes of strides; function(tensor, T). None: a view does not do.

        Errors: Refusal.GROWTH
        """
        samples = (self.method.max_tokens,) if self.method.is_fixed else SAMPLES
        found = []
        for tokens in samples:
            sizes, strides = ([size.at(tokens) for size in part] for part in (view.sizes, view.strides))
            try:
                made = function(torch.empty_strided(sizes, strides, device="meta"), tokens)
            except RuntimeError:
                return None
            found.append((made.storage_offset(), *made.size(), *made.stride()))
        offset, *rest = (_line(samples, numbers) for numbers in zip(*found, strict=True))
        rank = len(rest) // 2
        if rank > MAX_RANK:
            raise Refusal.RANK.of(rank=rank)
        return View(view.value, plus(view.offset, offset), tuple(rest[:rank]), tuple(rest[rank:]))

    def rows(self, view: View) -> View:
        """[M, N, K] for a node that walks rows.

        Errors: Refusal.STRIDES, Refusal.ROWS
        """
        if view.strides[-1] != fixed(1) and view.sizes[-1] != fixed(1):
            raise Refusal.STRIDES.of()
        walked = merged(view.sizes[:-1], [view.strides[:-1]])
        if len(walked) > 2:
            raise Refusal.ROWS.of()
        walked = [(fixed(1), (fixed(0),))] * (2 - len(walked)) + walked
        sizes, strides = zip(*((size, stride[0]) for size, stride in walked), strict=True)
        return View(view.value, view.offset, (*sizes, view.sizes[-1]), (*strides, fixed(1)))

    def strided_rows(self, view: View, axes: Sequence[int]) -> View:
        """[M, N, K] for a node that walks rows of these dimensions, whose elements need not be neighbours.

        Errors: Refusal.ROWS
        """
        order = [*(i for i in range(len(view.sizes)) if i not in axes), *axes]
        sizes, strides = (tuple(part[i] for i in order) for part in (view.sizes, view.strides))
        moved, num_outer = View(view.value, view.offset, sizes, strides), len(order) - len(axes)

        def walked(view: View, part: slice) -> list[tuple[Dim, tuple[Dim, ...]]]:
            return merged(view.sizes[part], [view.strides[part]])

        if len(walked(moved, slice(num_outer))) > 2 or len(walked(moved, slice(num_outer, None))) > 1:
            moved = self.in_order(moved)
        outer, inner = walked(moved, slice(num_outer)), walked(moved, slice(num_outer, None))
        if len(outer) > 2 or len(inner) > 1:
            raise Refusal.ROWS.of()
        one = (fixed(1), (fixed(0),))
        parts = [one] * (2 - len(outer)) + outer + (inner or [one])
        sizes, strides = zip(*((size, stride[0]) for size, stride in parts), strict=True)
        return View(moved.value, moved.offset, sizes, strides)

    def four(self, view: View) -> View:
        """With 4 dimensions.

        Errors: Refusal.WALK
        """
        missing = MAX_MAP_RANK - len(view.sizes)
        if missing < 0:
            raise Refusal.WALK.of()
        ones, zeros = (fixed(1),) * missing, (fixed(0),) * missing
        return View(view.value, view.offset, (*ones, *view.sizes), (*zeros, *view.strides))

    def content(self, view: View) -> Content:
        return self.graph.values[view.value].content

    def content_of(self, index: int) -> Content:
        """Of a value of the method."""
        self._check(index, *CONTENTS)
        return CONTENTS[self.method.values[index].dtype]

    def in_order(self, view: View) -> View:
        """Elements that lie in order from the beginning of their value: copied where they do not."""
        if view.offset == fixed(0) and view.strides == contiguous(view.sizes):
            return view

        def make() -> tuple[View, ...]:
            whole = self.new(view.sizes, self.content(view))
            self.copy(view, whole)
            self.moves.copied[whole.value] = view
            return (whole,)

        return self.made_once(("in order", view), make)[0]

    def copy(self, view: View, output: View) -> None:
        self.map("copy", (view,), output)

    def map(self, function: str, inputs: Sequence[View], output: View, numbers: Sequence[float] = (0.0, 0.0)) -> None:
        """output = function(inputs) for each element; inputs are broadcast."""
        walked = merged(output.sizes, [output.strides, *(broadcast(view, output.sizes) for view in inputs)])
        if len(walked) > MAX_MAP_RANK:
            raise Refusal.WALK.of()
        walked = [(fixed(1), (fixed(0),) * (len(inputs) + 1))] * (MAX_MAP_RANK - len(walked)) + walked
        sizes = tuple(size for size, _ in walked)
        views = [
            View(view.value, view.offset, sizes, tuple(strides[i] for _, strides in walked))
            for i, view in enumerate((output, *inputs))
        ]
        absent = [None] * (MAX_OPERANDS - len(inputs))
        self.node(Op.map, [*views[1:], *absent], views[:1], (FUNCTIONS.index(function),), numbers)

    def made_once(self, key: tuple, make: Callable[[], tuple[View, ...]]) -> tuple[View, ...]:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def cache(self, state: int, *, has_values: bool = True) -> Cache:
        """Errors: Refusal.STATE and others."""
        spec = self.subgraph.states[state]
        if spec.kind != "kv_cache":
            raise Refusal.STATE.of(kind=spec.kind)
        for width in (spec.head_dim, spec.value_head_dim) if has_values else (spec.head_dim,):
            if width % 2:
                raise Refusal.WIDTH.of(width=width)
        cache = Cache(state, spec.num_heads, spec.head_dim, spec.value_head_dim)
        if cache not in self.graph.caches:
            self.graph.caches.append(cache)
        return cache

    def history(self, state: int) -> History:
        """Errors: Refusal.STATE"""
        spec = self.subgraph.states[state]
        if spec.kind != "recurrent" or len(spec.shape) != 3:
            raise Refusal.STATE.of(kind=spec.kind)
        history = History(state, *spec.shape[1:])
        if history not in self.graph.histories:
            self.graph.histories.append(history)
        return history

    def recurrence(self, state: int, key_heads: int, decays: int) -> Recurrence:
        """Errors: Refusal.STATE and others."""
        spec = self.subgraph.states[state]
        if spec.kind != "recurrent" or len(spec.shape) != 4:
            raise Refusal.STATE.of(kind=spec.kind)
        _, heads, rows, width = spec.shape
        if width > MAX_WIDTH:
            raise Refusal.WIDE.of(width=width)
        recurrence = Recurrence(state, key_heads, heads, rows, width, decays)
        if recurrence not in self.graph.recurrences:
            self.graph.recurrences.append(recurrence)
        return recurrence

    def node(self, op: Op, inputs: Sequence[View | None], outputs: Sequence[View], integers=(), numbers=()) -> None:
        self.graph.nodes.append(Node(op, inputs, outputs, integers, numbers, self.origin))

    def build(self) -> bytes:
        fuse(self.graph, self.moves)
        self._place()
        return self.graph.build()

    def _check(self, index: int, *dtypes: torch.dtype) -> None:
        dtype = self.method.values[index].dtype
        if dtype not in dtypes:
            raise Refusal.DTYPE.of(dtype=_name(dtype))

    def _of(self, content: Content, index: int) -> View:
        view = self.operand(index)
        if self.content(view) is not content:
            raise Refusal.DTYPE.of(dtype=_name(self.method.values[index].dtype))
        return view

    def _argument(self, index: int, kind: ValueKind) -> View:
        shape = self.shape(index)
        self._check(index, *CONTENTS)
        content = CONTENTS[self.method.values[index].dtype]
        value = self._add(Value(kind, content, times(product(shape), fixed(4))))
        return View(value, fixed(0), shape, contiguous(shape))

    def _weight(self, index: int, content: Content) -> View:
        entry = self.method.values[index].weight
        if entry not in self.weights:
            self.weights.append(entry)
        if (entry, content) not in self._weights:
            shape = tuple(map(fixed, self.subgraph.weights[entry].shape))
            value = self._add(Value(ValueKind.weight, content, fixed(0), weight=self.weights.index(entry)))
            self._weights[entry, content] = View(value, fixed(0), shape, contiguous(shape))
        return self._weights[entry, content]

    def _add(self, value: Value) -> int:
        self.graph.values.append(value)
        return len(self.graph.values) - 1

    def _place(self) -> None:
        """Gives each scratch value a slot of the arena while a node still reads it, the largest ones first."""
        last = {view.value: i for i, node in enumerate(self.graph.nodes) for view in _named(node)}
        # What rounds a row may run together with what makes it, or with a chain that does.
        for i, after in enumerate(self.graph.nodes):
            makers = makers_of_row(self.graph.nodes[:i]) if after.op in ROUNDERS else []
            if any(node.outputs[0].value == after.inputs[0].value for node in makers):
                last |= {view.value: max(last[view.value], i) for node in makers for view in _named(node)}
        # A chain may run together with the product before it, and must leave alone what that reads.
        for i, node in enumerate(self.graph.nodes):
            if node.op is Op.float_product:
                behind = len(list(takewhile(lambda node: node.op in SMALL, self.graph.nodes[i + 1 :])))
                last |= {view.value: max(last[view.value], i + behind) for view in _named(node)}
        first = {view.value: i for i, node in reversed([*enumerate(self.graph.nodes)]) for view in _named(node)}
        used = [
            (value, first[index], last[index])
            for index, value in enumerate(self.graph.values)
            if value.kind is ValueKind.scratch and index in last
        ]
        slots: list[_Slot] = []
        for value, begin, end in sorted(used, key=lambda each: -each[0].bytes.at(USUAL_TOKENS)):
            fitting = [slot for slot in slots if slot.is_free(begin, end)]
            slot = min(fitting, key=lambda each: each.bytes.at(USUAL_TOKENS), default=None)
            if slot is None:
                slots.append(slot := _Slot(len(slots)))
            slot.take(value, begin, end)
        self.graph.slots[:] = [slot.bytes for slot in slots]

        for value in self.graph.values:
            if value.kind is ValueKind.scratch and value.slot < 0:  # fusion left it without a use
                self.graph.slots[:] = self.graph.slots or [fixed(0)]
                value.slot, value.bytes = 0, fixed(0)


@dataclass
class _Slot:
    """Memory that values share which live one after the other. lives: from node to node, in order"""

    index: int
    bytes: Dim = fixed(0)
    lives: list[tuple[int, int]] = field(default_factory=list)

    def is_free(self, begin: int, end: int) -> bool:
        at = bisect(self.lives, (begin, end))
        return (at == 0 or self.lives[at - 1][1] < begin) and (at == len(self.lives) or self.lives[at][0] > end)

    def take(self, value: Value, begin: int, end: int) -> None:
        value.slot = self.index
        tokens, constant = max(self.bytes.tokens, value.bytes.tokens), max(self.bytes.constant, value.bytes.constant)
        self.bytes = Dim(tokens, constant)
        insort(self.lives, (begin, end))


def makers_of_row(nodes: Sequence[Node]) -> list[Node]:
    """The last of these nodes with which rounding can be one dispatch."""
    small = list(takewhile(lambda node: node.op in SMALL, reversed(nodes)))
    before = nodes[len(nodes) - len(small) - 1 : len(nodes) - len(small)]
    return small + [node for node in before if node.op in MAKERS_OF_ROWS]


def _named(node: Node) -> list[View]:
    return [view for view in (*node.inputs, *node.outputs) if view is not None]


def broadcast(view: View, sizes: Shape) -> Shape:
    """Strides of a view over larger sizes: 0 where it has one element for all."""
    missing = len(sizes) - len(view.sizes)
    strides = [fixed(0)] * missing
    for own, size, stride in zip(view.sizes, sizes[missing:], view.strides, strict=True):
        if own != size and own != fixed(1):
            raise Refusal.GROWTH.of()
        strides.append(stride if own == size else fixed(0))
    return tuple(strides)


def merged(sizes: Shape, operands: Sequence[Shape]) -> list[tuple[Dim, tuple[Dim, ...]]]:
    """(size, stride of each operand) with neighbours drawn together where all operands allow it; sizes of 1 vanish."""
    walked: list[tuple[Dim, tuple[Dim, ...]]] = []
    for size, *strides in zip(sizes, *operands, strict=True):
        if size == fixed(1):
            continue
        before, outer = walked[-1] if walked else (fixed(0), ())
        if walked and all(map(_spans, strides, (size,) * len(strides), outer)) and not (before.tokens and size.tokens):
            walked[-1] = (times(before, size), tuple(strides))
            continue
        walked.append((size, tuple(strides)))
    return walked


def _spans(stride: Dim, size: Dim, outer: Dim) -> bool:
    if stride.tokens and size.tokens:
        return False
    return times(stride, size) == outer


def _line(samples: Sequence[int], numbers: Sequence[int]) -> Dim:
    """The numbers as a function of T.

    Errors: Refusal.GROWTH where they lie on no line
    """
    if len(samples) == 1:
        return fixed(numbers[0])
    slope = (numbers[1] - numbers[0]) // (samples[1] - samples[0])
    line = Dim(slope, numbers[0] - slope * samples[0])
    if [line.at(tokens) for tokens in samples] != list(numbers):
        raise Refusal.GROWTH.of()
    return line


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
