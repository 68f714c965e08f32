"""Each op that a GPU takes, lowered alone and run, against eager PyTorch; what is refused."""

from __future__ import annotations

import re

import pytest
import torch

import llm_export.capture.ops  # noqa: F401  registers mote::
from backends.vulkan import attention, blob, maps, products, rows
from backends.vulkan.lowering import VulkanBackend
from llm_export.capture.hadamard import inverse_hadamard
from tests.backends.parts import (
    ROOT,
    TOKENS,
    Part,
    Stack,
    T,
    assert_near,
    dims,
    linear_attributes,
    numbers,
    quantised,
    random,
    run_blob,
    stored_weight,
)
from tests.backends.vulkan.products import SIZES, int8_product

mote = torch.ops.mote
SCHEMA = (ROOT / "backends/vulkan/schema.fbs").read_text()


def run(part: Part, tokens: int, *inputs: torch.Tensor) -> torch.Tensor:
    return part.run(VulkanBackend(), tokens, inputs)


@pytest.mark.parametrize("kind", ["groups", "signed groups", "channels"])
@pytest.mark.parametrize("bits,group_size,n,k", SIZES)
def test_int8_linear_to_the_bit(bits, group_size, n, k, kind, vulkan):
    weight = quantised(random(n, k), bits, group_size, kind == "channels", kind == "signed groups")
    bias = random(n)
    part = Part("mote.linear", [(1, T, k), weight, bias, (1, T, n), None], (1, T, n), linear_attributes("int8"))
    for tokens in TOKENS:
        x, residual = random(1, tokens, k), random(1, tokens, n, seed=2)
        assert torch.equal(run(part, tokens, x, residual), int8_product(x, weight, bias, residual))


@pytest.mark.parametrize("offset", [0, 1])
def test_int8_linear_behind_a_norm(offset, vulkan):
    n, k = 33, 96
    weight, norm_weight = quantised(random(n, k), 4, 32), random(k, seed=1)
    part = Part("mote.linear", [(1, T, k), weight, None, None, norm_weight], (1, T, n),
                linear_attributes("int8", "rms", offset))  # fmt: skip
    for tokens in TOKENS:
        x = random(1, tokens, k)
        expected = mote.linear(
            x, weight.dequantize(), None, None, norm_weight, activations="int8", norm="rms", norm_eps=1e-5,
            norm_unit_offset=offset,
        )  # fmt: skip
        # A value halfway between two codes may be rounded to either.
        assert_near(run(part, tokens, x), expected, 1e-3)


@pytest.mark.parametrize("k", [64, 96, 256, 576])
@pytest.mark.parametrize("norm", ["none", "rms"])
def test_rotated_linear(norm, k, vulkan):
    n = 33
    weight, norm_weight = quantised(random(n, k), 4, 32), random(k, seed=1)
    part = Part("mote.linear", [(1, T, k), weight, None, None, norm_weight if norm == "rms" else None], (1, T, n),
                linear_attributes("rotated_int8", norm))  # fmt: skip
    for tokens in TOKENS:
        x = random(1, tokens, k)
        expected = mote.linear(
            x, weight.dequantize(), None, None, norm_weight if norm == "rms" else None, activations="rotated_int8",
            norm=norm, norm_eps=1e-5,
        )  # fmt: skip
        assert_near(run(part, tokens, x), expected, 1e-3)


@pytest.mark.parametrize("bits,group_size", [(1, 32), (3, 32), (4, 32), (4, 128), (7, 64), (8, 32)])
def test_linear_with_inputs_rounded_in_groups(bits, group_size, vulkan):
    n, k = 35, 256
    weight, bias, norm_weight = quantised(random(n, k), bits, group_size), random(n), random(k, seed=1)
    part = Part("mote.linear", [(1, T, k), weight, bias, (1, T, n), norm_weight], (1, T, n),
                linear_attributes("grouped_int8", "rms"))  # fmt: skip
    for tokens in TOKENS:
        x, residual = random(1, tokens, k), random(1, tokens, n, seed=2)
        expected = mote.linear(
            x, weight.dequantize(), bias, residual, norm_weight, activations="grouped_int8", norm="rms", norm_eps=1e-5
        )
        assert_near(run(part, tokens, x, residual), expected, 1e-3)


FLOAT_WEIGHTS = ["float32", "float16", "bfloat16", "1 bits", "4 bits", "7 bits", "8 bits", "4 bits per channel"]


@pytest.mark.parametrize("weight", FLOAT_WEIGHTS)
def test_float_linear(weight, vulkan):
    n, k = 37, 64
    dense = random(n, k)
    if "bits" in weight:
        stored = quantised(dense, int(weight[0]), 32, weight.endswith("channel"))
        dense = stored.dequantize()
    else:
        stored = dense.to(getattr(torch, weight))
        dense = stored.float()
    for bias in (None, random(n, seed=3)):
        part = Part("mote.linear", [(T, k), stored, bias, (T, n), None], (T, n), linear_attributes("float"))
        for tokens in TOKENS:
            x, residual = random(tokens, k), random(tokens, n, seed=4)
            assert_near(run(part, tokens, x, residual), mote.linear(x, dense, bias, residual))


@pytest.mark.parametrize("activations", ["int8", "float"])
@pytest.mark.parametrize("function", products.GATES[1:])
def test_gated_linear(function, activations, vulkan):
    f, k = 48, 64
    weight, bias = quantised(random(2 * f, k), 4, 32), random(2 * f)
    attributes = {**linear_attributes(activations), "function": function}
    part = Part("mote.gated_linear", [(1, T, k), weight, bias, None], (1, T, f), attributes)
    for tokens in TOKENS:
        x = random(1, tokens, k)
        expected = mote.gated_linear(x, weight.dequantize(), bias, activations=activations, function=function)
        assert_near(run(part, tokens, x), expected, 1e-5 if activations == "float" else 1e-3)


@pytest.mark.parametrize("activations", ["float", "dense", "grouped_int8"])
def test_matrices_of_heads(activations, vulkan):
    heads, n, k = 3, 35, 64
    rows = [random(n, k, seed=i) for i in range(heads)]
    weight = torch.stack(rows) if activations == "dense" else Stack(quantised(each, 4, 32) for each in rows)
    dense = weight if activations == "dense" else weight.dequantize()
    activations = activations.replace("dense", "float")
    part = Part("mote.head_linear", [(1, T, heads, k), weight], (1, T, heads, n), {"activations": activations})
    for tokens in TOKENS:
        x = random(1, tokens, heads, k)
        expected = mote.head_linear(x, dense, activations=activations)
        assert_near(run(part, tokens, x), expected, 1e-5 if activations == "float" else 1e-3)


@pytest.mark.parametrize("table", ["float32", "bfloat16", "4 bits", "8 bits"])
def test_embedding(table, vulkan):
    rows = random(50, 64)
    stored = quantised(rows, int(table[0]), 32) if "bits" in table else rows.to(getattr(torch, table))
    expected = stored.dequantize() if "bits" in table else stored.float()
    part = Part("mote.embedding", [(1, T), stored], (1, T, 64), {"rotated": dims(0)}, torch.int64)
    for tokens in TOKENS:
        ids = torch.arange(tokens).mul(7).remainder(50)[None]
        assert torch.equal(run(part, tokens, ids), expected[ids])


@pytest.mark.parametrize("k", [64, 96, 576])
def test_embedding_of_rotated_rows(k, vulkan):
    stored = quantised(random(50, k), 8, 32)
    expected = inverse_hadamard(stored.dequantize())
    part = Part("mote.embedding", [(1, T), stored], (1, T, k), {"rotated": dims(1)}, torch.int64)
    for tokens in TOKENS:
        ids = torch.arange(tokens).mul(7).remainder(50)[None]
        assert_near(run(part, tokens, ids), expected[ids], 1e-6)


def test_norms(vulkan):
    weight, bias = random(99), random(99, seed=1)
    part = Part("mote.rms_norm", [(1, T, 99), weight], (1, T, 99), {"eps": numbers(1e-6), "unit_offset": dims(1)})
    bare = Part("mote.rms_norm", [(1, T, 99), None], (1, T, 99), {"eps": numbers(1e-6), "unit_offset": dims(0)})
    layer = Part("mote.layer_norm", [(1, T, 99), weight, bias], (1, T, 99), {"eps": numbers(1e-6)})
    for tokens in TOKENS:
        x = random(1, tokens, 99)
        assert_near(run(part, tokens, x), mote.rms_norm(x, weight, eps=1e-6, unit_offset=1))
        assert_near(run(bare, tokens, x), mote.rms_norm(x, None, eps=1e-6))
        assert_near(run(layer, tokens, x), mote.layer_norm(x, weight, bias, eps=1e-6))


@pytest.mark.parametrize("layout", attention.LAYOUTS)
@pytest.mark.parametrize("rotated", [16, 24])
def test_rope(layout, rotated, vulkan):
    part = Part("mote.rope", [(1, 3, T, 24), (1, T, rotated), (1, T, rotated)], (1, 3, T, 24), {"layout": layout})
    for tokens in TOKENS:
        x, cos, sin = random(1, 3, tokens, 24), random(1, tokens, rotated), random(1, tokens, rotated, seed=1)
        assert torch.equal(run(part, tokens, x, cos, sin), mote.rope(x, cos, sin, layout=layout))


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rope_tables_of_far_positions(layout, vulkan):
    """Angles of up to 10^5 radians, which a GPU's own sine would get wrong."""
    frequencies = 10000.0 ** -(torch.arange(16) / 16)
    attributes = {"scale": numbers(1.25), "layout": layout}
    for output in (0, 1):
        part = Part("mote.rope_table", [(1, T), frequencies], (1, T, 32), attributes, torch.int64)
        method = part.subgraph.method
        method.values.append(method.values[-1])
        both = [len(method.values) - 2, len(method.values) - 1]
        method.instructions[0].outputs[:] = both
        method.outputs[:] = [both[1 - output], both[output]]  # the last is the one that is compared
        for first in (0, 1000, 100_000):
            positions = first + torch.arange(7)[None]
            angles = (positions[..., None].float() * frequencies).double()
            exact = (angles.sin() if output else angles.cos()).float() * 1.25
            pairs = exact.repeat_interleave(2, -1) if layout == "interleaved" else exact.repeat(1, 1, 2)
            assert (run_last(part, 7, positions) - pairs).abs().max() < 4e-7


def run_last(part: Part, tokens: int, *inputs: torch.Tensor) -> torch.Tensor:
    """The last output of a part with several."""
    lowered = VulkanBackend().lower(part.subgraph)
    weights = [stored_weight(part.specs[i], part.stored[i]) for i in lowered.weights]
    values = part.subgraph.method.values
    shapes = [[size.at(tokens) for size in values[i].shape] for i in part.subgraph.method.outputs]
    return run_blob("vulkan", lowered, weights, tokens, inputs, shapes)[-1]


MOVES = {
    "aten.permute": ((1, T, 3, 8), (1, 3, T, 8), {"dims": dims(0, 2, 1, 3)}, lambda x: x.permute(0, 2, 1, 3)),
    "aten.view": ((1, T, 24), (1, T, 3, 8), {"size": dims(1, T, 3, 8)}, lambda x: x.view(1, -1, 3, 8)),
    "aten.slice": ((1, T, 24), (1, T, 6), {"dim": dims(2), "start": dims(5), "end": dims(16), "step": dims(2)},
                   lambda x: x[..., 5:16:2]),
    "aten.select": ((1, T, 3, 8), (1, T, 8), {"dim": dims(2), "index": dims(1)}, lambda x: x.select(2, 1)),
    "aten.expand": ((1, T, 1, 8), (1, T, 4, 8), {"size": dims(1, T, 4, 8)}, lambda x: x.expand(1, -1, 4, 8)),
    "aten.unsqueeze": ((T, 8), (T, 1, 8), {"dim": dims(1)}, lambda x: x.unsqueeze(1)),
    "aten.squeeze": ((1, T, 8), (T, 8), {"dims": dims(0)}, lambda x: x.squeeze(0)),
}  # fmt: skip


@pytest.mark.parametrize("op", MOVES)
def test_what_only_moves_elements(op, vulkan):
    shape, output, attributes, function = MOVES[op]
    part = Part(op, [shape], output, attributes)
    for tokens in TOKENS:
        x = random(*(size if isinstance(size, int) else size.at(tokens) for size in shape))
        assert torch.equal(run(part, tokens, x), function(x))


@pytest.mark.parametrize("axis", [1, 2])
def test_cat(axis, vulkan):
    sizes = [(1, T, 5), (1, T, 3)] if axis == 2 else [(1, T, 5), (1, 4, 5)]
    output = (1, T, 8) if axis == 2 else (1, T.__class__(1, 4), 5)
    part = Part("aten.cat", sizes, output, {"dim": dims(axis)})
    for tokens in TOKENS:
        parts = [
            random(*(s if isinstance(s, int) else s.at(tokens) for s in size), seed=i) for i, size in enumerate(sizes)
        ]
        assert torch.equal(run(part, tokens, *parts), torch.cat(parts, axis))


def names_of(enum: str) -> list[str]:
    body = re.search(rf"enum {enum} : \w+ {{(.*?)}}", SCHEMA, re.DOTALL)[1]
    return re.findall(r"^\s*(\w+)(?:\s*=\s*\d+)?,?", re.sub(r"//.*", "", body).replace(",", ",\n"), re.MULTILINE)


@pytest.mark.parametrize("enum", ["ValueKind", "Content", "Op"])
def test_enumerations_are_those_of_the_schema(enum):
    assert names_of(enum) == [member.name for member in getattr(blob, enum)]


def test_functions_and_gates_are_those_of_the_shaders():
    shader = (ROOT / "backends/vulkan/shaders/map.glsl").read_text()
    cases = {int(number): code for number, code in re.findall(r"case (\d+): return (.*?);", shader)}
    assert set(cases) == set(range(1, len(maps.FUNCTIONS)))
    plan = "".join(path.read_text() for path in sorted((ROOT / "backends/vulkan").glob("plan_*.cpp")))
    constants = {name: int(number) for name, number in re.findall(r"(k\w+) = (\d+)", plan)}
    shared = {name: int(number) for name, number in re.findall(r"(k\w+) = (\d+)", shader)}
    expected = {
        "kFirstBinary": maps.FUNCTIONS.index("add"), "kWhere": maps.FUNCTIONS.index("where"),
        "kFirstFill": maps.FUNCTIONS.index("fill"), "kSoftcap": maps.FUNCTIONS.index("softcap"),
    }  # fmt: skip
    assert expected.items() <= constants.items() and shared == expected
    assert constants["kFunctions"] == len(maps.FUNCTIONS)
    assert constants["kFirstGated"] == maps.FUNCTIONS.index(f"gated_{maps.GATED[0]}")
    assert constants["kGates"] == len(products.GATES)
    assert constants["kReductions"] == len(rows.REDUCTIONS)
    for gate in maps.GATED:
        given = f"{products.GATES.index(gate)}, x, z, float_at(24), float_at(25)"
        assert cases[maps.FUNCTIONS.index(f"gated_{gate}")] == f"F(gated({given}))"


def test_steps_of_chains_are_those_of_the_shader():
    shader = (ROOT / "backends/vulkan/shaders/chain_memories.glsl").read_text()
    plan = (ROOT / "backends/vulkan/plan_chains.cpp").read_text()
    steps = re.findall(r"Shader::(\w+)", re.search(r"kSteps\[\] = {(.*?)};", plan, re.DOTALL)[1])
    numbers_of_steps = {name: int(number) for name, number in re.findall(r"(k[A-Z]\w+) = (\d+)[,;]", shader)}
    assert [numbers_of_steps[f"k{name.capitalize()}"] for name in steps] == list(range(len(steps)))
    constants = {name: int(number) for name, number in re.findall(r"(k\w+) = (\d+)", plan)}
    for name in ("kStepWords", "kFirstPushed"):
        assert numbers_of_steps[name] == constants[name]
    assert len(re.findall(r"coherent buffer Memory\d+", shader)) == constants["kMemories"]
