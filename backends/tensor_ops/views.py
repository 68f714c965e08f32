"""What moves elements, makes them of nothing, or picks them by others."""

from __future__ import annotations

import numpy as np

from llm_export.program.instructions import Instruction, number

from .emitter import BOOLEAN, INTEGER
from .function import Function, integers
from .refusals import Refusal
from .registry import op


@op("aten.view", "aten.unsqueeze", "aten.squeeze", "aten.clone", "aten._to_copy")
def reshape(f: Function, instruction: Instruction) -> None:
    f.give(instruction.outputs[0], f.operand(instruction.inputs[0]))


@op("aten.permute")
def permute(f: Function, instruction: Instruction) -> None:
    x = f.operand(instruction.inputs[0])
    f.give(instruction.outputs[0], f.emitter.transpose(x, integers(instruction, "dims")))


@op("aten.expand")
def expand(f: Function, instruction: Instruction) -> None:
    output = instruction.outputs[0]
    f.give(output, f.emitter.broadcast(f.operand(instruction.inputs[0]), f.shape(output)))


@op("aten.slice")
def cut(f: Function, instruction: Instruction) -> None:
    axis, start, end, step = (integers(instruction, name)[0] for name in ("dim", "start", "end", "step"))
    f.give(instruction.outputs[0], f.emitter.slice(f.operand(instruction.inputs[0]), axis, start, end, step))


@op("aten.select")
def select(f: Function, instruction: Instruction) -> None:
    (axis,), (index,) = integers(instruction, "dim"), integers(instruction, "index")
    x = f.operand(instruction.inputs[0])
    index %= x.shape[axis]
    f.give(instruction.outputs[0], f.emitter.slice(x, axis, index, index + 1))


@op("aten.cat")
def cat(f: Function, instruction: Instruction) -> None:
    parts = [f.operand(index) for index in instruction.inputs]
    f.give(instruction.outputs[0], f.emitter.concat(parts, integers(instruction, "dim")[0]))


@op("aten.repeat_interleave")
def repeat_interleave(f: Function, instruction: Instruction) -> None:
    (axis,), (repeats,) = integers(instruction, "dim"), integers(instruction, "repeats")
    f.give(instruction.outputs[0], f.emitter.repeated(f.operand(instruction.inputs[0]), axis, repeats))


@op("aten.full")
def full(f: Function, instruction: Instruction) -> None:
    output, e = instruction.outputs[0], f.emitter
    value = number(instruction, "value")
    f.give(output, e.broadcast(e.constant(value, f.dtype(output)), f.shape(output)))


@op("aten.arange")
def arange(f: Function, instruction: Instruction) -> None:
    bounds = [integers(instruction, name)[0] for name in ("start", "end", "step")]
    f.give(instruction.outputs[0], f.emitter.constant(np.arange(*bounds), INTEGER))


@op("aten.constant_pad_nd")
def pad(f: Function, instruction: Instruction) -> None:
    x, e = f.operand(instruction.inputs[0]), f.emitter
    amounts, value = integers(instruction, "pad"), number(instruction, "value")
    for place in range(len(amounts) // 2):
        axis = x.rank - 1 - place
        before, behind = amounts[2 * place : 2 * place + 2]
        x = e.slice(x, axis, max(-before, 0), x.shape[axis] - max(-behind, 0))
        rims = [
            e.broadcast(e.constant(value, x.dtype), (*x.shape[:axis], max(size, 0), *x.shape[axis + 1 :]))
            for size in (before, behind)
            if size > 0
        ]
        x = e.concat([*rims[: before > 0], x, *rims[before > 0 :]], axis)
    f.give(instruction.outputs[0], x)


@op("aten.tril", "aten.triu")
def triangle(f: Function, instruction: Instruction) -> None:
    x, e = f.operand(instruction.inputs[0]), f.emitter
    of_ones = np.tril if instruction.op == "aten.tril" else np.triu
    kept = of_ones(np.ones(x.shape[-2:], np.int32), int(number(instruction, "diagonal")))
    mask = e.cast(e.constant(kept, INTEGER), BOOLEAN)
    f.give(instruction.outputs[0], e.where(mask, x, e.constant(0, x.dtype)))


@op("aten.index_select")
def index_select(f: Function, instruction: Instruction) -> None:
    x, index = (f.operand(position) for position in instruction.inputs)
    (axis,) = integers(instruction, "dim")
    e = f.emitter
    order = [axis, *(other for other in range(x.rank) if other != axis)]
    picked = e.rows(e.transpose(x, order), index)
    f.give(instruction.outputs[0], e.transpose(picked, [order.index(other) for other in range(x.rank)]))


@op("aten.gather")
def gather(f: Function, instruction: Instruction) -> None:
    x, index = (f.operand(position) for position in instruction.inputs)
    f.give(instruction.outputs[0], f.emitter.gather(x, index, integers(instruction, "dim")[0]))


@op("aten.scatter", refuses=(Refusal.PART,))
def scatter(f: Function, instruction: Instruction) -> None:
    """Of equal indices, what a vendor writes is not said: models scatter to places that differ."""
    x, index, source = (f.operand(position) for position in instruction.inputs)
    e = f.emitter
    kind = INTEGER if x.dtype == BOOLEAN else x.dtype
    (axis,) = integers(instruction, "dim")
    for other, size in enumerate(index.shape):
        if other != axis and size != x.shape[other]:
            raise Refusal.PART.of()
        source = e.slice(source, other, 0, size)
    f.give(instruction.outputs[0], e.scatter(e.cast(x, kind), index, e.cast(source, kind), axis))
