"""Each op that QNN takes, lowered alone and run in Qualcomm's simulator, against eager PyTorch; what is refused."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, silu

import llm_export.capture.ops  # noqa: F401  registers mote::
from backends.qnn import blob
from backends.qnn.graph_builder import GraphBuilder
from backends.qnn.lowering import OPS, QnnBackend
from backends.qnn.refusals import Refusal
from llm_export.partition.backend import Subgraph
from llm_export.program.instructions import Instruction, LoweredMethod, Value
from llm_export.program.specs import StateSpec, TileScales, WeightSpec
from tests.backends.parts import (
    ROOT,
    Part,
    Stack,
    T,
    Typed,
    assert_near,
    dims,
    linear_attributes,
    numbers,
    quantised,
    random,
)  # fmt: skip

mote = torch.ops.mote
TOLERANCE = 3e-3  # of float16, whose sums are float16 too
X = (1, 7, 64)
HEADS = (1, 3, 7, 32)
UNARY = {
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "neg": torch.neg, "exp": torch.exp,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "abs": torch.abs, "silu": silu, "gelu": gelu,
}  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
FUNCTIONS = {
    "silu": silu, "gelu": gelu, "gelu_tanh": lambda x: gelu(x, approximate="tanh"), "relu": torch.relu,
    "sigmoid": torch.sigmoid, "identity": lambda x: x, "relu_squared": lambda x: x.relu().square(),
}  # fmt: skip


def slice_attributes(dim: int, start: int, end: int, step: int = 1) -> dict:
    return {"dim": dims(dim), "start": dims(start), "end": dims(end), "step": dims(step)}


def linear_case(weight, norm: str = "none"):
    dense = weight.float() if isinstance(weight, torch.Tensor) else weight.dequantize()
    bias, gains = random(96), random(64, seed=1)
    part = Part(
        "mote.linear", [X, weight, bias, (1, 7, 96), gains if norm == "rms" else None], (1, 7, 96),
        linear_attributes("float", norm, 1 if norm == "rms" else 0),
    )  # fmt: skip

    def expected(x, residual):
        x = mote.rms_norm(x, gains, eps=1e-5, unit_offset=1) if norm == "rms" else x
        return x @ dense.T + bias + residual

    return part, expected


def gated_case(function: str):
    weight = quantised(random(80, 64), 4, 32)
    attributes = {**linear_attributes("float"), "function": function}
    part = Part("mote.gated_linear", [X, weight, random(80), None], (1, 7, 40), attributes)

    def expected(x):
        gates, ups = (x @ weight.dequantize().T + random(80)).chunk(2, -1)
        return FUNCTIONS[function](gates) * ups

    return part, expected


def rope_case(layout: str, rotated: int):
    part = Part("mote.rope", [HEADS, (1, 7, rotated), (1, 7, rotated)], HEADS, {"layout": layout})
    return part, lambda x, cos, sin: mote.rope(x, cos, sin, layout=layout)


def attention(inputs=(), state=None, tokens=7, **attributes) -> Part:
    """An attention over one state, with changes that make it another. inputs: the last operands"""
    state = state or StateSpec("s", "kv_cache", 1, 32, 32, 0, 0, ())
    operands = [HEADS, (1, 1, 7, 32), (1, 1, 7, 32), Typed((1, 7), torch.int64), *[None] * 4]
    operands = [*operands[: 8 - len(inputs)], *inputs]
    usual = {"window": 0, "bidirectional": 0, "chunked": 0, "stride": 1, "value_dim": 0, "state": 0}
    words = {name: dims(value) for name, value in {**usual, **attributes}.items()}
    words |= {"scale": numbers(0.2), "softcap": numbers(0.0)}
    part = Part("mote.attention", operands, (1, 7, 3, 32), words)
    part.subgraph = replace(part.subgraph, states=(state,))
    part.subgraph.method.min_tokens = part.subgraph.method.max_tokens = tokens
    return part


def attention_case(sinks=None, slopes=None, window: int = 0):
    """The first call of a session."""
    behind = torch.arange(7)[:, None] - torch.arange(7)

    def expected(q, k, v, _positions, *of_tokens):
        scores = 0.2 * q @ k.mT
        if slopes is not None:
            scores = scores - slopes[:, None, None] * behind
        scores = scores.masked_fill((behind < 0) | (behind >= (window or 7)), -torch.inf)
        if sinks is not None:
            each = of_tokens[0].mT[..., None] if of_tokens else sinks[:, None, None].expand(1, 3, 7, 1)
            scores = torch.cat((scores, each), -1)
        return (scores.softmax(-1)[..., :7] @ v).transpose(1, 2)

    return attention([sinks, slopes, None, None], window=window), expected


def stack(*sizes: int, bits: int = 4) -> Stack:
    return Stack(quantised(random(*sizes, seed=expert), bits, 32) for expert in range(4))


def experts_case(tokens: int, gate_up, down, biases=(None, None), function: str = "silu", **attributes):
    words = {"layout": "concatenated", "limit": 0.0, "alpha": 0.0, "gate_softcap": 0.0, "up_softcap": 0.0, **attributes}
    operands = [(tokens, 64), Typed((tokens, 2), torch.int64), (tokens, 2), gate_up, down, *biases]
    in_file = {name: numbers(value) if isinstance(value, float) else value for name, value in words.items()}
    part = Part("mote.moe_experts", operands, (tokens, 64), {"activations": "float", "function": function, **in_file})
    stacks = [each.dequantize() if isinstance(each, Stack) else each for each in (gate_up, down)]
    return part, lambda x, indices, weights: mote.moe_experts(
        x, indices, weights, *stacks, *biases, function=function, **words
    )


GPT_OSS = {"layout": "interleaved", "limit": 7.0, "alpha": 1.702, "biases": (random(4, 192), random(4, 64))}


def top_case(width: int, count: int):
    """Of numbers that are apart, as float16 may not tell others."""
    attributes = {"k": dims(count), "dim": dims(1), "largest": dims(1)}
    part = Part("aten.topk", [(3, width)], [(3, count), Typed((3, count), torch.int64)], attributes)
    return part, lambda x: tuple(x.topk(count))


# name: a part, and what PyTorch gives for its inputs
CASES = {
    **{name: (Part(f"aten.{name}", [X], X), function) for name, function in UNARY.items()},
    "square": (Part("aten.square", [X], X), torch.square),
    "gelu tanh": (Part("aten.gelu", [X], X, {"approximate": "tanh"}), FUNCTIONS["gelu_tanh"]),
    **{name: (Part(f"aten.{name}", [X, (7, 1)], X), getattr(torch, name)) for name in BINARY},
    "mul number": (Part("aten.mul", [X, 1.5], X), lambda x: 1.5 * x),
    "add vector": (Part("aten.add", [X, random(64)], X), lambda x: x + random(64)),
    "view": (Part("aten.view", [X], (1, 7, 4, 16), {"size": dims(1, 7, 4, 16)}), lambda x: x.view(1, 7, 4, 16)),
    "unsqueeze": (Part("aten.unsqueeze", [X], (1, 1, 7, 64), {"dim": dims(0)}), lambda x: x[None]),
    "squeeze": (Part("aten.squeeze", [X], X[1:], {"dims": dims(0)}), lambda x: x[0]),
    "clone": (Part("aten.clone", [X], X), torch.clone),
    "_to_copy": (Part("aten._to_copy", [X], X), torch.clone),
    "permute": (Part("aten.permute", [HEADS], (1, 7, 3, 32), {"dims": dims(0, 2, 1, 3)}), lambda x: x.transpose(1, 2)),
    "slice": (Part("aten.slice", [X], (1, 1, 64), slice_attributes(1, 6, 7)), lambda x: x[:, 6:]),
    "select": (Part("aten.select", [X], (7, 64), {"dim": dims(0), "index": dims(0)}), lambda x: x[0]),
    "cat": (Part("aten.cat", [X, (1, 7, 3)], (1, 7, 67), {"dim": dims(2)}), lambda x, y: torch.cat((x, y), -1)),
    "softmax": (Part("aten.softmax", [X], X, {"dim": dims(2)}), lambda x: x.softmax(-1)),
    "bmm": (Part("aten.bmm", [(3, 7, 16), (3, 16, 9)], (3, 7, 9)), torch.bmm),
    "rms_norm": (
        Part("mote.rms_norm", [X, random(64)], X, {"eps": numbers(1e-6), "unit_offset": dims(1)}),
        lambda x: mote.rms_norm(x, random(64), eps=1e-6, unit_offset=1),
    ),
    "rms_norm alone": (
        Part("mote.rms_norm", [X, None], X, {"eps": numbers(1e-6), "unit_offset": dims(0)}),
        lambda x: mote.rms_norm(x, None, eps=1e-6),
    ),
    "layer_norm": (
        Part("mote.layer_norm", [X, random(64), random(64, seed=1)], X, {"eps": numbers(1e-5)}),
        lambda x: mote.layer_norm(x, random(64), random(64, seed=1), eps=1e-5),
    ),
    "layer_norm alone": (
        Part("mote.layer_norm", [X, None, None], X, {"eps": numbers(1e-5)}),
        lambda x: mote.layer_norm(x, None, None, eps=1e-5),
    ),
    "linear": linear_case(random(96, 64), "rms"),
    "linear float16": linear_case(random(96, 64).half()),
    "linear 4 bits": linear_case(quantised(random(96, 64), 4, 32)),
    "linear 4 bits, signed": linear_case(quantised(random(96, 64), 4, 32, signed=True)),
    "linear 4 bits, a scale a row": linear_case(quantised(random(96, 64), 4, 32, True)),
    "linear 3 bits": linear_case(quantised(random(96, 64), 3, 32)),
    "linear 8 bits": linear_case(quantised(random(96, 64), 8, 32)),
    "linear 8 bits, a scale a row": linear_case(quantised(random(96, 64), 8, 32, True)),
    **{f"gated_linear {function}": gated_case(function) for function in FUNCTIONS},
    **{
        f"rope {layout} {rotated}": rope_case(layout, rotated)
        for layout in ("half", "half_flipped", "interleaved")
        for rotated in (24, 32)
    },
    "sum": (Part("aten.sum", [X], (1, 7), {"dims": dims(-1), "keepdim": dims(0)}), lambda x: x.sum(-1)),
    "topk": top_case(60, 4),
    "moe_experts, one token": experts_case(1, stack(192, 64), stack(64, 96)),
    "moe_experts": experts_case(2, stack(192, 64), stack(64, 96), function="gelu_tanh"),
    "moe_experts of gpt_oss": experts_case(2, stack(192, 64), stack(64, 96), **GPT_OSS),
    "moe_experts with softcaps": experts_case(
        2, stack(192, 64), stack(64, 96, bits=3), gate_softcap=2.0, up_softcap=3.0
    ),
    "moe_experts float": experts_case(2, random(4, 96, 64), random(4, 64, 96), layout="single"),
    "moe_experts 8 bits": experts_case(1, stack(192, 64, bits=8), stack(64, 96, bits=8)),
    "attention": attention_case(),
    "attention window": attention_case(window=3),
    "attention sinks": attention_case(sinks=random(3)),
    "attention sinks of tokens": attention_case(sinks=(1, 7, 3)),
    "attention slopes": attention_case(slopes=torch.tensor([0.5, 0.25, 2**-8])),
    "attention sinks slopes window": attention_case(random(3), torch.tensor([0.5, 0.25, 2**-8]), 3),
}  # fmt: skip


def given(value: Value, seed: int) -> Tensor:
    """Random numbers; of whole ones those from 0."""
    shape = [size.constant for size in value.shape]
    return random(*shape, seed=seed) if value.dtype == torch.float32 else torch.arange(math.prod(shape)).view(shape)


@pytest.mark.parametrize("name", CASES)
def test_op(name, qnn):
    part, expected = CASES[name]
    method = part.subgraph.method
    inputs = [given(method.values[i], seed) for seed, i in enumerate(method.inputs)]
    if name in ("sqrt", "rsqrt", "div"):
        inputs[-1] = inputs[-1].abs() + 0.5
    # Inputs reach the device as float16, so that much is not the op's.
    inputs = [x.half().float() if x.is_floating_point() else x for x in inputs]
    outputs = part.run_all(QnnBackend(16), method.max_tokens if method.is_fixed else 1, inputs)
    wanted = expected(*inputs)
    for got, want in zip(outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert_near(got, want, TOLERANCE)


def test_every_op_has_a_case():
    tried = {part.subgraph.method.instructions[0].op for part, _ in CASES.values()}
    assert {*OPS} == tried


def test_enumerations_are_those_of_the_schema():
    schema = re.sub(r"//[^\n]*", "", (ROOT / "backends/qnn/schema.fbs").read_text())
    for kind in (blob.ValueKind, blob.WeightForm, blob.Op):
        words = re.search(rf"enum {kind.__name__} : ubyte {{([^}}]*)}}", schema)[1]
        assert [word.split("=")[0].strip() for word in words.split(",")] == [each.name for each in kind]


def tied_positions() -> Part:
    part = attention()
    part.subgraph.method.inputs.remove(3)
    return part


def given_out_twice() -> Part:
    part = Part("aten.abs", [X], X)
    part.subgraph.method.outputs *= 2
    return part


def computed_weight() -> Part:
    return Part("mote.linear", [X, (96, 64)], (1, 7, 96), linear_attributes("float"))


def linear_of(weight, activations: str = "float") -> Part:
    return Part("mote.linear", [X, weight], (1, 7, 96), linear_attributes(activations))


def half_scales() -> Part:
    part = linear_of(quantised(random(96, 64), 4, 32))
    part.specs[0] = replace(part.specs[0], scales=TileScales(32))
    return part


REFUSED = [
    ("QNN has no such op here", Part("aten.cumsum", [X], X, {"dim": dims(1)})),
    ("calls of any length", Part("aten.abs", [(1, T, 8)], (1, T, 8))),
    ("dtype int64", Part("aten.add", [X, X], X, dtype=torch.int64)),
    ("rank 6: must be 1 to 5", Part("aten.abs", [(1,) * 6], (1,) * 6)),
    ("the number 100000.0: float16 holds up to 65504", Part("aten.mul", [X, 1e5], X)),
    ("a value is given out twice, or as it came in", given_out_twice()),
    ("a weight that is computed", computed_weight()),
    ("a weight where an activation is needed", Part("aten.abs", [random(8)], (8,))),
    ("a weight of dtype int64 and rank 1", Part("aten.add", [X, torch.arange(64)], X)),
    ("a weight with float16 scales", half_scales()),
    ("inputs that are rounded to int8", linear_of(random(96, 64), "int8")),
    ("function swish", Part("mote.gated_linear", [X, random(80, 64), None, None], (1, 7, 40),
                            {**linear_attributes("float"), "function": "swish"})),
    ("two constants", Part("aten.add", [1.5, random(8)], (8,))),
    ("a shape that is not computed so", Part("aten.add", [X, (1, 7, 63)], X)),
    ("a slice with steps", Part("aten.slice", [X], (1, 7, 32), slice_attributes(2, 0, 64, 2))),
    ("not over the last dimension", Part("aten.softmax", [X], X, {"dim": dims(1)})),
    ("a state of kind recurrent, or with sink positions",
     attention(state=StateSpec("s", "recurrent", 0, 0, 0, 0, 0, (1, 2)))),
    ("positions that the part computes", tied_positions()),
    ("rows of 4096: float16 counts to 2048", top_case(4096, 2)[0]),
    ("the smallest elements", Part("aten.topk", [X[1:]], [(7, 2), Typed((7, 2), torch.int64)],
                                   {"k": dims(2), "dim": dims(1), "largest": dims(0)})),
    ("64 experts of which a token chooses 2: calls of several tokens compute all of at most 8 for each chosen",
     experts_case(2, random(64, 2, 64), random(64, 64, 1))[0]),
    ("attention with chosen keys", attention(inputs=[Typed((1, 7, 1, 2), torch.int64), None])),
    ("attention with chunked", attention(chunked=1)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "part"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refuses_with_a_reason(text, part):
    assert QnnBackend().refusal(part.subgraph) == text


def test_refuses_what_no_context_holds():
    """Three weights of 2 GB, of which only the sizes matter."""
    width = 1 << 15
    specs = [WeightSpec((f"w{i}",), (width, width), torch.float16) for i in range(3)]
    values = [Value("input", torch.float32, dims(1, 1, width))]
    values += [Value("weight", torch.float16, dims(width, width), weight=i) for i in range(3)]
    values += [Value("activation", torch.float32, dims(1, 1, width)) for _ in range(3)]
    steps = [Instruction("mote.linear", [(0, 4, 5)[i], 1 + i], [4 + i], linear_attributes("float")) for i in range(3)]
    method = LoweredMethod("large", values, [0], ["x"], [6], steps)
    assert QnnBackend().refusal(Subgraph(method, specs, {})) == "weights of 6.0 GB in one part: a context holds 4"


def test_every_reason_is_given_by_a_test():
    patterns = [re.sub(r"\\{\w+\\}", ".*", re.escape(refusal.value)) for refusal in Refusal]
    texts = [text for text, _ in REFUSED] + ["weights of 6.0 GB in one part: a context holds 4"]
    assert all(any(re.fullmatch(pattern, text) for text in texts) for pattern in patterns)


def test_weights_in_blocks_take_inputs_of_any_size(qnn):
    """Words have a range that is known before: for rows of 1e-3, of 100, of zeros, and with one element of 500."""
    weight = quantised(torch.cat([random(31, 2048), torch.zeros(1, 2048)]), 4, 32)
    part = Part("mote.linear", [(1, 6, 2048), weight], (1, 6, 32), linear_attributes("float"))
    x = random(1, 6, 2048)
    x[0, 1] *= 1e-3
    x[0, 2] *= 100
    x[0, 3] = 0
    x[0, 4, 7] = 500
    x[0, 5] = weight.dequantize()[0]  # along a row: the largest product that there can be
    x = x.half().float()
    got, expected = part.run(QnnBackend(), 1, [x]), x @ weight.dequantize().T
    for row in (0, 1, 2, 4, 5):
        assert_near(got[0, row], expected[0, row], TOLERANCE)
    assert not got[0, 3].any()


def test_weights_keep_their_bits_or_become_bytes():
    def forms(signed: bool) -> set:
        part = linear_of(quantised(random(96, 64), 4, 32, signed=signed))
        graph = GraphBuilder(part.subgraph, 16)
        OPS["mote.linear"].lower(graph, part.subgraph.method.instructions[0])
        return {value.form for value in graph.part.values if value.kind is blob.ValueKind.weight}

    assert forms(signed=False) == {blob.WeightForm.blocks, blob.WeightForm.lengths}
    assert forms(signed=True) == {blob.WeightForm.rows}
    assert not QnnBackend().takes_signed_multipliers
    assert QnnBackend(weights="bytes").takes_signed_multipliers
    with pytest.raises(ValueError, match="weights = 'words': must be 'blocks' or 'bytes'"):
        QnnBackend(weights="words")


def test_slots_and_lengths_that_cannot_be():
    with pytest.raises(ValueError, match="context_length = 0: must be at least 1"):
        QnnBackend(0)
    with pytest.raises(ValueError, match="context_bytes = 0: must be 1 to 4294967296"):
        QnnBackend(context_bytes=0)
    assert QnnBackend(64).counts_for(4096, ()) == (32,)
    assert QnnBackend(16).counts_for(4096, ()) == (16,)


def test_a_mask_is_made_once_for_layers_that_see_as_much():
    graph = GraphBuilder(attention().subgraph, 16)
    for _ in range(2):
        graph.once(blob.Value(blob.ValueKind.mask, (1, 1, 7, 23), window=0))
    graph.once(blob.Value(blob.ValueKind.mask, (1, 1, 7, 23), window=5))
    assert [value.window for value in graph.part.values] == [0, 5]
