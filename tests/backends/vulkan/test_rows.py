"""Reductions, orders, experts and convolutions of rows on a GPU, against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

import llm_export.capture.ops  # noqa: F401  registers mote::
from backends.vulkan import products, rows
from backends.vulkan.lowering import VulkanBackend
from llm_export.capture.ops import ReferenceState
from llm_export.program.specs import StateSpec
from tests.backends.parts import Part, Stack, T, Typed, assert_near, dims, numbers, quantised, random

mote = torch.ops.mote
TOKENS = (1, 2, 7, 64)


def run(part: Part, tokens: int, *inputs: torch.Tensor) -> torch.Tensor:
    return part.run(VulkanBackend(), tokens, inputs)


@pytest.mark.parametrize("name", rows.REDUCTIONS)
@pytest.mark.parametrize("width", [5, 1000])
def test_reductions(name, width, vulkan):
    kept = Part(f"aten.{name}", [(1, T, width)], (1, T, 1), {"dims": dims(2), "keepdim": dims(1)})
    first = Part(f"aten.{name}", [(4, 1, T, width)], (1, T, width), {"dims": dims(0), "keepdim": dims(0)})
    function = {"prod": torch.prod}.get(name, getattr(torch, name))
    for tokens in TOKENS if name == "sum" else (7,):
        x, y = random(1, tokens, width), random(4, 1, tokens, width)
        x = 1 + 0.01 * x if name == "prod" else x
        assert_near(run(kept, tokens, x), function(x, -1, True), 1e-4 if name == "prod" else 1e-5)
        assert_near(run(first, tokens, y), function(y, 0))


def test_reductions_of_several_dimensions(vulkan):
    part = Part("aten.sum", [(3, T, 5)], (T,), {"dims": dims(0, 2), "keepdim": dims(0)})
    for tokens in TOKENS:
        assert_near(run(part, tokens, x := random(3, tokens, 5)), x.sum((0, 2)))


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremes_keep_what_is_no_number(name, vulkan):
    part = Part(f"aten.{name}", [(T, 70)], (T,), {"dims": dims(1), "keepdim": dims(0)})
    x = random(7, 70)
    x[3, 69] = float("nan")
    assert run(part, 7, x).isnan().tolist() == [i == 3 for i in range(7)]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("width", [4, 1000])
@pytest.mark.parametrize("axis", [1, 2])
def test_softmax(name, width, axis, vulkan):
    part = Part(f"aten.{name}", [(T, 3, width)], (T, 3, width), {"dim": dims(axis)})
    for tokens in TOKENS if name == "softmax" else (7,):
        x = 5 * random(tokens, 3, width)
        assert_near(run(part, tokens, x), getattr(torch, name)(x, axis), 1e-5)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("width", "k"), [(4, 2), (2, 1), (130, 8), (5, 5)])
def test_topk(width, k, largest, vulkan):
    given = {"k": dims(k), "dim": dims(1), "largest": dims(largest)}
    part = Part("aten.topk", [(T, width)], [(T, k), Typed((T, k), torch.int64)], given)
    for tokens in TOKENS:
        x = random(tokens, width).mul(4).round() / 4  # with equal ones
        x[0, 1], x[-1, 0] = float("nan"), -0.0
        expected = torch.sort(x, dim=1, descending=bool(largest), stable=True)
        values, indices = part.run_all(VulkanBackend(), tokens, (x,))
        assert torch.equal(indices, expected.indices[:, :k])
        assert torch.equal(values.nan_to_num(7), expected.values[:, :k].nan_to_num(7))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(("axis", "keepdim"), [(1, 1), (2, 0)])
def test_extremes_with_places(name, axis, keepdim, vulkan):
    shape = [T, 3, 70]
    shape[axis : axis + 1] = [1] * keepdim
    given = {"dim": dims(axis), "keepdim": dims(keepdim)}
    part = Part(f"aten.{name}", [(T, 3, 70)], [tuple(shape), Typed(tuple(shape), torch.int64)], given)
    for tokens in TOKENS:
        x = random(tokens, 3, 70)
        x[0, 1, 5] = float("nan")
        expected = getattr(torch, name)(x, axis, bool(keepdim))
        values, indices = part.run_all(VulkanBackend(), tokens, (x,))
        assert torch.equal(indices, expected.indices)
        assert torch.equal(values.nan_to_num(7), expected.values.nan_to_num(7))


def test_argmax_and_sort(vulkan):
    place = Part("aten.argmax", [(T, 9)], Typed((T,), torch.int64), {"dim": dims(1), "keepdim": dims(0)})
    order = Part("aten.sort", [(T, 9)], [(T, 9), Typed((T, 9), torch.int64)], {"dim": dims(1), "descending": dims(0)})
    for tokens in TOKENS:
        x = random(tokens, 9)
        assert torch.equal(run(place, tokens, x), x.argmax(1))
        values, indices = order.run_all(VulkanBackend(), tokens, (x,))
        expected = torch.sort(x, dim=1, stable=True)
        assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)


def experts(
    width: int, hidden: int, *, layout: str = "concatenated", activations: str = "float", dense: bool = False,
    bias: bool = False, function: str = "silu", limit: float = 0.0, alpha: float = 0.0,
    gate_softcap: float = 0.0, up_softcap: float = 0.0,
) -> tuple[Part, tuple]:  # fmt: skip
    """A part with 5 experts, 2 a token, and what eager PyTorch takes after its three inputs."""
    out = hidden if layout == "single" else 2 * hidden
    weights = [random(5, out, width), random(5, width, hidden, seed=1)]
    stored = weights if dense else [Stack(quantised(each, 4, 32) for each in weight) for weight in weights]
    biases = [random(5, out, seed=2), random(5, width, seed=3)] if bias else [None, None]
    attributes = {
        "activations": activations, "function": function, "layout": layout, "limit": numbers(limit),
        "alpha": numbers(alpha), "gate_softcap": numbers(gate_softcap), "up_softcap": numbers(up_softcap),
    }  # fmt: skip
    inputs = [(T, width), Typed((T, 2), torch.int64), (T, 2)]
    part = Part("mote.moe_experts", [*inputs, *stored, *biases], (T, width), attributes)
    return part, (*(weights if dense else [each.dequantize() for each in stored]), *biases)


KINDS = {
    "floats": {}, "dense": {"dense": True}, "biases": {"bias": True}, "int8": {"activations": "int8"},
    "rotated": {"activations": "rotated_int8"}, "groups": {"activations": "grouped_int8", "bias": True},
    "interleaved": {"layout": "interleaved", "bias": True, "limit": 0.5, "alpha": 1.702},
    "limited": {"limit": 0.5, "alpha": 1.702}, "gelu": {"function": "gelu_tanh"},
    "softcaps": {"gate_softcap": 2.0, "up_softcap": 3.0}, "softcap of up": {"layout": "interleaved", "up_softcap": 0.5},
    "softcap of gate": {"gate_softcap": 0.5, "activations": "int8", "bias": True},
    "single": {"layout": "single", "function": "relu_squared", "activations": "int8", "bias": True},
}  # fmt: skip


@pytest.mark.parametrize(("kind", "sizes"), [*((kind, (96, 160)) for kind in KINDS), ("int8", (64, 32))], ids=str)
def test_experts(kind, sizes, vulkan):
    options = KINDS[kind]
    part, others = experts(*sizes, **options)
    attributes = {"layout": "concatenated", "function": "silu"} | options
    taken = {name: attributes[name] for name in attributes if name not in ("dense", "bias")}
    for tokens in TOKENS:
        x, weights = random(tokens, sizes[0]), random(tokens, 2, seed=5).abs()
        chosen = torch.stack((torch.arange(tokens) % 5, (torch.arange(tokens) + 3) % 5), 1)
        expected = mote.moe_experts(x, chosen, weights, *others, **taken)
        # A value halfway between two codes may be rounded to either.
        assert_near(run(part, tokens, x, chosen, weights), expected, 1e-5 if "activations" not in options else 5e-3)


def test_experts_that_there_are_not_read_nothing_beyond(vulkan):
    part, others = experts(64, 32)
    x, weights = random(2, 64), random(2, 2, seed=5)
    known = mote.moe_experts(x, torch.tensor([[0, 4], [4, 4]]), weights, *others)
    assert_near(run(part, 2, x, torch.tensor([[0, 5], [1 << 40, -1]]), weights), known)


@pytest.mark.parametrize(("activations", "count"), [("dense", 2), ("float", 1), ("int8", 2), ("grouped_int8", 1)])
def test_a_matrix_of_each_choice(activations, count, vulkan):
    weight, is_dense = random(5, 40, 96), activations == "dense"
    stored = weight if is_dense else Stack(quantised(each, 4, 32) for each in weight)
    others = {"activations": "float" if is_dense else activations}
    operands = [(T, 96), Typed((T, count), torch.int64), stored]
    part = Part("mote.expert_linear", operands, (T, count, 40), others)
    for tokens in (1, 64):
        x, chosen = random(tokens, 96), torch.stack([(torch.arange(tokens) + 3 * i) % 5 for i in range(count)], 1)
        expected = mote.expert_linear(x, chosen, weight if is_dense else stored.dequantize(), **others)
        assert_near(run(part, tokens, x, chosen), expected, 5e-3 if "int8" in activations else 1e-5)


def test_functions_of_gates_are_those_of_experts():
    assert set(products.GATES[1:]) == {"silu", "gelu", "gelu_tanh", "relu", "sigmoid", "relu_squared", "identity"}


@pytest.mark.parametrize("length", [2, 4])
@pytest.mark.parametrize("has_bias", [False, True])
def test_short_conv_of_a_first_call(length, has_bias, vulkan):
    weight, bias = random(70, length), random(70, seed=1) if has_bias else None
    part = Part("mote.short_conv", [(1, T, 70), weight, bias], (1, T, 70), {"state": dims(0)})
    state = StateSpec("conv", "recurrent", shape=(1, length - 1, 70))
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (state,))
    for tokens in TOKENS:
        x = random(1, tokens, 70)
        padded = torch.nn.functional.pad(x.transpose(1, 2), (length - 1, 0))
        expected = torch.nn.functional.conv1d(padded, weight[:, None], bias, groups=70).transpose(1, 2)
        assert_near(run(part, tokens, x), expected)


# Heads of keys and of values, elements of a value, of a key; decays by head or by element, and the delta rule.
@pytest.mark.parametrize(
    ("heads", "size", "decay", "has_beta"),
    [
        ((2, 4), (5, 128), "head", True),
        ((3, 3), (4, 20), "element", True),
        ((1, 6), (8, 16), "head", False),
        ((1, 70), (1, 16), "element", False),
        ((2, 2), (3, 1), None, False),
        ((1, 1), (2, 300), None, True),
    ],
)
def test_linear_attention_of_a_first_call(heads, size, decay, has_beta, vulkan):
    (key_heads, value_heads), (values, width) = heads, size
    decays = {"head": (1, T, value_heads), "element": (1, T, value_heads, width), None: None}[decay]
    shapes = [(1, T, key_heads, width)] * 2 + [(1, T, value_heads, values), decays]
    shapes.append((1, T, value_heads) if has_beta else None)
    part = Part("mote.linear_attention", shapes, (1, T, value_heads, values), {"state": dims(0)})
    state = StateSpec("memory", "recurrent", shape=(1, value_heads, values, width))
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (state,))
    for tokens in TOKENS:
        made = [shape and random(*(tokens if n is T else n for n in shape), seed=i) for i, shape in enumerate(shapes)]
        made[0], made[1] = (torch.nn.functional.normalize(each, dim=-1) for each in made[:2])
        made[3] = None if decay is None else made[3].sigmoid()
        made[4] = made[4].sigmoid() if has_beta else None
        with ReferenceState():
            expected = mote.linear_attention(*made, state=0)
        assert_near(run(part, tokens, *(each for each in made if each is not None)), expected)
