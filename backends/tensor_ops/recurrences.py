"""States that are no caches: convolutions over the latest tokens, and matrices that each token moves on."""

from __future__ import annotations

from llm_export.program.instructions import Instruction

from .emitter import Tensor
from .function import Function
from .refusals import MAX_UNROLLED, Refusal
from .registry import op


def precise(f: Function, instruction: Instruction, position: int) -> Tensor | None:
    found = f.maybe(instruction, position)
    return None if found is None else f.emitter.precise(found)


@op("mote.short_conv", refuses=(Refusal.STATE,))
def short_conv(f: Function, instruction: Instruction) -> None:
    e, name = f.emitter, f.state(instruction)[1]["state"].name
    x, weight, bias = (precise(f, instruction, position) for position in (0, 1, 2))
    (tokens, channels), size = x.shape[1:], weight.shape[1]
    rows = e.concat([f.held(name), x], 1)  # [1, size - 1 + T, C]
    y = None
    for place in range(size):
        taps = e.reshape(e.slice(weight, 1, place, place + 1), (1, 1, channels))
        term = e.mul(e.slice(rows, 1, place, place + tokens), taps)
        y = term if y is None else e.add(y, term)
    f.keep(name, e.slice(rows, 1, tokens, tokens + size - 1))
    f.give(instruction.outputs[0], y if bias is None else e.add(y, e.reshape(bias, (1, 1, channels))))


@op("mote.linear_attention", refuses=(Refusal.STATE, Refusal.RECURRENCE))
def linear_attention(f: Function, instruction: Instruction) -> None:
    """Written out token by token, so that results do not depend on how tokens are divided into calls."""
    e, name = f.emitter, f.state(instruction)[1]["state"].name
    q, k, v, decay, beta = (precise(f, instruction, position) for position in range(5))
    tokens, heads, width = v.shape[1:]
    if tokens > MAX_UNROLLED:
        raise Refusal.RECURRENCE.of(tokens=tokens)
    q, k = (e.repeated(x, 2, heads // x.shape[2]) for x in (q, k))  # [1, T, H, N]
    memory, outputs = f.held(name), []  # [1, H, P, N]
    for t in range(tokens):
        if decay is not None:
            factor = e.slice(decay, 1, t, t + 1)
            memory = e.mul(memory, e.reshape(factor, (1, heads, 1, factor.shape[3] if factor.rank == 4 else 1)))
        key, query = (e.reshape(e.slice(x, 1, t, t + 1), (1, heads, 1, x.shape[3])) for x in (k, q))
        update = e.reshape(e.slice(v, 1, t, t + 1), (1, heads, width, 1))
        if beta is not None:
            share = e.reshape(e.slice(beta, 1, t, t + 1), (1, heads, 1, 1))
            update = e.mul(share, e.sub(update, e.reduce("sum", e.mul(memory, key), [-1])))
        memory = e.add(memory, e.mul(update, key))
        outputs.append(e.reshape(e.reduce("sum", e.mul(memory, query), [-1]), (1, 1, heads, width)))
    f.keep(name, memory)
    f.give(instruction.outputs[0], e.concat(outputs, 1))
