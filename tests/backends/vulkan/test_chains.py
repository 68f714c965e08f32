"""Ops that are drawn together into one dispatch, against eager PyTorch and against themselves as dispatches."""

from __future__ import annotations

import pytest
import torch

from backends.vulkan.lowering import VulkanBackend
from llm_export.program.instructions import Instruction, Value
from tests.backends.parts import (
    TOKENS,
    Part,
    T,
    Typed,
    assert_near,
    dims,
    linear_attributes,
    numbers,
    quantised,
    random,
)
from tests.backends.vulkan.products import int8_product

EXPERTS, GROUPS, CHOSEN, MANY = 64, 8, 6, 257  # tokens of which each op is a dispatch
CHOOSE = {"dim": dims(1), "largest": dims(1)}


class Ops(Part):
    """Several instructions, each of what those before it made."""

    def __init__(self, *operands):
        super().__init__("aten.relu", operands, (T, EXPERTS))
        method = self.subgraph.method
        method.instructions.clear()
        method.outputs.clear()

    def add(self, op: str, inputs, shape, attributes=None, dtype=torch.float32) -> int:
        return self.add_all(op, inputs, [Typed(shape, dtype)], attributes)[0]

    def add_all(self, op: str, inputs, outputs, attributes=None) -> list[int]:
        method = self.subgraph.method
        made = list(range(len(method.values), len(method.values) + len(outputs)))
        method.values += [Value("activation", each.dtype, dims(*each.shape)) for each in outputs]
        method.instructions.append(Instruction(op, list(inputs), made, dict(attributes or {})))
        return made

    def top(self, x: int, count: int) -> list[int]:
        outputs = [Typed((T, count), torch.float32), Typed((T, count), torch.int64)]
        return self.add_all("aten.topk", [x], outputs, {"k": dims(count), **CHOOSE})


def router() -> Ops:
    """Experts of the better half of the groups, and their weights."""
    ops = Ops((T, EXPERTS), random(EXPERTS, seed=3))
    rows = (T, EXPERTS)
    scores = ops.add("aten.sigmoid", [0], rows)
    biased = ops.add("aten.add", [scores, 1], rows)
    in_groups = ops.add("aten.view", [biased], (T, GROUPS, 8), {"size": dims(T, GROUPS, 8)})
    best = ops.add("aten.amax", [in_groups], (T, GROUPS), {"dims": dims(2), "keepdim": dims(0)})
    _, groups = ops.top(best, GROUPS // 2)
    none = ops.add("aten.full", [], (T, GROUPS), {"value": numbers(0.0)})
    one = ops.add("aten.full", [], (T, GROUPS // 2), {"value": numbers(1.0)})
    mask = ops.add("aten.scatter", [none, groups, one], (T, GROUPS), {"dim": dims(1)})
    mask = ops.add("aten.unsqueeze", [mask], (T, GROUPS, 1), {"dim": dims(2)})
    mask = ops.add("aten.expand", [mask], (T, GROUPS, 8), {"size": dims(T, GROUPS, 8)})
    kept = ops.add("aten.mul", [in_groups, mask], (T, GROUPS, 8))
    kept = ops.add("aten.view", [kept], rows, {"size": dims(T, EXPERTS)})
    _, chosen = ops.top(kept, CHOSEN)
    weights = ops.add("aten.gather", [scores, chosen], (T, CHOSEN), {"dim": dims(1)})
    total = ops.add("aten.sum", [weights], (T, 1), {"dims": dims(1), "keepdim": dims(1)})
    shares = ops.add("aten.div", [weights, total], (T, CHOSEN))
    ops.subgraph.method.outputs += [chosen, ops.add("aten.softmax", [shares], (T, CHOSEN), {"dim": dims(1)})]
    return ops


def expected(x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scores = x.sigmoid()
    in_groups = (scores + bias).view(-1, GROUPS, 8)
    groups = in_groups.amax(2).topk(GROUPS // 2).indices
    mask = torch.zeros(len(x), GROUPS).scatter(1, groups, 1.0)
    chosen = (in_groups * mask[..., None]).view(-1, EXPERTS).topk(CHOSEN).indices
    weights = scores.gather(1, chosen)
    return chosen, (weights / weights.sum(1, keepdim=True)).softmax(1)


def test_a_router_of_steps_is_that_of_dispatches_to_the_bit(vulkan):
    ops, x = router(), random(MANY, EXPERTS)
    alone = ops.run_all(VulkanBackend(), MANY, (x,))
    for tokens in (*TOKENS, MANY):
        chosen, weights = ops.run_all(VulkanBackend(), tokens, (x[:tokens],))
        assert torch.equal(chosen, alone[0][:tokens]) and torch.equal(weights, alone[1][:tokens])
        right = expected(x[:tokens], ops.stored[0])
        assert torch.equal(chosen, right[0])
        assert_near(weights, right[1], 1e-5)


@pytest.mark.parametrize("width", [24, 1000, 8000])
def test_functions_of_the_same_elements_and_of_others(width, vulkan):
    """Steps that go along each other in many workgroups, and others beside them."""
    ops = Ops((T, width), (T, width), (T, width // 2))
    sigmoid = ops.add("aten.sigmoid", [0], (T, width))
    product = ops.add("aten.mul", [sigmoid, 1], (T, width))
    negative = ops.add("aten.neg", [2], (T, width // 2))
    doubled = ops.add("aten.add", [product, product], (T, width))
    turned = ops.add("aten.cat", [negative, negative], (T, width), {"dim": dims(1)})
    ops.subgraph.method.outputs += [negative, ops.add("aten.sub", [doubled, turned], (T, width))]
    for tokens in TOKENS:
        a, b, c = (random(tokens, size, seed=i) for i, size in enumerate((width, width, width // 2)))
        negated, made = ops.run_all(VulkanBackend(), tokens, (a, b, c))
        assert torch.equal(negated, -c)
        assert_near(made, 2 * a.sigmoid() * b - torch.cat([-c, -c], 1), 1e-5)


def test_rows_that_are_normed_for_others_and_rounded_by_one_dispatch(vulkan):
    """As in front of experts; for one token, by what makes the rows."""
    n, k = 33, 96
    weight, norm_weight = quantised(random(n, k), 4, 32), random(k, seed=1)
    norm = {"eps": numbers(1e-6), "unit_offset": dims(1)}
    alone = Part("mote.rms_norm", [(1, T, k), norm_weight], (1, T, k), norm)
    ops = Ops((1, T, k), random(k, k, seed=2), norm_weight, weight)
    rows = ops.add("mote.linear", [0, 1, -1, -1, -1], (1, T, k), linear_attributes("float"))
    normed = ops.add("mote.rms_norm", [rows, 2], (1, T, k), norm)
    made = ops.add("mote.linear", [normed, 3, -1, -1, -1], (1, T, n), linear_attributes("int8"))
    ops.subgraph.method.outputs += [rows, normed, made]
    for tokens in TOKENS:
        rows, normed, made = ops.run_all(VulkanBackend(), tokens, [random(1, tokens, k)])
        assert torch.equal(normed, alone.run(VulkanBackend(), tokens, [rows]))
        assert torch.equal(made, int8_product(normed, weight, torch.zeros(n), torch.zeros(1, tokens, n)))


@pytest.mark.parametrize("width", [96, 4096])
def test_rows_that_functions_make_are_rounded_by_the_last_workgroup(width, vulkan):
    """For one token; a sum of two is exact wherever it is computed."""
    n = 33
    weight = quantised(random(n, width), 4, 32)
    ops = Ops((1, T, width), (1, T, width), weight)
    rows = ops.add("aten.add", [0, 1], (1, T, width))
    made = ops.add("mote.linear", [rows, 2, -1, -1, -1], (1, T, n), linear_attributes("int8"))
    ops.subgraph.method.outputs += [rows, made]
    for tokens in (1, 2):
        a, b = random(1, tokens, width), random(1, tokens, width, seed=1)
        rows, made = ops.run_all(VulkanBackend(), tokens, [a, b])
        assert torch.equal(rows, a + b)
        assert torch.equal(made, int8_product(a + b, weight, torch.zeros(n), torch.zeros(1, tokens, n)))


def test_what_follows_a_product_is_done_by_its_last_workgroup_to_the_bit(vulkan):
    k = 96
    ops = Ops((1, T, k), random(EXPERTS, k, seed=2), random(EXPERTS, seed=3))
    scores = ops.add("mote.linear", [0, 1, -1, -1, -1], (1, T, EXPERTS), linear_attributes("float"))
    scores = ops.add("aten.view", [scores], (T, EXPERTS), {"size": dims(T, EXPERTS)})
    biased = ops.add("aten.add", [scores, 2], (T, EXPERTS))
    shares, chosen = ops.top(biased, CHOSEN)
    ops.subgraph.method.outputs += [chosen, ops.add("aten.softmax", [shares], (T, CHOSEN), {"dim": dims(1)})]
    x = random(1, MANY, k)
    alone = ops.run_all(VulkanBackend(), MANY, (x,))
    for tokens in TOKENS:
        made = ops.run_all(VulkanBackend(), tokens, (x[:, :tokens],))
        assert all(torch.equal(one, other[:tokens]) for one, other in zip(made, alone, strict=True))
    best = (x[0] @ ops.stored[0].T + ops.stored[1]).topk(CHOSEN)
    assert_near(alone[1], best.values.softmax(1), 1e-5)
