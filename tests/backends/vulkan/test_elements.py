"""Functions of elements and what picks them on a GPU, against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from backends.vulkan import elements, maps, views
from backends.vulkan.graph_builder import CONTENTS
from backends.vulkan.lowering import VulkanBackend
from tests.backends.parts import TOKENS, Part, T, Typed, assert_near, dims, numbers, random

SHORT = (1, 7)  # for functions that one shader computes whatever the call
OF_POSITIVE = ("log", "log2", "sqrt", "rsqrt")
EAGER = {
    "sigmoid": torch.sigmoid, "silu": torch.nn.functional.silu, "relu": torch.relu, "gelu": torch.nn.functional.gelu,
    "softplus": torch.nn.functional.softplus, "elu": torch.nn.functional.elu,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "log1p": lambda x: torch.log1p(x.abs()),
}  # fmt: skip
OF_FLOATS = [name for name in elements.UNARY if name not in ("clamp", "isnan", "logical_not", "bitwise_not", "log1p")]


def run(part: Part, tokens: int, *inputs: torch.Tensor) -> torch.Tensor:
    return part.run(VulkanBackend(), tokens, inputs)


def integers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(-9, 10, shape, generator=torch.Generator().manual_seed(seed))


def conditions(*shape: int, seed: int = 0) -> torch.Tensor:
    return integers(*shape, seed=seed) > 0


def assert_equal(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.dtype == expected.dtype and torch.equal(actual, expected)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_unary(name, vulkan):
    part = Part(f"aten.{name}", [(T, 13)], (T, 13))
    for tokens in TOKENS:
        x = random(tokens, 13).abs() + 0.1 if name in OF_POSITIVE else 3 * random(tokens, 13)
        assert_near(run(part, tokens, x), EAGER.get(name, getattr(torch, name, None))(x))


@pytest.mark.parametrize("name", ["expm1", "log1p", "erf"])
def test_near_zero_digits_stay(name, vulkan):
    part = Part(f"aten.{name}", [(T, 13)], (T, 13))
    for size in (1e-7, 1e-4, 1e-2, 0.2):
        x = size * random(7, 13)
        assert ((run(part, 7, x) / getattr(torch, name)(x)).nan_to_num(1.0) - 1).abs().max() < 1e-5


def test_gelu_by_tanh(vulkan):
    part = Part("aten.gelu", [(T, 13)], (T, 13), {"approximate": "tanh"})
    x = random(7, 13)
    assert_near(run(part, 7, x), torch.nn.functional.gelu(x, approximate="tanh"))


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.25), (None, 0.25), (-0.5, None)])
def test_clamp(low, high, vulkan):
    bounds = {name: numbers(bound) for name, bound in (("min", low), ("max", high)) if bound is not None}
    part = Part("aten.clamp", [(T, 13)], (T, 13), bounds)
    for tokens in SHORT:
        assert torch.equal(run(part, tokens, x := random(tokens, 13)), x.clamp(low, high))


@pytest.mark.parametrize("name", maps.FLOAT_BINARY)
def test_binary(name, vulkan):
    both = Part(f"aten.{name}", [(1, T, 13), (1, T, 13)], (1, T, 13))
    column = Part(f"aten.{name}", [(1, T, 13), (1, T, 1)], (1, T, 13))
    vector = Part(f"aten.{name}", [(1, T, 13), random(13)], (1, T, 13))
    scalar = Part(f"aten.{name}", [(1, T, 13), 1.5], (1, T, 13))
    function = getattr(torch, name)

    def check(part: Part, x: torch.Tensor, y: torch.Tensor, *inputs: torch.Tensor) -> None:
        actual, expected = run(part, x.shape[1], *inputs), function(x, y)
        if name in maps.FLOAT_BINARY[:6]:
            assert torch.equal(actual, expected)
        elif name != "pow":  # a quotient's last bit decides
            near = (actual - expected).abs() <= 1e-5 * (1 + expected.abs())
            assert near.float().mean() > 0.99
        else:
            assert torch.equal(actual.isnan(), expected.isnan())
            assert torch.allclose(actual.nan_to_num(), expected.nan_to_num(), rtol=1e-4)

    for tokens in TOKENS if name in maps.FLOAT_BINARY[:6] else SHORT:
        x, y, z = random(1, tokens, 13), random(1, tokens, 13, seed=1), random(1, tokens, 1, seed=2)
        check(both, x, y, x, y)
        check(column, x, z, x, z)
        check(vector, x, random(13), x)
        check(scalar, x, torch.tensor(1.5), x)


def test_powers_of_negative_numbers(vulkan):
    for power in (2.0, 3.0, 0.0, 1.0, -2.0, 0.5):
        part = Part("aten.pow", [(T, 13), power], (T, 13))
        x = random(7, 13)
        actual, expected = run(part, 7, x), x.pow(power)
        assert torch.equal(actual.isnan(), expected.isnan())
        assert torch.allclose(actual.nan_to_num(), expected.nan_to_num(), rtol=1e-4)


@pytest.mark.parametrize("name", maps.COMPARISONS)
def test_comparisons(name, vulkan):
    floats = Part(f"aten.{name}", [(T, 13), 0.5], Typed((T, 13), torch.bool))
    whole = Part(f"aten.{name}", [Typed((T, 13), torch.int64), torch.tensor(3)], Typed((T, 13), torch.bool))
    for tokens in SHORT:
        x = random(tokens, 13).mul(4).round() / 4
        assert_equal(run(floats, tokens, x), getattr(torch, name)(x, torch.tensor(0.5)))
        assert_equal(run(whole, tokens, i := integers(tokens, 13)), getattr(torch, name)(i, 3))


@pytest.mark.parametrize("name", maps.INT_BINARY)
def test_integers(name, vulkan):
    part = Part(f"aten.{name}", [(T, 13), torch.tensor(4)], Typed((T, 13), torch.int64), dtype=torch.int64)
    both = Part(f"aten.{name}", [(T, 13), (T, 13)], Typed((T, 13), torch.int64), dtype=torch.int64)
    function = getattr(torch, name)
    for tokens in SHORT:
        x, y = integers(tokens, 13), integers(tokens, 13, seed=1)
        y[y == 0] = 5
        assert_equal(run(part, tokens, x), function(x, torch.tensor(4)))
        assert_equal(run(both, tokens, x, y), function(x, y))


@pytest.mark.parametrize("name", [*maps.LOGICAL, *elements.BITWISE])
def test_conditions(name, vulkan):
    part = Part(f"aten.{name}", [(T, 13), (1, 13)], Typed((T, 13), torch.bool), dtype=torch.bool)
    for tokens in SHORT:
        x, y = conditions(tokens, 13), conditions(1, 13, seed=1)
        assert_equal(run(part, tokens, x, y), getattr(torch, name)(x, y))


@pytest.mark.parametrize("name", ["logical_not", "bitwise_not"])
def test_negated_conditions(name, vulkan):
    part = Part(f"aten.{name}", [(T, 13)], Typed((T, 13), torch.bool), dtype=torch.bool)
    for tokens in SHORT:
        assert_equal(run(part, tokens, x := conditions(tokens, 13)), ~x)


def test_what_is_no_number(vulkan):
    part = Part("aten.isnan", [(T, 3)], Typed((T, 3), torch.bool))
    x = torch.tensor([[0.0, float("nan"), float("inf")]] * 7)
    assert_equal(run(part, 7, x), x.isnan())


DTYPES = {torch.float32: random, torch.int64: integers, torch.bool: conditions}


@pytest.mark.parametrize("made", DTYPES, ids=str)
@pytest.mark.parametrize("given", DTYPES, ids=str)
def test_casts(given, made, vulkan):
    assert given is made or (CONTENTS[given], CONTENTS[made]) in views.CASTS
    part = Part("aten._to_copy", [(T, 13)], Typed((T, 13), made), dtype=given)
    for tokens in SHORT:
        x = DTYPES[given](tokens, 13)
        if given is torch.float32:
            x = 3 * x * conditions(tokens, 13)
        assert_equal(run(part, tokens, x), x.to(made))


def test_integers_that_do_not_fit_32_bits_are_the_nearest_that_do(vulkan):
    part = Part("aten.add", [(T,), torch.tensor(0)], Typed((T,), torch.int64), dtype=torch.int64)
    x = torch.tensor([2**31 - 1, 2**31, -(2**40), -(2**31), 2**62])
    assert run(part, 5, x).tolist() == [2**31 - 1, 2**31 - 1, -(2**31), -(2**31), 2**31 - 1]


def test_where(vulkan):
    floats = Part("aten.where", [Typed((T, 13), torch.bool), (T, 13), 0.0], (T, 13))
    whole = Part("aten.where", [torch.arange(13) % 3 == 0, Typed((T, 13), torch.int64), torch.tensor(-7)],
                 Typed((T, 13), torch.int64))  # fmt: skip
    for tokens in SHORT:
        condition, x, i = conditions(tokens, 13), random(tokens, 13), integers(tokens, 13)
        assert_equal(run(floats, tokens, condition, x), torch.where(condition, x, 0.0))
        assert_equal(run(whole, tokens, i), torch.where(torch.arange(13) % 3 == 0, i, -7))


@pytest.mark.parametrize(("dtype", "value"), [(torch.float32, -0.25), (torch.int64, 17), (torch.bool, 1)], ids=str)
def test_full(dtype, value, vulkan):
    part = Part("aten.add" if dtype is not torch.bool else "aten.logical_and", [(T, 3), (T, 3)], Typed((T, 3), dtype),
                dtype=dtype)  # fmt: skip
    method = part.subgraph.method
    method.values[1].kind = "activation"
    method.inputs.remove(1)
    fill = method.instructions[0].__class__("aten.full", [], [1], {"size": dims(T, 3), "value": numbers(value)})
    method.instructions.insert(0, fill)
    for tokens in SHORT:
        x = DTYPES[dtype](tokens, 3)
        expected = x & True if dtype is torch.bool else x + value
        assert_equal(run(part, tokens, x), expected)


def test_cat_of_integers(vulkan):
    part = Part("aten.cat", [(T, 5), (T, 3)], Typed((T, 8), torch.int64), {"dim": dims(1)}, torch.int64)
    for tokens in SHORT:
        x, y = integers(tokens, 5), integers(tokens, 3, seed=1)
        assert_equal(run(part, tokens, x, y), torch.cat((x, y), 1))


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_repeat_interleave(axis, vulkan):
    shape, made = [1, T, 2, 4], [1, T, 2, 4]
    made[axis] = T.__class__(3, 0) if axis == 1 else 3 * made[axis]
    part = Part("aten.repeat_interleave", [tuple(shape)], tuple(made), {"repeats": dims(3), "dim": dims(axis)})
    for tokens in SHORT:
        x = random(1, tokens, 2, 4)
        assert torch.equal(run(part, tokens, x), x.repeat_interleave(3, axis))


@pytest.mark.parametrize("axis", [1, 2])
def test_gather(axis, vulkan):
    part = Part("aten.gather", [(1, T, 9), Typed((1, T, 5), torch.int64)], (1, T, 5), {"dim": dims(axis)})
    for tokens in TOKENS[:4]:
        x, index = random(1, tokens, 9), integers(1, tokens, 5).abs().remainder(9 if axis == 2 else tokens)
        assert torch.equal(run(part, tokens, x, index), x.gather(axis, index))


def test_gather_from_a_weight(vulkan):
    table = random(1, 20, 5)
    part = Part("aten.gather", [table, Typed((1, T, 5), torch.int64)], (1, T, 5), {"dim": dims(1)})
    for tokens in TOKENS[:4]:
        index = torch.arange(tokens).mul(3).remainder(20)[None, :, None].expand(1, tokens, 5)
        assert torch.equal(run(part, tokens, index), table.gather(1, index))


def test_index_select(vulkan):
    table, columns = random(20, 5), torch.tensor([3, -1, 0, 3])
    of_rows = Part("aten.index_select", [table, Typed((T,), torch.int64)], (T, 5), {"dim": dims(0)})
    of_columns = Part("aten.index_select", [(1, T, 5), columns], (1, T, 4), {"dim": dims(2)})
    for tokens in TOKENS[:4]:
        index, x = torch.arange(tokens).mul(3).remainder(20), random(1, tokens, 5)
        assert torch.equal(run(of_rows, tokens, index), table[index])
        assert torch.equal(run(of_columns, tokens, x), x[..., columns])


def test_places_beyond_an_axis_are_no_numbers(vulkan):
    part = Part("aten.index_select", [random(20, 5), Typed((T,), torch.int64)], (T, 5), {"dim": dims(0)})
    assert run(part, 3, torch.tensor([19, 20, -21])).isnan().any(1).tolist() == [False, True, True]


@pytest.mark.parametrize("axis", [0, 1])
def test_scatter(axis, vulkan):
    part = Part("aten.scatter", [(T, 9), Typed((T, 4), torch.int64), (T, 4)], (T, 9), {"dim": dims(axis)})
    for tokens in TOKENS[:4]:
        x, y = random(tokens, 9), random(tokens, 4, seed=1)
        index = integers(tokens, 4).abs().remainder(9 if axis else tokens)
        expected = x.clone()
        for i in range(tokens):
            for j in range(4):
                expected[(i, index[i, j]) if axis else (index[i, j], j)] = y[i, j]
        assert torch.equal(run(part, tokens, x, index, y), expected)


def test_products_of_activations(vulkan):
    part = Part("aten.bmm", [(2, T, 5, 7), (2, T, 7, 3)], (2, T, 5, 3))
    by_rows = Part("aten.bmm", [(3, T, 9), (3, 9, 5)], (3, T, 5))
    for tokens in TOKENS[:4]:
        a, b = random(2, tokens, 5, 7), random(2, tokens, 7, 3, seed=1)
        assert_near(run(part, tokens, a, b), a @ b)
        c, d = random(3, tokens, 9), random(3, 9, 5, seed=1)
        assert_near(run(by_rows, tokens, c, d), c @ d)
