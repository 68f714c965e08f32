"""The values and nodes of one subgraph while it is lowered."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from llm_export.partition.backend import Subgraph
from llm_export.program.instructions import Dim, Instruction, fixed
from llm_export.program.specs import WeightSpec

from .blob import DType, Function, Graph, Node, Op, Value, ValueKind, WeightForm
from .refusals import MAX_CONSTANT_ELEMENTS, MAX_RANK, Refusal

DENSE = (torch.float32, torch.float16, torch.bfloat16)
Shape = tuple[Dim, ...]


def integers(instruction: Instruction, name: str) -> list[int]:
    dims = instruction.attributes[name]
    if any(dim.tokens for dim in dims):
        raise Refusal.GROWING_ATTRIBUTE.of(attribute=name)
    return [dim.constant for dim in dims]


class GraphBuilder:
    """Values of the method become values of the graph when they are first read or written."""

    def __init__(self, subgraph: Subgraph, *, prefers_int8: bool = False, half: bool = False, takes_tied: bool = False):
        self.subgraph = subgraph
        self.prefers_int8 = prefers_int8  # to int4, for weights that fit either
        self.half = half  # products with dense weights in float16
        self.takes_tied = takes_tied  # weights that the embedding reads too
        self.method = subgraph.method
        self.graph = Graph()
        self.weights: list[int] = []  # of the program's table, in the order of the blob's references
        self._of: dict[int, int] = {}  # values of the method that are written
        self._outputs: dict[int, int] = {}
        self._statics: dict[tuple, int] = {}
        self._converted: dict[tuple[int, DType], int] = {}
        for index in self.method.inputs:
            self._of[index] = self._add(Value(ValueKind.input, self.shape(index)))
        for index in self.method.outputs:
            if index in self._of or index in self._outputs:
                raise Refusal.OUTPUT_TWICE.of()
            self._outputs[index] = self._add(Value(ValueKind.output, self.shape(index)))

    # Values of the method.

    def shape(self, index: int) -> Shape:
        """The shape of a float32 activation of the method."""
        value = self.method.values[index]
        if value.dtype != torch.float32:
            raise Refusal.DTYPE.of(dtype=_name(value.dtype))
        if not 1 <= len(value.shape) <= MAX_RANK:
            raise Refusal.RANK.of(rank=len(value.shape))
        for size in value.shape:
            if size.tokens < 0 or size.at(1) < 1:
                raise Refusal.SIZE.of(size=size)
        return tuple(value.shape)

    def is_weight(self, index: int) -> bool:
        return self.method.values[index].kind == "weight"

    def spec(self, index: int) -> WeightSpec:
        value = self.method.values[index]
        if value.kind != "weight":
            raise Refusal.COMPUTED_WEIGHT.of()
        return self.subgraph.weights[value.weight]

    def activation(self, index: int) -> int:
        if index not in self._of:
            raise Refusal.WEIGHT_OPERAND.of()
        return self._of[index]

    def operand(self, index: int) -> int:
        """An activation, a dense weight or a constant."""
        return self.dense(index) if self.is_weight(index) else self.activation(index)

    def scalar(self, index: int) -> float | None:
        """The number that a weight is, if it is one."""
        if not self.is_weight(index):
            return None
        spec = self.spec(index)
        tensor = self.subgraph.constants.get(spec.sources[0]) if len(spec.sources) == 1 else None
        return float(tensor) if tensor is not None and tensor.numel() == 1 else None

    def result(self, index: int) -> int:
        """Where an instruction writes its output."""
        shape = self.shape(index)
        self._of[index] = self._outputs[index] if index in self._outputs else self.new(shape)
        return self._of[index]

    def same(self, index: int, source: int) -> None:
        """The output `index` has the elements of `source`, in order; XNNPACK's values are all contiguous."""
        if index in self._outputs or self.graph.values[source].shape != self.shape(index):
            self.reshape(source, self.result(index))
        else:
            self._of[index] = source

    # Values of the graph.

    def new(self, shape: Shape, dtype: DType = DType.float32) -> int:
        return self._add(Value(ValueKind.activation, shape, dtype))

    def shape_of(self, value: int) -> Shape:
        return self.graph.values[value].shape

    def constant(self, numbers: Sequence[float], shape: Sequence[int] = (1,)) -> int:
        key = ("constant", tuple(numbers), tuple(shape))
        return self._static(key, Value(ValueKind.constant, tuple(map(fixed, shape)), numbers=tuple(numbers)))

    def dense(
        self,
        index: int,
        first_row: int = 0,
        rows: int | None = None,
        offset: float = 0.0,
        *,
        form: WeightForm = WeightForm.float32,
        shared: bool = True,
    ) -> int:
        """shared: False for what becomes part of a packed weight, of which each node has its own"""
        spec = self.spec(index)
        if spec.bits:
            raise Refusal.QUANTIZED_OPERAND.of(bits=spec.bits)
        tensor = self.subgraph.constants.get(spec.sources[0]) if len(spec.sources) == 1 else None
        if tensor is not None and tensor.numel() <= MAX_CONSTANT_ELEMENTS and rows is None:
            return self.constant([float(x) + offset for x in tensor.flatten()], spec.shape or (1,))
        if spec.dtype not in DENSE or not 1 <= len(spec.shape) <= MAX_RANK:
            raise Refusal.WEIGHT_FORM.of(dtype=_name(spec.dtype), rank=len(spec.shape))
        shape = (spec.shape[0] if rows is None else rows, *spec.shape[1:])
        return self.weight(index, shape, form, first_row, offset, shared=shared)

    def weight(
        self,
        index: int,
        shape: Sequence[int],
        form: WeightForm,
        first_row: int = 0,
        offset: float = 0.0,
        *,
        shared: bool = True,
    ) -> int:
        entry = self.method.values[index].weight
        if entry not in self.weights:
            self.weights.append(entry)
        number = self.weights.index(entry)
        value = Value(
            ValueKind.weight, tuple(map(fixed, shape)), weight=number, form=form, first_row=first_row, offset=offset
        )
        return self._static((number, form, first_row, tuple(shape), offset), value) if shared else self._add(value)

    def _static(self, key: tuple, value: Value) -> int:
        if key not in self._statics:
            self._statics[key] = self._add(value)
        return self._statics[key]

    def _add(self, value: Value) -> int:
        self.graph.values.append(value)
        return len(self.graph.values) - 1

    # Nodes. Those without `output` write a new value of the right shape. All return the value they write.

    def node(self, op: Op, inputs: Sequence[int], output: int, **parameters) -> int:
        self.graph.nodes.append(Node(op, inputs, output, **parameters))
        return output

    def unary(self, function: Function, x: int, output: int | None = None, numbers: tuple[float, ...] = ()) -> int:
        output = self.new(self.shape_of(x)) if output is None else output
        return self.node(Op.unary, (x,), output, function=function, numbers=numbers)

    def binary(self, function: Function, a: int, b: int, output: int | None = None) -> int:
        statics = (ValueKind.weight, ValueKind.constant)
        if all(self.graph.values[x].kind in statics for x in (a, b)):
            raise Refusal.CONSTANTS.of()
        if output is None:
            output = self.new(broadcast(self.shape_of(a), self.shape_of(b)))
        elif broadcast(self.shape_of(a), self.shape_of(b)) != self.shape_of(output):
            raise Refusal.BROADCAST_RANK.of()
        return self.node(Op.binary, (a, b), output, function=function)

    def convert(self, x: int, dtype: DType) -> int:
        if (x, dtype) not in self._converted:
            self._converted[x, dtype] = self.node(Op.convert, (x,), self.new(self.shape_of(x), dtype))
        return self._converted[x, dtype]

    def mean(self, x: int, output: int | None = None) -> int:
        output = self.new((*self.shape_of(x)[:-1], fixed(1))) if output is None else output
        return self.node(Op.mean, (x,), output)

    def reshape(self, x: int, output: int) -> int:
        before, after = self.shape_of(x), self.shape_of(output)
        if max(_num_growing(before), _num_growing(after)) > 1 or _elements(before) != _elements(after):
            raise Refusal.RESHAPE.of()
        return self.node(Op.reshape, (x,), output)

    def slice(self, x: int, axis: int, begin: Dim, end: Dim, output: int | None = None) -> int:
        shape = self.shape_of(x)
        length = Dim(end.tokens - begin.tokens, end.constant - begin.constant)
        for bound in (begin, end):
            if bound.tokens not in (0, shape[axis].tokens):
                raise Refusal.SLICE_BOUND.of(bound=bound, size=shape[axis])
        if length.tokens < 0 or length.at(1) < 1:
            raise Refusal.SLICE_LENGTH.of(length=length)
        output = self.new((*shape[:axis], length, *shape[axis + 1 :])) if output is None else output
        return self.node(Op.slice, (x,), output, axes=(axis,), begin=begin, end=end)

    def concatenate(self, inputs: Sequence[int], axis: int, output: int | None = None) -> int:
        if output is None:
            shape = list(self.shape_of(inputs[0]))
            sizes = [self.shape_of(x)[axis] for x in inputs]
            shape[axis] = Dim(sum(size.tokens for size in sizes), sum(size.constant for size in sizes))
            output = self.new(tuple(shape))
        return self.node(Op.concatenate, tuple(inputs), output, axes=(axis,))


def broadcast(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    a, b = ((fixed(1),) * (rank - len(x)) + tuple(x) for x in (a, b))
    for x, y in zip(a, b, strict=True):
        if x != y and fixed(1) not in (x, y):
            raise Refusal.BROADCAST_SIZES.of(first=x, second=y)
    return tuple(y if x == fixed(1) else x for x, y in zip(a, b, strict=True))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _num_growing(shape: Shape) -> int:
    return sum(size.tokens != 0 for size in shape)


def _elements(shape: Shape) -> tuple[int, int]:
    """Of a shape in which at most one size grows: elements at T = 1 and at T = 2."""
    return math.prod(size.at(1) for size in shape), math.prod(size.at(2) for size in shape)
