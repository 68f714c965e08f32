"""A backend for tests, docs/adding-a-backend.md followed once: it computes attention in plain loops and keeps the keys
and values itself, for calls of any length or of the lengths that it is made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import flatbuffers

from llm_export.partition.backend import Backend, Blob, Subgraph, Unsupported
from llm_export.program.instructions import Dim, Instruction, LoweredMethod
from llm_export.program.specs import StateSpec

FILE_IDENTIFIER = b"MOTY"
SWAP_TOKENS_AND_HEADS = tuple(Dim(0, axis) for axis in (0, 2, 1, 3))


class ToyBackend(Backend):
    """token_counts: lengths of calls; none: any"""

    name = "toy"
    min_instructions = 1
    owns_states = True

    def __init__(self, token_counts: Sequence[int] = ()):
        self.token_counts = tuple(token_counts)

    def lower(self, subgraph: Subgraph) -> Blob:
        method = subgraph.method
        views = ("aten.permute", "aten.view", "aten.slice")
        for instruction in method.instructions:
            if instruction.op not in ("mote.attention", *views):
                raise Unsupported(f"op {instruction.op}")
        attentions = [
            _Attention.of(method, instruction, subgraph.states[instruction.attributes["state"][0].constant])
            for instruction in method.instructions
            if instruction.op == "mote.attention"
        ]
        builder = flatbuffers.Builder()
        offsets = [attention.write(builder) for attention in attentions]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        vector = builder.EndVector()
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, vector, 0)
        builder.PrependInt64Slot(1, method.max_tokens if method.is_fixed else 0, 0)
        builder.Finish(builder.EndObject(), file_identifier=FILE_IDENTIFIER)
        return Blob(bytes(builder.Output()), ())


@dataclass(frozen=True)
class _Operand:
    """Where q, k or v lies: fields as in schema.fbs."""

    input: int
    offset: int = 0
    token_stride: int = 0

    @classmethod
    def of(cls, method: LoweredMethod, value: int) -> _Operand:
        if value in method.inputs:
            return cls(method.inputs.index(value))
        makers = {instruction.outputs[0]: instruction for instruction in method.instructions}
        if makers[value].op != "aten.permute" or makers[value].attributes["dims"] != SWAP_TOKENS_AND_HEADS:
            raise Unsupported(f"an input by {makers[value].op}")
        value, offset = makers[value].inputs[0], 0
        while value not in method.inputs:
            maker, source = makers[value], method.values[makers[value].inputs[0]]
            if maker.op == "aten.slice" and maker.attributes["dim"][0].constant == 2 and len(source.shape) == 3:
                offset += maker.attributes["start"][0].constant
            elif maker.op != "aten.view" or source.shape[:2] != method.values[value].shape[:2]:
                raise Unsupported(f"an input by {maker.op}")
            value = maker.inputs[0]
        token_stride = 1
        for size in method.values[value].shape[2:]:
            token_stride *= size.constant
        return cls(method.inputs.index(value), offset, token_stride)

    def write(self, builder: flatbuffers.Builder) -> int:
        builder.StartObject(3)
        for slot, value in enumerate((self.input, self.offset, self.token_stride)):
            builder.PrependInt32Slot(slot, value, 0)
        return builder.EndObject()


@dataclass(frozen=True)
class _Attention:
    """Fields as in schema.fbs."""

    state: int
    operands: tuple[_Operand, ...]  # q, k, v
    sizes: tuple[int, ...]  # positions, output, num_heads, num_kv_heads, head_dim, value_head_dim
    scale: float

    @classmethod
    def of(cls, method: LoweredMethod, instruction: Instruction, state: StateSpec) -> _Attention:
        attributes = instruction.attributes
        if min(instruction.inputs[:4]) < 0:
            raise Unsupported("keys and values of another layer")
        if max(instruction.inputs[4:]) >= 0 or state.window != 0 or attributes["softcap"].values != (0.0,):
            raise Unsupported("a window, sinks, slopes or a softcap")
        q, k, v, positions = instruction.inputs[:4]
        sizes = (
            method.inputs.index(positions),
            method.outputs.index(instruction.outputs[0]),
            method.values[q].shape[1].constant,
            state.num_heads,
            state.head_dim,
            state.value_head_dim,
        )
        operands = tuple(_Operand.of(method, value) for value in (q, k, v))
        return cls(attributes["state"][0].constant, operands, sizes, attributes["scale"].values[0])

    def write(self, builder: flatbuffers.Builder) -> int:
        operands = [operand.write(builder) for operand in self.operands]
        builder.StartObject(11)
        builder.PrependInt32Slot(0, self.state, 0)
        for slot, offset in enumerate(operands):
            builder.PrependUOffsetTRelativeSlot(1 + slot, offset, 0)
        for slot, value in enumerate(self.sizes):
            builder.PrependInt32Slot(4 + slot, value, 0)
        builder.PrependFloat32Slot(10, self.scale, 0.0)
        return builder.EndObject()
