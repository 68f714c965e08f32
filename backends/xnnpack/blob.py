"""A subgraph of XNNPACK as the flatbuffer of schema.fbs. A test compares the enumerations with the schema's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import flatbuffers

from llm_export.partition.flat import dim, dims, offsets, vector
from llm_export.program.instructions import Dim

FILE_IDENTIFIER = b"MOXN"


class ValueKind(IntEnum):
    activation = 0
    input = 1
    output = 2
    weight = 3
    constant = 4


class DType(IntEnum):
    float32 = 0
    int8_rows = 1
    float16 = 2


class WeightForm(IntEnum):
    float32 = 0
    row_scales = 1
    int4_blocks = 2
    int8_rows = 3
    int8_high = 4
    int8_low = 5
    float16 = 6
    int4_rows = 7


Op = IntEnum(
    "Op",
    "unary binary convert fully_connected batch_matrix_multiply softmax mean reshape transpose slice concatenate",
    start=0,
)
Function = IntEnum(
    "Function",
    "abs approximate_gelu round ceil clamp cos elu exp floor gelu leaky_relu log neg rsqrt sigmoid sin sqrt square "
    "tanh add subtract multiply divide maximum minimum",
    start=0,
)


@dataclass
class Value:
    kind: ValueKind
    shape: tuple[Dim, ...]
    dtype: DType = DType.float32
    weight: int = -1
    form: WeightForm = WeightForm.float32
    first_row: int = 0
    offset: float = 0.0
    numbers: tuple[float, ...] = ()


@dataclass
class Node:
    op: Op
    inputs: Sequence[int]
    output: int
    function: Function = Function.abs
    axes: Sequence[int] = ()
    begin: Dim | None = None
    end: Dim | None = None
    numbers: tuple[float, ...] = ()


@dataclass
class Graph:
    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def build(self) -> bytes:
        """Returns the finished flatbuffer; activations, weights and constants that no node names are left out."""
        named = {x for node in self.nodes for x in (*node.inputs, node.output)}
        arguments = (ValueKind.input, ValueKind.output)
        kept = [i for i, value in enumerate(self.values) if i in named or value.kind in arguments]
        numbers = {old: new for new, old in enumerate(kept)}
        builder = flatbuffers.Builder(1 << 12)
        values = offsets(builder, [_value(builder, self.values[i]) for i in kept])
        nodes = offsets(builder, [_node(builder, node, numbers) for node in self.nodes])
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, values, 0)
        builder.PrependUOffsetTRelativeSlot(1, nodes, 0)
        builder.Finish(builder.EndObject(), file_identifier=FILE_IDENTIFIER)
        return bytes(builder.Output())


def _value(builder: flatbuffers.Builder, value: Value) -> int:
    shape = dims(builder, value.shape)
    numbers = vector(builder, value.numbers, 4, builder.PrependFloat32) if value.numbers else 0
    builder.StartObject(8)
    builder.PrependUint8Slot(0, value.kind, 0)
    builder.PrependUint8Slot(1, value.dtype, 0)
    builder.PrependUOffsetTRelativeSlot(2, shape, 0)
    builder.PrependInt32Slot(3, value.weight, -1)
    builder.PrependUint8Slot(4, value.form, 0)
    builder.PrependInt64Slot(5, value.first_row, 0)
    builder.PrependFloat32Slot(6, value.offset, 0.0)
    builder.PrependUOffsetTRelativeSlot(7, numbers, 0)
    return builder.EndObject()


def _node(builder: flatbuffers.Builder, node: Node, values: dict[int, int]) -> int:
    inputs = vector(builder, [values[x] for x in node.inputs], 4, builder.PrependInt32)
    axes = vector(builder, node.axes, 4, builder.PrependInt32) if node.axes else 0
    numbers = vector(builder, node.numbers, 4, builder.PrependFloat32) if node.numbers else 0
    builder.StartObject(8)
    builder.PrependUint8Slot(0, node.op, 0)
    builder.PrependUint8Slot(1, node.function, 0)
    builder.PrependUOffsetTRelativeSlot(2, inputs, 0)
    builder.PrependInt32Slot(3, values[node.output], 0)
    builder.PrependUOffsetTRelativeSlot(4, axes, 0)
    if node.begin is not None:
        builder.PrependStructSlot(5, dim(builder, node.begin), 0)
    if node.end is not None:
        builder.PrependStructSlot(6, dim(builder, node.end), 0)
    builder.PrependUOffsetTRelativeSlot(7, numbers, 0)
    return builder.EndObject()
