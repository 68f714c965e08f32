"""Each op that XNNPACK takes, lowered alone and run by the real library, against eager PyTorch; what it refuses."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch

import llm_export.capture.ops  # noqa: F401  registers mote::
from backends.xnnpack import blob, graph_builder, lowering
from backends.xnnpack.lowering import XnnpackBackend
from backends.xnnpack.refusals import Refusal
from llm_export.partition.backend import Refused, Subgraph
from llm_export.program.instructions import Dim, Instruction, LoweredMethod, Value
from llm_export.program.specs import WeightSpec
from mote.libraries import XNNPACK
from tests.backends.parts import (
    ROOT,
    TOKENS,
    T,
    assert_near,
    dims,
    half_tolerance,
    linear_attributes,
    numbers,
    quantised,
    random,
    run_blob,
    run_part_with,
    stored_weight,
)
from tests.backends.xnnpack.part import Part
from tests.backends.xnnpack.refusals import EXAMPLES, TIED

mote = torch.ops.mote


LINEARS = [(4, 32, 35, 96), (4, 64, 17, 192), (4, 256, 48, 512), (3, 64, 17, 128), (8, 128, 33, 256), (5, 32, 9, 96)]


@pytest.mark.parametrize("packing", ["int4", "int8"])
@pytest.mark.parametrize("kind", ["groups", "signed groups", "channels"])
@pytest.mark.parametrize("bits,group_size,n,k", LINEARS)
def test_int8_linear(bits, group_size, n, k, kind, packing):
    weight = quantised(random(n, k), bits, group_size, kind == "channels", kind == "signed groups")
    bias = random(n)
    norm_weight = random(k, seed=1)
    operands = [(1, T, k), weight, bias, (1, T, n), norm_weight]
    part = Part("mote.linear", operands, (1, T, n), linear_attributes("int8", "rms", 1))
    for tokens in TOKENS:
        x, residual = random(1, tokens, k), random(1, tokens, n, seed=2)
        expected = mote.linear(
            x, weight.dequantize(), bias, residual, norm_weight, activations="int8", norm="rms", norm_eps=1e-5,
            norm_unit_offset=1,
        )  # fmt: skip
        # A value halfway between two codes may be rounded to either.
        assert_near(part.run(tokens, [x, residual], packing), expected, 1e-3)


FLOAT_WEIGHTS = ["float32", "bfloat16", "4 bits", "8 bits", "4 bits per channel", "8 bits per channel"]


@pytest.mark.parametrize("weight", FLOAT_WEIGHTS)
def test_float_linear(weight):
    n, k = 37, 64
    dense = random(n, k)
    if "bits" in weight:
        stored = quantised(dense, int(weight[0]), 32, weight.endswith("channel"))
        dense = stored.dequantize()
    else:
        stored = dense.to(getattr(torch, weight))
        dense = stored.float()
    bias = random(n, seed=3)
    for given in (None, bias):
        part = Part("mote.linear", [(T, k), stored, given, None, None], (T, n), linear_attributes("float"))
        for tokens in TOKENS:
            x = random(tokens, k)
            assert_near(part.run(tokens, [x]), mote.linear(x, dense, given))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_linear(dtype):
    n, k = 37, 64
    stored, bias, residual = random(n, k).to(dtype), random(n, seed=3), random(257, n, seed=4)
    part = Part("mote.linear", [(T, k), stored, bias, (T, n), None], (T, n), linear_attributes("float"))
    for tokens in TOKENS:
        x = random(tokens, k)
        expected = mote.linear(x, stored.half().float(), bias, residual[:tokens])
        assert_near(part.run(tokens, [x, residual[:tokens]], half=True), expected, half_tolerance(k))


def test_half_leaves_codes_alone():
    weight = quantised(random(35, 96), 4, 32)
    part = Part("mote.linear", [(T, 96), weight, None, None, None], (T, 35), linear_attributes("int8"))
    assert XnnpackBackend(half=True).lower(part.subgraph) == XnnpackBackend().lower(part.subgraph)


@pytest.mark.parametrize("function", ["silu", "gelu", "gelu_tanh", "relu", "sigmoid", "identity", "relu_squared"])
def test_gated_linear(function):
    f, k = 40, 64
    weight, bias = quantised(random(2 * f, k), 4, 32), random(2 * f)
    attributes = {**linear_attributes("int8"), "function": function}
    part = Part("mote.gated_linear", [(1, T, k), weight, bias, None], (1, T, f), attributes)
    for tokens in TOKENS:
        x = random(1, tokens, k)
        expected = mote.gated_linear(x, weight.dequantize(), bias, activations="int8", function=function)
        assert_near(part.run(tokens, [x]), expected, 1e-3)


def test_norms():
    weight, bias = random(33), random(33, seed=1)
    part = Part("mote.rms_norm", [(1, T, 33), weight], (1, T, 33), {"eps": numbers(1e-6), "unit_offset": dims(1)})
    bare = Part("mote.rms_norm", [(1, T, 33), None], (1, T, 33), {"eps": numbers(1e-6), "unit_offset": dims(0)})
    layer = Part("mote.layer_norm", [(1, T, 33), weight, bias], (1, T, 33), {"eps": numbers(1e-6)})
    for tokens in TOKENS:
        x = random(1, tokens, 33)
        assert_near(part.run(tokens, [x]), mote.rms_norm(x, weight, eps=1e-6, unit_offset=1))
        assert_near(bare.run(tokens, [x]), mote.rms_norm(x, None, eps=1e-6))
        assert_near(layer.run(tokens, [x]), mote.layer_norm(x, weight, bias, eps=1e-6))


@pytest.mark.parametrize("layout", ["half", "half_flipped", "interleaved"])
@pytest.mark.parametrize("rotated", [16, 24])
def test_rope(layout, rotated):
    part = Part("mote.rope", [(1, 3, T, 24), (1, T, rotated), (1, T, rotated)], (1, 3, T, 24), {"layout": layout})
    for tokens in TOKENS:
        x, cos, sin = random(1, 3, tokens, 24), random(1, tokens, rotated), random(1, tokens, rotated, seed=1)
        assert_near(part.run(tokens, [x, cos, sin]), mote.rope(x, cos, sin, layout=layout))


POINTWISE = {
    "abs": torch.abs, "ceil": torch.ceil, "cos": torch.cos, "exp": torch.exp, "floor": torch.floor, "neg": torch.neg,
    "relu": torch.relu, "round": torch.round, "sigmoid": torch.sigmoid, "sin": torch.sin, "square": torch.square,
    "silu": torch.nn.functional.silu, "tanh": torch.tanh, "reciprocal": torch.reciprocal,
    "gelu": torch.nn.functional.gelu, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
}  # fmt: skip
OF_POSITIVE = ("log", "sqrt", "rsqrt")


@pytest.mark.parametrize("name", POINTWISE)
def test_unary(name):
    part = Part(f"aten.{name}", [(T, 13)], (T, 13))
    for tokens in TOKENS:
        x = random(tokens, 13)
        x = x.abs() + 0.1 if name in OF_POSITIVE else x
        assert_near(part.run(tokens, [x]), POINTWISE[name](x))


def test_unary_with_parameters():
    """name: attributes, what PyTorch gives."""
    functional = torch.nn.functional
    cases = [
        ("clamp", {"min": numbers(-0.5), "max": numbers(0.75)}, lambda x: x.clamp(-0.5, 0.75)),
        ("clamp", {"max": numbers(0.25)}, lambda x: x.clamp(max=0.25)),
        ("elu", {"alpha": numbers(0.7)}, lambda x: functional.elu(x, 0.7)),
        ("leaky_relu", {"negative_slope": numbers(0.2)}, lambda x: functional.leaky_relu(x, 0.2)),
        ("gelu", {"approximate": "tanh"}, lambda x: functional.gelu(x, approximate="tanh")),
    ]
    for name, attributes, expected in cases:
        part = Part(f"aten.{name}", [(T, 13)], (T, 13), attributes)
        for tokens in TOKENS:
            x = random(tokens, 13)
            assert_near(part.run(tokens, [x]), expected(x))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
def test_binary(name):
    part = Part(f"aten.{name}", [(1, T, 13), (T, 1)], (1, T, 13))
    scalar = Part(f"aten.{name}", [(1, T, 13), 1.5], (1, T, 13))
    vector = Part(f"aten.{name}", [(1, T, 13), random(13)], (1, T, 13))
    for tokens in TOKENS:
        x, y = random(1, tokens, 13), random(tokens, 1)
        assert_near(part.run(tokens, [x, y]), getattr(torch, name)(x, y))
        assert_near(scalar.run(tokens, [x]), getattr(torch, name)(x, torch.tensor(1.5)))
        assert_near(vector.run(tokens, [x]), getattr(torch, name)(x, random(13)))


def test_views():
    """name: operands, output, attributes, what PyTorch gives."""
    cases = {
        "view": ((1, T, 12), (1, T, 3, 4), {"size": dims(1, T, 3, 4)}, lambda x: x.view(1, -1, 3, 4)),
        "unsqueeze": ((T, 12), (1, T, 12), {"dim": dims(0)}, lambda x: x[None]),
        "squeeze": ((1, T, 12), (T, 12), {"dims": dims(0)}, lambda x: x[0]),
        "permute": ((1, T, 3, 4), (1, 3, T, 4), {"dims": dims(0, 2, 1, 3)}, lambda x: x.permute(0, 2, 1, 3)),
        "slice": (
            (1, T, 12), (1, 1, 12), {"dim": dims(1), "start": dims(Dim(1, -1)), "end": dims(T), "step": dims(1)},
            lambda x: x[:, -1:],
        ),
        "select": ((1, T, 12), (1, T), {"dim": dims(2), "index": dims(5)}, lambda x: x[..., 5]),
        "clone": ((1, T, 12), (1, T, 12), {}, torch.clone),
        "_to_copy": ((1, T, 12), (1, T, 12), {}, torch.clone),
        "mean": ((1, T, 12), (1, T), {"dims": dims(2), "keepdim": dims(0)}, lambda x: x.mean(-1)),
        "softmax": ((1, T, 12), (1, T, 12), {"dim": dims(2)}, lambda x: x.softmax(-1)),
    }  # fmt: skip
    for name, (shape, output, attributes, expected) in cases.items():
        part = Part(f"aten.{name}", [shape], output, attributes)
        for tokens in TOKENS:
            x = random(*(tokens if size is T else size for size in shape))
            assert_near(part.run(tokens, [x]), expected(x))


def test_products_and_joins():
    bmm = Part("aten.bmm", [(2, T, 5), (2, 5, 9)], (2, T, 9))
    cat = Part("aten.cat", [(1, T, 5), (1, T, 2), (1, T, 1)], (1, T, 8), {"dim": dims(2)})
    for tokens in TOKENS:
        a, b, c = random(2, tokens, 5), random(2, 5, 9), random(1, tokens, 2)
        assert_near(bmm.run(tokens, [a, b]), a @ b)
        x, z = random(1, tokens, 5), random(1, tokens, 1)
        assert_near(cat.run(tokens, [x, c, z]), torch.cat((x, c, z), -1))


def test_products_of_two_matrices():
    part = Part("aten.bmm", [(T, 5), (5, 9)], (T, 9))
    for tokens in TOKENS:
        a, b = random(tokens, 5), random(5, 9)
        assert_near(part.run(tokens, [a, b]), a @ b)


@pytest.mark.parametrize("count", [1, 6, 9, 11])
def test_joins_of_many(count):
    widths = [1 + i % 3 for i in range(count)]
    part = Part("aten.cat", [(1, T, width) for width in widths], (1, T, sum(widths)), {"dim": dims(2)})
    for tokens in TOKENS:
        pieces = [random(1, tokens, width, seed=i) for i, width in enumerate(widths)]
        assert_near(part.run(tokens, pieces), torch.cat(pieces, -1))


EXPANSIONS = [((1, 2, 1, T, 7), (1, 2, 3, T, 7)), ((1, T, 1), (1, T, 33)), ((T, 5), (4, T, 5)), ((1, T, 5), (1, T, 5))]


@pytest.mark.parametrize("before,after", EXPANSIONS)
def test_expansions(before, after):
    part = Part("aten.expand", [before], after, {"size": dims(*after)})
    for tokens in TOKENS:
        x = random(*(tokens if size is T else size for size in before))
        expected = x.expand(*(tokens if size is T else size for size in after))
        assert_near(part.run(tokens, [x]), expected)


@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.0, 2.0, 3.0, 7.0, 8.0, -1.0, -2.0, -3.0])
def test_powers(exponent):
    part = Part("aten.pow", [(1, T, 13), exponent], (1, T, 13))
    for tokens in TOKENS:
        x = random(1, tokens, 13)
        x = x.abs() + 0.1 if abs(exponent) == 0.5 else x + 0.1 * x.sign()
        assert_near(part.run(tokens, [x]), x.pow(exponent))


def test_island():
    """Two linears read one normed value; a residual is given out and read on; heads are turned by views."""
    k, n = 64, 96
    down, qkv, norm_weight = quantised(random(k, n), 4, 32), quantised(random(n, k), 4, 32), random(k)
    specs = [
        WeightSpec(("down",), (k, n), torch.int8, 4, 32), WeightSpec(("qkv",), (n, k), torch.int8, 4, 32),
        WeightSpec(("norm",), (k,), torch.float32),
    ]  # fmt: skip
    shapes = [(1, T, n), (1, T, k), (k, n), (n, k), (k,), (1, T, k), (1, T, k), (1, T, n), (1, T, 3, 32), (1, 3, T, 32)]
    values = [Value("activation", torch.float32, dims(*shape)) for shape in shapes]
    values[0].kind = values[1].kind = "input"
    for i in range(3):
        values[2 + i] = Value("weight", specs[i].dtype, dims(*shapes[2 + i]), weight=i)
    plain = linear_attributes("int8")
    instructions = [
        Instruction("mote.linear", [0, 2, -1, 1, -1], [5], plain),
        Instruction("mote.rms_norm", [5, 4], [6], {"eps": numbers(1e-5), "unit_offset": dims(0)}),
        Instruction("mote.linear", [6, 3, -1, -1, -1], [7], plain),
        Instruction("aten.view", [7], [8], {"size": dims(*shapes[8])}),
        Instruction("aten.permute", [8], [9], {"dims": dims(0, 2, 1, 3)}),
    ]
    values[8].alias_of, values[9].alias_of = 7, 8
    method = LoweredMethod("island", values, [0, 1], ["x", "residual"], [5, 9], instructions)
    lowered = XnnpackBackend().lower(Subgraph(method, specs, {}))
    weights = [stored_weight(specs[i], (down, qkv, norm_weight)[i]) for i in lowered.weights]
    for tokens in TOKENS:
        x, residual = random(1, tokens, n), random(1, tokens, k)
        shapes = [(1, tokens, k), (1, 3, tokens, 32)]
        hidden, heads = run_blob("xnnpack", lowered, weights, tokens, [x, residual], shapes)
        expected = mote.linear(x, down.dequantize(), residual=residual, activations="int8")
        assert_near(hidden, expected, 1e-3)
        normed = mote.rms_norm(hidden, norm_weight, eps=1e-5)
        expected = mote.linear(normed, qkv.dequantize(), activations="int8")
        assert_near(heads, expected.view(1, tokens, 3, 32).permute(0, 2, 1, 3), 1e-3)


def test_every_op_has_a_test():
    text = Path(__file__).read_text()
    named = {*POINTWISE, *re.findall(r'"(?:aten\.|mote\.)?(\w+)"', text)}
    assert {name.partition(".")[2] for name in lowering.OPS} <= named


def test_names_what_a_library_lacks():
    result = run_part_with(library="libm.so.6")
    assert "libm.so.6: not a usable XNNPACK: it lacks xnn_initialize, xnn_create_subgraph" in result
    assert "cannot be loaded" in run_part_with(library="/nowhere/libXNNPACK.so")


def test_a_tied_head_is_taken_when_asked_for():
    tied = [part.subgraph for text, part in EXAMPLES if text == TIED]
    assert tied and all(XnnpackBackend(takes_tied=True).refusal(part) is None for part in tied)


def refused(part: Part) -> Refused:
    with pytest.raises(Refused) as raised:
        XnnpackBackend().lower(part.subgraph)
    return raised.value


def op_of(part: Part) -> str:
    return part.subgraph.method.instructions[0].op


@pytest.mark.parametrize(("text", "part"), EXAMPLES, ids=[f"{op_of(part)}-{text}" for text, part in EXAMPLES])
def test_refuses_with_a_reason(text, part):
    assert part.refusal() == text


def test_every_op_refuses_what_it_declares_and_what_any_may():
    entries = {id(entry): entry for entry in lowering.OPS.values()}.values()
    declared = {(entry.lower, refusal) for entry in entries for refusal in entry.refuses}
    of_some_ops = {refusal for _, refusal in declared}
    found = [(op_of(part), refused(part).refusal) for _, part in EXAMPLES]
    assert {(lowering.OPS[op].lower, refusal) for op, refusal in found if refusal in of_some_ops} == declared
    assert {refusal for _, refusal in found} == set(Refusal)


def test_no_refusal_has_words_of_its_own():
    for module in (graph_builder, lowering):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.Raise):
                assert re.match(r"Refusal\.[A-Z0-9_]+\.of\(", ast.unparse(node.exc)), f"{module.__file__}:{node.lineno}"


def test_finds_the_library_of_the_environment():
    path = XNNPACK.find()
    if path is None:
        pytest.skip("executorch is not installed")
    assert path.is_file()


def test_enumerations_are_those_of_the_schema():
    text = re.sub(r"//.*", "", (ROOT / "backends/xnnpack/schema.fbs").read_text())
    for name, body in re.findall(r"enum (\w+) : ubyte \{([^}]*)\}", text):
        members = [entry.split("=")[0].strip() for entry in body.split(",")]
        assert members == [member.name for member in getattr(blob, name)], name
