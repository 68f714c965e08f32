"""Attention of a first call on a GPU, against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from backends.vulkan.lowering import VulkanBackend
from llm_export.capture.ops import ReferenceState
from llm_export.program.specs import StateSpec
from tests.backends.parts import TOKENS, Part, T, Typed, dims, numbers, random

# Heads of queries and keys, widths of keys and values; values that are parts of keys.
SHAPES = [(4, 2, 16, 16), (3, 3, 10, 6), (16, 1, 64, 64), (71, 1, 64, 64), (40, 2, 8, 8), (34, 2, 256, 128)]
IN_KEYS = [(18, 1, 96, 64), (8, 1, 576, 512)]
KINDS = {
    "plain": {}, "window": {"window": 5}, "softcap": {"softcap": 3.0}, "sinks": {"sinks": True},
    "slopes": {"slopes": True}, "bidirectional": {"bidirectional": 1},
    "bidirectional window": {"bidirectional": 1, "window": 5}, "chunks": {"window": 5, "chunked": 1},
    "sinks of tokens": {"token_sinks": True}, "biases by distance": {"distances": 9, "softcap": 3.0},
    "chosen keys": {"groups": 1}, "keys chosen by heads": {"groups": 2}, "keys of blocks": {"stride": 3},
    "sums": {"lse": True, "sinks": True}, "sums of blocks": {"lse": True, "stride": 3},
}  # fmt: skip


PLAIN = [(shape, "plain") for shape in SHAPES + IN_KEYS]
CASES = [*PLAIN, (IN_KEYS[0], "chosen keys"), *((SHAPES[i], kind) for i in (0, 4) for kind in list(KINDS)[1:])]


@pytest.mark.parametrize(("shape", "kind"), CASES, ids=str)
def test_attention(shape, kind, vulkan):
    heads, kv_heads, width, value_width = shape
    in_keys = {"value_dim": value_width} if shape in IN_KEYS else {}
    given = {"window": 0, "softcap": 0.0, "bidirectional": 0, "chunked": 0, "stride": 1} | KINDS[kind]
    has_sums = given.pop("lse", False)
    sinks = random(heads, seed=7) if given.pop("sinks", False) else None
    others = {
        "token_sinks": (4, (1, T, heads)), "groups": (6, Typed((1, T, given.get("groups"), 6), torch.int64)),
        "distances": (7, (1, T, heads, given.get("distances"))),
    }  # fmt: skip
    place, shape_of_other = next((others[name] for name in others if given.pop(name, None)), (None, None))
    slopes = random(heads, seed=8) if given.pop("slopes", False) else None
    attributes = {
        "state": dims(0), "scale": numbers(0.25), "window": dims(given["window"]), "softcap": numbers(given["softcap"]),
        "bidirectional": dims(given["bidirectional"]), "chunked": dims(given["chunked"]),
        "stride": dims(given["stride"]),
    } | {name: dims(number) for name, number in in_keys.items()}  # fmt: skip
    operands = [
        (1, heads, T, width),
        (1, kv_heads, T, width),
        None if in_keys else (1, kv_heads, T, value_width),
        Typed((1, T), torch.int64),
    ]
    operands += [sinks, slopes, None, None]
    if place is not None:
        operands[place] = shape_of_other
    shapes = [(1, T, heads, value_width), *[(1, T, heads)] * has_sums]
    part = Part("mote.attention_lse" if has_sums else "mote.attention", operands, shapes, attributes)
    state = StateSpec("cache", "kv_cache", kv_heads, width, 0 if in_keys else value_width)
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (state,))
    for tokens in TOKENS if shape == SHAPES[0] and kind == "plain" else TOKENS[:4]:
        q, k, v = (
            random(1, n, tokens, w, seed=i)
            for i, (n, w) in enumerate(((heads, width), (kv_heads, width), (kv_heads, value_width)))
        )
        k, v = k.half().float(), v.half().float()  # as caches hold them
        positions, tensors = torch.arange(tokens)[None], [sinks, slopes, None, None]
        if place == 6:
            tensors[2] = chosen_positions(tokens, shape_of_other.shape[2], 6)
        elif place is not None:
            tensors[place - 4] = random(*(tokens if n is T else n for n in shape_of_other), seed=9)
        v = k[..., :value_width] if in_keys else v
        with ReferenceState():
            expected, sums = torch.ops.mote.attention_lse(
                q, k, v, positions, *tensors, state=0, scale=0.25, **given
            )
        values, given_here = [] if in_keys else [v], [] if place is None else [tensors[place - 4]]
        y, *got = part.run_all(VulkanBackend(), tokens, (q, k, *values, positions, *given_here))
        torch.testing.assert_close(y, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
        for each in got:
            torch.testing.assert_close(each, sums, rtol=1e-5, atol=1e-5)



def chosen_positions(tokens: int, groups: int, count: int) -> torch.Tensor:
    """Some of those before each token, and its own: ascending, -1 before them."""
    generator = torch.Generator().manual_seed(3)
    rows = []
    for token in range(tokens):
        for _ in range(groups):
            others = torch.randperm(token, generator=generator)[: count - 1]
            row = torch.cat((others.sort().values, torch.tensor([token])))
            rows.append(torch.nn.functional.pad(row, (count - len(row), 0), value=-1))
    return torch.stack(rows).view(1, tokens, groups, count)


# Heads of queries and keys, width, blocks that are chosen, positions of a block; below 0: only the last ones.
@pytest.mark.parametrize(
    "sizes", [(4, 1, 16, 5, 1), (4, 2, 8, 3, 4), (12, 1, 32, 100, 1), (2, 2, 10, 70, 2), (4, 2, 8, 3, -4)], ids=str
)
@pytest.mark.parametrize("has_weights", [True, False])
def test_indexer(sizes, has_weights, vulkan):
    heads, kv_heads, width, topk, block = sizes
    only_last, block = block < 0, abs(block)
    operands = [(1, heads, T, width), (1, kv_heads, T, width), Typed((1, T), torch.int64)]
    shape = (1, T, heads) if has_weights else None
    output = Typed((1, T, kv_heads, topk if only_last else topk * block + block - 1), torch.int64)
    attributes = {"state": dims(0), "topk": dims(topk), "stride" if only_last else "block": dims(block)}
    part = Part("mote.indexer", [*operands, shape], output, attributes)
    state = StateSpec("cache", "kv_cache", kv_heads, width, 1)
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (state,))
    for tokens in TOKENS:
        q, k = (random(1, n, tokens, width, seed=i) for i, n in enumerate((heads, kv_heads)))
        weights = random(1, tokens, heads, seed=3) if has_weights else None
        k, positions = k.half().float(), torch.arange(tokens)[None]
        for _ in range(2):
            expected = first_of_the_best(q, k, weights, topk, block, only_last)
            given = [q, k, positions, *[weights] * has_weights]
            assert torch.equal(part.run(VulkanBackend(), tokens, given), expected)
            # Products that are exact in any order, and many that are equal.
            q, k, weights = (None if x is None else x.mul(2).round() / 2 for x in (q, k, weights))


def first_of_the_best(q, k, weights, topk: int, block: int, only_last: bool) -> torch.Tensor:
    """As docs/ops.md has it: of equal scores those of earlier positions."""
    groups, tokens = k.shape[1:3]
    scores = (q @ k.repeat_interleave(q.shape[1] // groups, 1).transpose(2, 3)).relu()
    scores = scores if weights is None else scores * weights.transpose(1, 2).unsqueeze(-1)
    scores = scores.view(groups, -1, tokens, tokens).sum(1)
    result = torch.full((1, tokens, groups, topk if only_last else topk * block + block - 1), -1)
    for token in range(tokens):
        complete = (token + 1) // block
        for group in range(groups):
            order = scores[group, token, block - 1 :: block][:complete].sort(descending=True, stable=True).indices
            blocks = order[:topk].sort().values[:, None] * block + torch.arange(block)
            tail = torch.arange(complete * block, token + 1)
            row = blocks[:, -1] if only_last else torch.cat((blocks.flatten(), tail))
            result[0, token, group, result.shape[-1] - len(row) :] = row
    return result
