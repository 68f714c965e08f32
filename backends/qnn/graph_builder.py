"""The values and nodes of one part while it is lowered."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from llm_export.partition.backend import Blob, Subgraph
from llm_export.program.instructions import Instruction
from llm_export.program.specs import WeightSpec

from .blob import Node, Op, Part, Value, ValueKind, WeightForm
from .refusals import MAX_CONTEXT_BYTES, MAX_HALF, MAX_RANK, Refusal

DENSE = (torch.float32, torch.float16, torch.bfloat16)
STATIC = (ValueKind.weight, ValueKind.constant)
BLOCK_BITS = 4
BYTES = {WeightForm.rows: 1, WeightForm.codes: 1, WeightForm.blocks: 0.5}  # an element; of the others 2
Shape = tuple[int, ...]


def integers(instruction: Instruction, name: str) -> list[int]:
    dims = instruction.attributes[name]
    if any(dim.tokens for dim in dims):
        raise Refusal.LENGTH.of()
    return [dim.constant for dim in dims]


class GraphBuilder:
    """Values of the method become values of the part when they are first read or written.

    capacity: positions of which caches hold rows   context_bytes: that weights of a context may take
    """

    def __init__(self, subgraph: Subgraph, capacity: int, context_bytes: int = MAX_CONTEXT_BYTES):
        self.subgraph = subgraph
        self.method = subgraph.method
        self.part = Part(self.method.max_tokens if self.method.is_fixed else 1, capacity, context_bytes=context_bytes)
        self.weights: list[int] = []  # of the program's table, in the order of the blob's references
        self._of: dict[int, int] = {}  # values of the method that are there
        self._kept: dict[tuple, int] = {}  # values that are made once
        self._bytes = 0

    # Values of the method.

    def shape(self, index: int, dtype: torch.dtype = torch.float32) -> Shape:
        """The shape of an activation of the method."""
        value = self.method.values[index]
        if value.dtype != dtype:
            raise Refusal.DTYPE.of(dtype=_name(value.dtype))
        if any(size.tokens for size in value.shape):
            raise Refusal.LENGTH.of()
        if not 1 <= len(value.shape) <= MAX_RANK:
            raise Refusal.RANK.of(rank=len(value.shape))
        return tuple(size.constant for size in value.shape)

    def spec(self, index: int) -> WeightSpec:
        value = self.method.values[index]
        if value.kind != "weight":
            raise Refusal.COMPUTED_WEIGHT.of()
        return self.subgraph.weights[value.weight]

    def activation(self, index: int, dtype: torch.dtype = torch.float32) -> int:
        """dtype: float32, or int64 of small numbers, which are float16 in the part"""
        if index not in self._of and index in self.method.inputs:
            argument, shape = self.method.inputs.index(index), self.shape(index, dtype)
            self._of[index] = self._add(Value(ValueKind.input, shape, argument, whole=dtype == torch.int64))
        if index not in self._of:
            raise Refusal.WEIGHT_OPERAND.of()
        return self._of[index]

    def operand(self, index: int) -> int:
        """An activation, a dense weight or a constant."""
        return self.plain(index) if self.method.values[index].kind == "weight" else self.activation(index)

    def give(self, index: int, value: int, dtype: torch.dtype = torch.float32) -> None:
        """Says what a value of the method is: its elements in order."""
        shape = self.shape(index, dtype)
        if math.prod(shape) != math.prod(self.shape_of(value)):
            raise Refusal.SHAPE.of()
        self._of[index] = self.reshape(value, shape)

    def positions(self, index: int) -> None:
        """The positions of the tokens, which the caller reads itself."""
        if index not in self.method.inputs:
            raise Refusal.INPUT.of(name="positions")
        self.part.positions = self.method.inputs.index(index)

    # Values of the part.

    def shape_of(self, value: int) -> Shape:
        return self.part.values[value].shape

    def constant(self, number: float, shape: Shape = (1,)) -> int:
        if not abs(number) <= MAX_HALF:
            raise Refusal.NUMBER.of(number=number)
        return self.constants((number,) * math.prod(shape), shape)

    def constants(self, numbers: tuple[float, ...], shape: Shape) -> int:
        return self._once(("constants", numbers, shape), Value(ValueKind.constant, shape, numbers=numbers))

    def plain(self, index: int, offset: float = 0.0, shape: Shape = ()) -> int:
        """A dense weight, or the number that it is. shape: that its elements get; empty: its own"""
        spec = self.spec(index)
        tensor = self.subgraph.constants.get(spec.sources[0]) if len(spec.sources) == 1 else None
        if tensor is not None and tensor.numel() == 1:
            return self.constant(float(tensor) + offset)
        if spec.bits or spec.dtype not in DENSE or not 1 <= len(spec.shape) <= MAX_RANK:
            raise Refusal.WEIGHT_FORM.of(dtype=_name(spec.dtype), rank=len(spec.shape))
        return self._weight(index, shape or tuple(spec.shape), WeightForm.plain, offset)

    def matrix(self, index: int) -> int:
        """A weight [N, K] as the second operand of a product: signed bytes where its rows are, else float16."""
        spec = self._matrices(index, 2)
        return self._weight(index, tuple(reversed(spec.shape)), form_of(spec))

    def stack(self, index: int) -> tuple[int, int]:
        """A weight [E, N, K] whose matrices are gathered, and what the columns of these are multiplied with, or -1."""
        spec = self._matrices(index, 3)
        count, n, k = spec.shape
        matrices = self._weight(index, (count, k, n), form_of(spec))
        has_scales = form_of(spec) is WeightForm.codes
        return matrices, self._weight(index, (count, 1, n), WeightForm.code_scales) if has_scales else -1

    def _matrices(self, index: int, rank: int) -> WeightSpec:
        spec = self.spec(index)
        if len(spec.shape) != rank or (not spec.bits and spec.dtype not in DENSE):
            raise Refusal.WEIGHT_FORM.of(dtype=_name(spec.dtype), rank=len(spec.shape))
        if spec.scales is not None:
            raise Refusal.HALF_SCALES.of()
        return spec

    def lengths(self, index: int) -> int:
        """The lengths of the rows of a weight [N, K]: what its blocks leave out."""
        return self._weight(index, (self.spec(index).shape[0],), WeightForm.lengths)

    def is_in_blocks(self, value: int) -> bool:
        return self.part.values[value].form is WeightForm.blocks

    def _weight(self, index: int, shape: Shape, form: WeightForm, offset: float = 0.0) -> int:
        entry = self.method.values[index].weight
        if entry not in self.weights:
            self.weights.append(entry)
        number = self.weights.index(entry)
        return self._once(("weight", number, form, offset, shape), Value(ValueKind.weight, shape, number, form, offset))

    def once(self, value: Value) -> int:
        """A value that the caller gives, such as a mask, the same for all that read it."""
        return self._once(("given", value.kind, value.index, value.window), value)

    def _once(self, key: tuple, value: Value) -> int:
        if key not in self._kept:
            self._kept[key] = self._add(value)
            if value.kind in STATIC:
                self._bytes += math.prod(value.shape) * BYTES.get(value.form, 2)
        return self._kept[key]

    def _add(self, value: Value) -> int:
        self.part.values.append(value)
        return len(self.part.values) - 1

    # Nodes. All return the value that they write.

    def node(self, op: Op, inputs: Sequence[int], shape: Shape, **parameters) -> int:
        if all(self.part.values[x].kind in STATIC for x in inputs):
            raise Refusal.CONSTANTS.of()
        output = self._add(Value(ValueKind.activation, shape))
        self.part.nodes.append(Node(op, tuple(inputs), output, **parameters))
        return output

    def unary(self, op: Op, x: int) -> int:
        return self.node(op, (x,), self.shape_of(x))

    def binary(self, op: Op, a: int, b: int) -> int:
        return self.node(op, (a, b), broadcast(self.shape_of(a), self.shape_of(b)))

    def scaled(self, x: int, factor: float) -> int:
        return x if factor == 1 else self.binary(Op.multiply, x, self.constant(factor))

    def matmul(self, a: int, b: int, transposed: bool = False) -> int:
        width = self.shape_of(b)[-2 if transposed else -1]
        return self.node(Op.matmul, (a, b), (*self.shape_of(a)[:-1], width), transposed=transposed)

    def of_rows(self, op: Op, x: int) -> int:
        return self.node(op, (x,), (*self.shape_of(x)[:-1], 1))

    def in_words(self, value: int, largest: float) -> int:
        """Makes what a node has written words of 16 bits, for numbers of at most this magnitude."""
        self.part.values[value].words = largest
        return value

    def largest(self, op: Op, x: int, count: int) -> int:
        """top_values or top_places"""
        return self.node(op, (x,), (*self.shape_of(x)[:-1], count), end=count)

    def gather(self, weight: int, place: int) -> int:
        return self.node(Op.gather, (weight, place), (1, *self.shape_of(weight)[1:]))

    def reshape(self, x: int, shape: Shape) -> int:
        return x if self.shape_of(x) == tuple(shape) else self.node(Op.reshape, (x,), tuple(shape))

    def transpose(self, x: int, axes: Sequence[int]) -> int:
        shape = self.shape_of(x)
        return self.node(Op.transpose, (x,), tuple(shape[axis] for axis in axes), axes=tuple(axes))

    def slice(self, x: int, axis: int, begin: int, end: int) -> int:
        shape = self.shape_of(x)
        if (begin, end) == (0, shape[axis]):
            return x
        if not 0 <= begin < end <= shape[axis]:
            raise Refusal.SHAPE.of()
        cut = (*shape[:axis], end - begin, *shape[axis + 1 :])
        return self.node(Op.slice, (x,), cut, axes=(axis,), begin=begin, end=end)

    def concatenate(self, inputs: Sequence[int], axis: int) -> int:
        shape = list(self.shape_of(inputs[0]))
        shape[axis] = sum(self.shape_of(x)[axis] for x in inputs)
        return self.node(Op.concatenate, inputs, tuple(shape), axes=(axis,))

    def written(self, kind: ValueKind, index: int, x: int) -> None:
        """What the caller gets, under the number that it knows it by."""
        output = self.node(Op.reshape, (x,), self.shape_of(x))
        self.part.values[output] = Value(kind, self.shape_of(x), index)

    def build(self) -> Blob:
        """Errors: Refused for outputs that cannot be given, and weights beyond a context."""
        outputs = self.method.outputs
        if len(set(outputs)) < len(outputs) or set(outputs) & set(self.method.inputs):
            raise Refusal.OUTPUT_TWICE.of()
        for number, index in enumerate(outputs):
            self.written(ValueKind.output, number, self.activation(index))
            self.part.values[-1].whole = self.method.values[index].dtype == torch.int64
        if self._bytes > self.part.context_bytes:
            most = self.part.context_bytes / (1 << 30)
            raise Refusal.CONTEXT.of(gigabytes=f"{self._bytes / (1 << 30):.1f}", most=f"{most:g}")
        if not any(value.kind is ValueKind.past_keys for value in self.part.values):
            self.part.capacity = 0
        return Blob(self.part.build(), tuple(self.weights))


def form_of(spec: WeightSpec) -> WeightForm:
    """That matrices are stored in."""
    is_stack = len(spec.shape) == 3
    if spec.bits == BLOCK_BITS and not spec.signed and not is_stack:
        return WeightForm.blocks
    fits_bytes = spec.bits and (spec.bits <= BLOCK_BITS or spec.per_channel)
    if is_stack:
        return WeightForm.codes if fits_bytes else WeightForm.stack
    return WeightForm.rows if fits_bytes else WeightForm.matrix


def bytes_of(spec: WeightSpec) -> int:
    """What a weight takes in a context, with scales or lengths of its rows."""
    return int(math.prod(spec.shape) * BYTES.get(form_of(spec), 2)) + 2 * math.prod(spec.shape[:-1])


def broadcast(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    a, b = ((1,) * (rank - len(x)) + tuple(x) for x in (a, b))
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        raise Refusal.SHAPE.of()
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
