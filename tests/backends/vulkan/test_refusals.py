"""What a GPU does not take, and in which words."""

from __future__ import annotations

import pytest
import torch

from backends.vulkan.lowering import VulkanBackend
from llm_export.program.specs import StateSpec
from tests.backends.parts import Part, T, Typed, dims, linear_attributes, numbers, quantised, random


def refusal(part: Part) -> str | None:
    return VulkanBackend().refusal(part.subgraph)


def attention(state: StateSpec | None = None, heads: int = 4, others: tuple = (), **attributes) -> Part:
    spec = state or StateSpec("cache", "kv_cache", 2, 8, 8)
    operands = [(1, heads, T, 8), (1, 2, T, 8), (1, 2, T, 8), (1, T), *(others or (None, None))]
    given = {"state": dims(0), "scale": numbers(1.0), "window": dims(0), "softcap": numbers(0.0), **attributes}
    part = Part("mote.attention", operands, (1, T, heads, 8), given)
    method = part.subgraph.method
    method.values[3].dtype = torch.int64
    part.subgraph = part.subgraph.__class__(method, part.specs, part.constants, frozenset(), (spec,))
    return part


def with_state(part: Part, spec: StateSpec) -> Part:
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (spec,))
    return part


def recurrence(width: int) -> Part:
    operands = [(1, T, 2, width), (1, T, 2, width), (1, T, 2, 8)]
    part = Part("mote.linear_attention", operands, (1, T, 2, 8), {"state": dims(0)})
    return with_state(part, StateSpec("memory", "recurrent", shape=(1, 2, 8, width)))


def indexer(value_width: int = 1, **attributes) -> Part:
    operands = [(1, 2, T, 8), (1, 1, T, 8), Typed((1, T), torch.int64)]
    output = Typed((1, T, 1, 4), torch.int64)
    part = Part("mote.indexer", operands, output, {"state": dims(0), "topk": dims(4), **attributes})
    return with_state(part, StateSpec("cache", "kv_cache", 1, 8, value_width))


SHAPE = (1, T, 8)
TILES = quantised(random(32, 64), 4, 32)
EXAMPLES = [
    ("Vulkan has no such op", Part("aten.cumsum", [SHAPE], SHAPE, {"dim": dims(1)})),
    ("dtype float16", Part("aten.add", [SHAPE, SHAPE], SHAPE, dtype=torch.float16)),
    ("rank 9: must be at most 8", Part("aten.abs", [(1,) * 9], (1,) * 9)),
    ("a weight of 4 bits where a dense one is needed", Part("aten.add", [(T, 64), TILES], (T, 64))),
    ("a weight of dtype float16 and rank 1", Part("aten.add", [(T, 8), random(8).half()], (T, 8))),
    ("dtype int64", Part("aten.exp", [SHAPE], SHAPE, dtype=torch.int64)),
    ("a weight that is computed",
     Part("mote.linear", [SHAPE, (4, 8), None, None, None], (1, T, 4), linear_attributes("float"))),
    ("int8 activations with a dense weight",
     Part("mote.linear", [SHAPE, random(4, 8), None, None, None], (1, T, 4), linear_attributes("int8"))),
    ("function swish", Part("mote.gated_linear", [(T, 64), TILES, None, None], (T, 16),
                            {**linear_attributes("int8"), "function": "swish"})),
    ("8 rows of gates: must be a multiple of 16",
     Part("mote.gated_linear", [(T, 64), quantised(random(16, 64), 4, 32), None, None], (T, 8),
          {**linear_attributes("int8"), "function": "silu"})),
    ("a state of kind recurrent", attention(StateSpec("conv", "recurrent", shape=(1, 2, 8)))),
    ("keys 2048 wide: must be at most 1024", recurrence(2048)),
    ("values 8 wide beside index keys: must be 1", indexer(8)),
    ("heads 7 wide: must be even", attention(StateSpec("cache", "kv_cache", 2, 7, 8))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "part"), EXAMPLES, ids=[words for words, _ in EXAMPLES])
def test_refusals_say_why(words, part):
    assert refusal(part) == words


def test_what_is_taken_is_not_refused():
    assert refusal(attention()) is None
    assert refusal(attention(StateSpec("cache", "kv_cache", 2, 8, 8, 64), window=dims(64))) is None
