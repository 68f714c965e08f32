"""Attention over caches that are states of the asset, and what turns queries and keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llm_export.program.instructions import Instruction, number, optional

from .emitter import BOOLEAN, FLOAT, HALF, HIDDEN, INTEGER, Emitter, Tensor, narrowed
from .function import Function, integers
from .products import softcapped
from .refusals import Refusal
from .registry import op
from .rows import log_sum_exp

NOWHERE = 1 << 30  # the position of a key that is not there yet


@op("mote.rope_table", refuses=(Refusal.INPUT,))
def rope_table(f: Function, instruction: Instruction) -> None:
    e, scale = f.emitter, number(instruction, "scale", 1.0)
    for function, output in zip(("cos", "sin"), instruction.outputs, strict=True):
        half = (_turns if e.float_dtype == FLOAT else _stored_turns)(f, instruction, function, scale)
        if instruction.attributes.get("layout") == "interleaved":
            half = e.reshape(half, (*half.shape, 1))
        f.give(output, e.concat([half, half], -1))


def _turns(f: Function, instruction: Instruction, function: str, scale: float) -> Tensor:
    e = f.emitter
    positions, frequencies = (f.operand(index) for index in instruction.inputs)
    angles = e.mul(e.reshape(e.cast(positions, FLOAT), (*positions.shape, 1)), frequencies)
    return e.scaled(e.unary(function, angles), scale)


def _stored_turns(f: Function, instruction: Instruction, function: str, scale: float) -> Tensor:
    """Rows of a table, since float16 has no angles beyond the first positions."""
    e, positions = f.emitter, f.operand(instruction.inputs[0])
    value = f.method.values[instruction.inputs[1]]
    if value.kind != "weight":
        raise Refusal.INPUT.of(name="frequencies")
    spec = f.subgraph.weights[value.weight]

    def table() -> np.ndarray:
        angles = np.arange(f.capacity)[:, None] * f.weights.wide(spec).astype(np.float64)
        return narrowed(scale * getattr(np, function)(angles))

    name = f"{spec.name}.{function}.{scale}"
    turns = e.rows(e.stored(name, (f.capacity, *spec.shape), HALF, table), e.reshape(positions, (positions.size,)))
    return e.reshape(turns, (*positions.shape, *spec.shape))


@op("mote.rope")
def rope(f: Function, instruction: Instruction) -> None:
    e = f.emitter
    x, cos, sin = (f.operand(index) for index in instruction.inputs)
    size = cos.shape[-1]
    cos, sin = (e.reshape(table, (1, 1, *table.shape[-2:])) for table in (cos, sin))
    first = e.slice(x, -1, 0, size)
    turned = e.add(e.mul(first, cos), e.mul(_quarter_turn(e, first, instruction.attributes["layout"]), sin))
    f.give(instruction.outputs[0], e.concat([turned, e.slice(x, -1, size, x.shape[-1])], -1))


def _quarter_turn(e: Emitter, x: Tensor, layout: str) -> Tensor:
    half = x.shape[-1] // 2
    if layout == "interleaved":
        even, odd = (e.slice(x, -1, start, x.shape[-1], 2) for start in (0, 1))
        pairs = [e.reshape(part, (*part.shape, 1)) for part in (e.neg(odd), even)]
        return e.reshape(e.concat(pairs, -1), x.shape)
    low, high = e.slice(x, -1, 0, half), e.slice(x, -1, half, x.shape[-1])
    return e.concat([high, e.neg(low)] if layout == "half_flipped" else [e.neg(high), low], -1)


@dataclass(frozen=True)
class Places:
    """queries: int32 [T, 1]   keys: int32 [1, C], beyond all others where nothing is yet   first: query, int32 [1]"""

    queries: Tensor
    keys: Tensor
    first: Tensor

    @classmethod
    def of(cls, f: Function, instruction: Instruction, position: int) -> Places:
        e = f.emitter
        positions, first = f.first_position(instruction, position)
        keys = e.constant(np.arange(f.capacity)[None], INTEGER)
        ports = f.state(instruction)[1].values()
        has_rows = optional(instruction, 1) >= 0 or any(port.name in f.carried for port in ports)
        if e.carries_states and has_rows:  # what the tokens add is behind the cache
            keys = e.where(e.greater(first, keys), keys, e.constant(NOWHERE, INTEGER))
            keys = e.concat([keys, e.reshape(positions, (1, *positions.shape))], 1)
        return cls(e.reshape(positions, (*positions.shape, 1)), keys, first)


def cached(f: Function, instruction: Instruction, part: str, rows: Tensor | None, first: Tensor) -> Tensor | None:
    """The cache [1, heads, C, width] with what the tokens add to it, behind it where states are carried.

    None: it has no such part
    """
    _, ports = f.state(instruction)
    if part not in ports:
        return None
    e, name = f.emitter, ports[part].name
    if rows is not None:
        cache = f.states[name]
        rows = e.cast(rows, cache.dtype)
        if e.carries_states:
            f.states[name], f.carried[name] = e.concat([cache, rows], 2), rows
        else:
            f.keep(name, e.write(cache, rows, 2, first))
    return e.cast(f.states[name], e.float_dtype)


@op("mote.attention", "mote.attention_lse", refuses=(Refusal.INPUT, Refusal.STATE, Refusal.CARRIED))
def attention(f: Function, instruction: Instruction) -> None:
    e, scale = f.emitter, number(instruction, "scale")
    q, places = f.operand(instruction.inputs[0]), Places.of(f, instruction, 3)
    k, v = f.maybe(instruction, 1), f.maybe(instruction, 2)
    keys = cached(f, instruction, "keys", k, places.first)
    value_dim = int(number(instruction, "value_dim"))
    values = e.slice(keys, -1, 0, value_dim) if value_dim else cached(f, instruction, "values", v, places.first)
    mask = visible(f, instruction, places, q.shape[1])
    extra = [f.maybe(instruction, position) for position in (4, 5, 7)]  # sinks, slopes, biases by distance
    softcap = number(instruction, "softcap")
    # Of all queries some may see no key where keys are chosen or left out, which attention of vendors does not know.
    sees_one = f.maybe(instruction, 6) is None and number(instruction, "stride", 1.0) <= 1
    has_more = softcap or any(each is not None for each in extra)
    if instruction.op == "mote.attention" and sees_one and not has_more:
        output = e.attention(q, keys, values, mask, scale)
    else:
        scores = e.scored(q, keys, scale)
        scores = softcapped(e, scores, softcap) if softcap else scores
        scores = biased(e, scores, places, *extra[1:])
        output, lse = with_sinks(e, scores, mask, values, extra[0])
        if instruction.op == "mote.attention_lse":
            f.give(instruction.outputs[1], e.transpose(lse, (0, 2, 1, 3)))
    f.give(instruction.outputs[0], e.transpose(output, (0, 2, 1, 3)))


def visible(f: Function, instruction: Instruction, places: Places, heads: int) -> Tensor:
    """Which keys a query sees: bool [1, H or 1, T, C]."""
    e, window = f.emitter, int(number(instruction, "window"))
    q, k = places.queries, places.keys
    seen = e.at_least(q, k)
    if number(instruction, "bidirectional"):
        # Keys behind the last token of the call are of calls that were taken back.
        last = e.add(places.first, e.constant([q.shape[0] - 1], INTEGER))
        seen = e.broadcast(e.at_least(e.reshape(last, (1, 1)), k), (q.shape[0], k.shape[1]))
        if window:
            seen = e.both(seen, e.greater(e.add(q, e.constant(window, INTEGER)), k))
    if window and number(instruction, "chunked"):
        width = e.constant(window, INTEGER)
        same = e.binary("equal", e.binary("floor_divide", k, width), e.binary("floor_divide", q, width))
        seen = e.both(seen, same)
    elif window:
        seen = e.both(seen, e.greater(k, e.sub(q, e.constant(window, INTEGER))))
    sinks = f.state(instruction)[0].num_sink_positions
    if sinks and window:
        first = e.both(e.greater(e.constant(sinks, INTEGER), k), e.at_least(q, k))
        seen = e.either(seen, first)
    stride = int(number(instruction, "stride", 1.0))
    if stride > 1:
        if e.carries_states:
            raise Refusal.CARRIED.of(what="with strides")
        ends = (np.arange(f.capacity) + 1) % stride == 0
        seen = e.both(seen, e.cast(e.constant(ends[None].astype(np.int32), INTEGER), BOOLEAN))
    seen = e.reshape(seen, (1, 1, *seen.shape))
    chosen = f.maybe(instruction, 6)
    return seen if chosen is None else e.both(seen, _is_chosen(f, chosen, heads))


def _is_chosen(f: Function, chosen: Tensor, heads: int) -> Tensor:
    """bool [1, H, T, C] of lists of positions int32 [1, T, G, K]; negative ones are none"""
    e = f.emitter
    if e.carries_states:
        raise Refusal.CARRIED.of(what="to chosen keys")
    _, tokens, groups, _ = chosen.shape
    places = e.where(e.greater(e.constant(0, INTEGER), chosen), e.constant(f.capacity, INTEGER), chosen)
    ones = e.broadcast(e.constant(1, INTEGER), places.shape)
    none = e.broadcast(e.constant(0, INTEGER), (1, tokens, groups, f.capacity + 1))
    marked = e.slice(e.scatter(none, places, ones, 3), 3, 0, f.capacity)
    marked = e.cast(e.transpose(marked, (0, 2, 1, 3)), BOOLEAN)
    return e.repeated(marked, 1, heads // groups)


def biased(e: Emitter, scores: Tensor, places: Places, slopes: Tensor | None, biases: Tensor | None) -> Tensor:
    """slopes [H]: of the distance   biases [1, T, H, E]: of keys that lie so far behind"""
    distance = e.sub(places.keys, places.queries)  # [T, C]
    if slopes is not None:
        slope = e.reshape(slopes, (1, *slopes.shape, 1, 1))
        scores = e.add(scores, e.mul(slope, e.reshape(e.cast(distance, scores.dtype), (1, 1, *distance.shape))))
    if biases is None:
        return scores
    extent = biases.shape[-1]
    behind = e.neg(distance)
    zero, last = e.constant(0, INTEGER), e.constant(extent - 1, INTEGER)
    index = e.binary("minimum", e.binary("maximum", behind, zero), last)
    index = e.broadcast(e.reshape(index, (1, 1, *index.shape)), scores.shape)
    found = e.gather(e.transpose(biases, (0, 2, 1, 3)), index, 3)
    within = e.both(e.at_least(behind, zero), e.at_least(last, behind))
    within = e.reshape(within, (1, 1, *within.shape))
    return e.add(scores, e.where(within, found, e.constant(0.0)))


def with_sinks(
    e: Emitter, scores: Tensor, mask: Tensor, values: Tensor, sinks: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The output, and the logarithm of what the softmax divides by, [1, H, T, 1]."""
    scores, capacity = e.where(mask, scores, e.constant(HIDDEN)), scores.shape[-1]
    if sinks is not None:
        each = e.reshape(sinks, (1, *sinks.shape, 1, 1)) if sinks.rank == 1 else _of_tokens(e, sinks)
        scores = e.concat([scores, e.broadcast(each, (*scores.shape[:-1], 1))], -1)
    weights = e.slice(e.softmax(scores), -1, 0, capacity)
    weights = e.where(mask, weights, e.constant(0.0))  # 0 of a query that sees no key
    lse = log_sum_exp(e, scores)
    lse = e.where(e.greater(lse, e.constant(HIDDEN / 2)), lse, e.constant(-np.inf))
    return e.mixed(weights, values), lse


def _of_tokens(e: Emitter, sinks: Tensor) -> Tensor:
    """[1, T, H] as [1, H, T, 1]"""
    return e.reshape(e.transpose(sinks, (0, 2, 1)), (1, sinks.shape[2], sinks.shape[1], 1))


@op("mote.indexer", refuses=(Refusal.INPUT, Refusal.STATE, Refusal.CARRIED))
def indexer(f: Function, instruction: Instruction) -> None:
    e, (topk,) = f.emitter, integers(instruction, "topk")
    if e.carries_states:
        raise Refusal.CARRIED.of(what="to chosen keys")
    q, k = f.operand(instruction.inputs[0]), f.operand(instruction.inputs[1])
    places = Places.of(f, instruction, 2)
    block, stride = (int(number(instruction, name, 1.0)) for name in ("block", "stride"))
    size, groups, tokens = block * stride, k.shape[1], q.shape[2]
    keys = cached(f, instruction, "keys", k, places.first)
    blocks = f.capacity // size
    ends = e.slice(keys, 2, size - 1, blocks * size, size)  # [1, G, blocks, D]
    scores = e.unary("relu", e.scored(q, ends, 1.0))  # [1, H, T, blocks]
    weights = f.maybe(instruction, 3)
    if weights is not None:
        scores = e.mul(scores, _of_tokens(e, weights))
    scores = e.reduce("sum", e.reshape(scores, (groups, q.shape[1] // groups, tokens, blocks)), [1])
    scores = e.reshape(scores, (groups, tokens, blocks))
    behind = e.constant((np.arange(1, blocks + 1) * size)[None, None], INTEGER)
    counted = e.add(places.queries, e.constant(1, INTEGER))  # positions up to the query's: [T, 1]
    is_there = e.at_least(e.reshape(counted, (1, tokens, 1)), behind)
    f.give(instruction.outputs[0], _best(f, scores, is_there, counted, topk, block, stride))


def _best(f: Function, scores: Tensor, is_there: Tensor, counted: Tensor, topk: int, block: int, stride: int) -> Tensor:
    """Ascending positions of the best blocks and of the tail, -1 before them: int32 [1, T, G, count]"""
    e, (groups, tokens, blocks) = f.emitter, scores.shape
    scores = e.where(is_there, scores, e.constant(HIDDEN))
    count = min(topk, blocks)
    best = e.slice(e.order(scores, -1, True), -1, 0, count)  # [G, T, count]
    none = e.constant(-1, INTEGER)
    exists = e.gather(e.cast(e.broadcast(is_there, scores.shape), INTEGER), best, 2)
    best = e.where(e.cast(exists, BOOLEAN), best, none)
    if stride > 1:
        # -1 stays: (-1 + 1) * stride - 1
        found = e.sub(e.mul(e.add(best, e.constant(1, INTEGER)), e.constant(stride, INTEGER)), e.constant(1, INTEGER))
    else:
        within = e.constant(np.arange(block)[None, None, None], INTEGER)
        first = e.reshape(e.mul(best, e.constant(block, INTEGER)), (groups, tokens, count, 1))
        valid = e.reshape(e.at_least(best, e.constant(0, INTEGER)), (groups, tokens, count, 1))
        found = e.reshape(e.where(valid, e.add(first, within), none), (groups, tokens, count * block))
        if block > 1:
            found = e.concat([found, _tail(e, counted, groups, block)], -1)
    missing = chosen_count(topk, block, stride) - found.shape[-1]
    if missing:
        found = e.concat([e.broadcast(none, (groups, tokens, missing)), found], -1)
    order = e.order(found, -1, False)
    return e.transpose(e.reshape(e.gather(found, order, 2), (1, groups, tokens, found.shape[-1])), (0, 2, 1, 3))


def _tail(e: Emitter, counted: Tensor, groups: int, block: int) -> Tensor:
    """Positions behind the last whole block, int32 [G, T, block - 1]"""
    tokens, width = counted.shape[0], e.constant(block, INTEGER)
    start = e.mul(e.binary("floor_divide", counted, width), width)
    places = e.add(start, e.constant(np.arange(block - 1)[None], INTEGER))
    places = e.where(e.greater(counted, places), places, e.constant(-1, INTEGER))
    return e.broadcast(e.reshape(places, (1, tokens, block - 1)), (groups, tokens, block - 1))


def chosen_count(topk: int, block: int, stride: int) -> int:
    return topk if stride > 1 else topk * block + block - 1
