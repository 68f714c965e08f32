"""A part for QNN as the flatbuffer of schema.fbs. A test compares the enumerations with the schema's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import flatbuffers

from llm_export.partition.flat import offsets, vector

FILE_IDENTIFIER = b"MOQN"

ValueKind = IntEnum(
    "ValueKind",
    "activation input output weight constant mask past_keys past_values new_keys new_values distances",
    start=0,
)
WeightForm = IntEnum("WeightForm", "plain matrix rows blocks lengths stack codes code_scales", start=0)
Op = IntEnum(
    "Op",
    "add subtract multiply divide maximum minimum sigmoid tanh relu gelu negate exp sqrt rsqrt abs matmul rms_norm "
    "softmax reshape transpose slice concatenate mean maximum_of quantize dequantize top_values top_places "
    "gather",
    start=0,
)


@dataclass
class Value:
    kind: ValueKind
    shape: tuple[int, ...]
    index: int = -1
    form: WeightForm = WeightForm.plain
    offset: float = 0.0
    numbers: tuple[float, ...] = ()
    window: int = 0
    words: float = 0.0
    whole: bool = False


@dataclass
class Node:
    op: Op
    inputs: Sequence[int]
    output: int
    axes: Sequence[int] = ()
    begin: int = 0
    end: int = 0
    transposed: bool = False
    epsilon: float = 0.0


@dataclass
class Part:
    tokens: int
    capacity: int = 0
    positions: int = -1
    context_bytes: int = 0
    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def build(self) -> bytes:
        """Returns the finished flatbuffer."""
        builder = flatbuffers.Builder(1 << 12)
        values = offsets(builder, [_value(builder, value) for value in self.values])
        nodes = offsets(builder, [_node(builder, node) for node in self.nodes])
        builder.StartObject(6)
        builder.PrependUint32Slot(0, self.tokens, 0)
        builder.PrependUint32Slot(1, self.capacity, 0)
        builder.PrependInt32Slot(2, self.positions, -1)
        builder.PrependUOffsetTRelativeSlot(3, values, 0)
        builder.PrependUOffsetTRelativeSlot(4, nodes, 0)
        builder.PrependUint64Slot(5, self.context_bytes, 0)
        builder.Finish(builder.EndObject(), file_identifier=FILE_IDENTIFIER)
        return bytes(builder.Output())


def _value(builder: flatbuffers.Builder, value: Value) -> int:
    shape = vector(builder, value.shape, 4, builder.PrependUint32)
    numbers = vector(builder, value.numbers, 4, builder.PrependFloat32) if value.numbers else 0
    builder.StartObject(9)
    builder.PrependUint8Slot(0, value.kind, 0)
    builder.PrependUOffsetTRelativeSlot(1, shape, 0)
    builder.PrependInt32Slot(2, value.index, -1)
    builder.PrependUint8Slot(3, value.form, 0)
    builder.PrependFloat32Slot(4, value.offset, 0.0)
    builder.PrependUOffsetTRelativeSlot(5, numbers, 0)
    builder.PrependInt32Slot(6, value.window, 0)
    builder.PrependFloat32Slot(7, value.words, 0.0)
    builder.PrependBoolSlot(8, value.whole, False)
    return builder.EndObject()


def _node(builder: flatbuffers.Builder, node: Node) -> int:
    inputs = vector(builder, node.inputs, 4, builder.PrependUint32)
    axes = vector(builder, node.axes, 4, builder.PrependUint32) if node.axes else 0
    builder.StartObject(8)
    builder.PrependUint8Slot(0, node.op, 0)
    builder.PrependUOffsetTRelativeSlot(1, inputs, 0)
    builder.PrependUint32Slot(2, node.output, 0)
    builder.PrependUOffsetTRelativeSlot(3, axes, 0)
    builder.PrependUint32Slot(4, node.begin, 0)
    builder.PrependUint32Slot(5, node.end, 0)
    builder.PrependBoolSlot(6, node.transposed, False)
    builder.PrependFloat32Slot(7, node.epsilon, 0.0)
    return builder.EndObject()
