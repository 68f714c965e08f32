"""Attention of a first call on a GPU, against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from backends.vulkan.lowering import VulkanBackend
from llm_export.capture.ops import ReferenceState
from llm_export.program.specs import StateSpec
from tests.backends.parts import TOKENS, Part, T, Typed, assert_near, dims, numbers, random

# Heads of queries and keys, widths of keys and values.
SHAPES = [(4, 2, 16, 16), (3, 3, 10, 6), (16, 1, 64, 64), (71, 1, 64, 64), (40, 2, 8, 8), (34, 2, 256, 128)]
KINDS = {
    "plain": {}, "window": {"window": 5}, "softcap": {"softcap": 3.0}, "sinks": {"sinks": True},
    "slopes": {"slopes": True}, "bidirectional": {"bidirectional": 1},
    "bidirectional window": {"bidirectional": 1, "window": 5},
}  # fmt: skip


CASES = [*((shape, "plain") for shape in SHAPES), *((SHAPES[i], kind) for i in (0, 4) for kind in list(KINDS)[1:])]


@pytest.mark.parametrize(("shape", "kind"), CASES, ids=str)
def test_attention(shape, kind, vulkan):
    heads, kv_heads, width, value_width = shape
    given = {"window": 0, "softcap": 0.0, "bidirectional": 0} | KINDS[kind]
    sinks = random(heads, seed=7) if given.pop("sinks", False) else None
    slopes = random(heads, seed=8) if given.pop("slopes", False) else None
    attributes = {
        "state": dims(0), "scale": numbers(0.25), "window": dims(given["window"]), "softcap": numbers(given["softcap"]),
        "bidirectional": dims(given["bidirectional"]),
    }  # fmt: skip
    operands = [
        (1, heads, T, width),
        (1, kv_heads, T, width),
        (1, kv_heads, T, value_width),
        Typed((1, T), torch.int64),
    ]
    part = Part("mote.attention", [*operands, sinks, slopes], (1, T, heads, value_width), attributes)
    state = StateSpec("cache", "kv_cache", kv_heads, width, value_width)
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (state,))
    for tokens in TOKENS if shape == SHAPES[0] and kind == "plain" else TOKENS[:4]:
        q, k, v = (
            random(1, n, tokens, w, seed=i)
            for i, (n, w) in enumerate(((heads, width), (kv_heads, width), (kv_heads, value_width)))
        )
        k, v = k.half().float(), v.half().float()  # as caches hold them
        positions = torch.arange(tokens)[None]
        with ReferenceState():
            expected = torch.ops.mote.attention(q, k, v, positions, sinks, slopes, state=0, scale=0.25, **given)
        assert_near(part.run(VulkanBackend(), tokens, (q, k, v, positions)), expected)


@pytest.mark.parametrize("window", [5, 300])
def test_first_positions_are_seen_in_spite_of_a_window(window, vulkan):
    attributes = {"state": dims(0), "scale": numbers(0.25), "window": dims(window), "softcap": numbers(0.0)}
    part = Part("mote.attention", [(1, 2, T, 8), (1, 1, T, 8), (1, 1, T, 8), Typed((1, T), torch.int64), None, None],
                (1, T, 2, 8), attributes)  # fmt: skip
    state = StateSpec("cache", "kv_cache", 1, 8, 8, window, num_sink_positions=3)
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (state,))
    for tokens in (1, 7, 64, 700):
        q, k, v = random(1, 2, tokens, 8), random(1, 1, tokens, 8, seed=1), random(1, 1, tokens, 8, seed=2)
        k, v = k.half().float(), v.half().float()
        places = torch.arange(tokens)
        behind = places[:, None] - places
        seen = (behind >= 0) & ((behind < window) | (places < 3))
        expected = torch.nn.functional.scaled_dot_product_attention(
            q, k.expand(1, 2, -1, -1), v.expand(1, 2, -1, -1), seen, scale=0.25
        )
        assert_near(part.run(VulkanBackend(), tokens, (q, k, v, places[None])), expected.transpose(1, 2))
