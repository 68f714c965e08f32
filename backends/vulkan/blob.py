"""A graph for a GPU as the flatbuffer of schema.fbs. A test compares the enumerations with the schema's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from enum import IntEnum

import flatbuffers

from llm_export.partition.flat import dim, dims, offsets, vector
from llm_export.program.instructions import Dim

FILE_IDENTIFIER = b"MOVK"

ValueKind = IntEnum("ValueKind", "scratch input output weight", start=0)
Content = IntEnum("Content", "float32 int64 bytes tiles dense boolean", start=0)
Op = IntEnum(
    "Op",
    "embedding rope_table norm quantize product float_product rope attention map rotate quantize_groups group_product"
    " reduce softmax top pick scatter matmul short_conv heads linear_attention"
    " indexer latent_heads",
    start=0,
)


@dataclass
class Value:
    kind: ValueKind
    content: Content
    bytes: Dim
    weight: int = -1
    slot: int = -1


@dataclass(frozen=True)
class View:
    """Elements of a value; `offset` and `strides` count elements."""

    value: int
    offset: Dim
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]


@dataclass
class Node:
    op: Op
    inputs: Sequence[View | None]
    outputs: Sequence[View]
    integers: Sequence[int] = ()
    numbers: Sequence[float] = ()
    origin: str = ""  # module path in the Hugging Face model


@dataclass(frozen=True)
class Cache:
    state: int
    num_heads: int
    head_dim: int
    value_head_dim: int


@dataclass(frozen=True)
class History:
    state: int
    rows: int
    columns: int


@dataclass(frozen=True)
class Recurrence:
    state: int
    key_heads: int
    heads: int
    rows: int
    width: int
    decays: int


@dataclass
class Graph:
    values: list[Value] = field(default_factory=list)
    slots: list[Dim] = field(default_factory=list)
    caches: list[Cache] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    histories: list[History] = field(default_factory=list)
    recurrences: list[Recurrence] = field(default_factory=list)

    def build(self) -> bytes:
        builder = flatbuffers.Builder(1 << 12)
        values = offsets(builder, [_value(builder, value) for value in self.values])
        origins = {origin: builder.CreateString(origin) for origin in dict.fromkeys(node.origin for node in self.nodes)}
        nodes = offsets(builder, [_node(builder, node, origins[node.origin]) for node in self.nodes])
        caches, histories, recurrences = (
            offsets(builder, [_state(builder, state) for state in states])
            for states in (self.caches, self.histories, self.recurrences)
        )
        slots = dims(builder, self.slots)
        builder.StartObject(6)
        for field_index, offset in enumerate((values, slots, caches, nodes, histories, recurrences)):
            builder.PrependUOffsetTRelativeSlot(field_index, offset, 0)
        builder.Finish(builder.EndObject(), file_identifier=FILE_IDENTIFIER)
        return bytes(builder.Output())


def _value(builder: flatbuffers.Builder, value: Value) -> int:
    builder.StartObject(5)
    builder.PrependUint8Slot(0, value.kind, 0)
    builder.PrependUint8Slot(1, value.content, 0)
    builder.PrependStructSlot(2, dim(builder, value.bytes), 0)
    builder.PrependInt32Slot(3, value.slot, -1)
    builder.PrependInt32Slot(4, value.weight, -1)
    return builder.EndObject()


def _view(builder: flatbuffers.Builder, view: View | None) -> int:
    if view is None:
        builder.StartObject(4)
        return builder.EndObject()
    sizes, strides = dims(builder, view.sizes), dims(builder, view.strides)
    builder.StartObject(4)
    builder.PrependInt32Slot(0, view.value, -1)
    builder.PrependStructSlot(1, dim(builder, view.offset), 0)
    builder.PrependUOffsetTRelativeSlot(2, sizes, 0)
    builder.PrependUOffsetTRelativeSlot(3, strides, 0)
    return builder.EndObject()


def _node(builder: flatbuffers.Builder, node: Node, origin: int) -> int:
    inputs = offsets(builder, [_view(builder, view) for view in node.inputs])
    outputs = offsets(builder, [_view(builder, view) for view in node.outputs])
    integers = vector(builder, node.integers, 8, builder.PrependInt64)
    numbers = vector(builder, node.numbers, 4, builder.PrependFloat32)
    builder.StartObject(6)
    builder.PrependUint8Slot(0, node.op, 0)
    for field_index, offset in enumerate((inputs, outputs, integers, numbers, origin), 1):
        builder.PrependUOffsetTRelativeSlot(field_index, offset, 0)
    return builder.EndObject()


def _state(builder: flatbuffers.Builder, state: Cache | History | Recurrence) -> int:
    numbers = astuple(state)
    builder.StartObject(len(numbers))
    for field_index, number in enumerate(numbers):
        builder.PrependInt32Slot(field_index, number, 0)
    return builder.EndObject()
