from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from llm_export.passes.gated_linear import gated_linear
from llm_export.passes.linear import canonical_embedding, canonical_linear
from llm_export.passes.merge_linears import merge_linears
from llm_export.passes.remove_noops import remove_noops
from llm_export.passes.residual import fuse_residual
from llm_export.passes.simplify_views import simplify_views
from tests.llm_export.passes.graphs import Captured, module_of


def linear(out, inner=64, bias=False):
    return nn.Linear(inner, out, bias=bias)


def only_weight(captured):
    node = captured.editor().calls("mote.linear.default", "mote.gated_linear.default")[0]
    return captured.editor().weight(node.args[1])


def test_linear_with_bias():
    captured = Captured(module_of(lambda m, x, p: m.a(x), a=linear(32, bias=True)), activations="int8")
    captured.methods.programs["verify"] = canonical_linear(captured.methods.programs["verify"], captured.methods)
    assert captured.ops() == {"mote.linear": 1}
    assert captured.editor().calls("mote.linear.default")[0].kwargs["activations"] == "int8"


def test_conv1d_stores_its_weight_transposed():
    def forward(m, x, p):
        return torch.addmm(m.bias, x.view(-1, 64), m.weight).view(1, x.shape[1], 48)

    parts = {"weight": nn.Parameter(torch.empty(64, 48)), "bias": nn.Parameter(torch.empty(48))}
    captured = Captured(module_of(forward, **parts))
    assert captured.apply(canonical_linear, simplify_views) == {"mote.linear": 1}
    spec = only_weight(captured)
    assert (spec.sources, spec.shape, spec.transpose) == (("weight",), (48, 64), True)


def test_a_product_with_a_transposed_weight_is_a_linear():
    captured = Captured(module_of(lambda m, x, p: x @ m.weight.t(), weight=nn.Parameter(torch.empty(48, 64))))
    assert captured.apply(canonical_linear) == {"mote.linear": 1}
    assert only_weight(captured).transpose is False


def test_a_product_of_activations_stays():
    captured = Captured(module_of(lambda m, x, p: x @ x.transpose(1, 2)))
    assert "mote.linear" not in captured.apply(canonical_linear)


def test_embedding():
    table = nn.Embedding(100, 16, padding_idx=4)
    captured = Captured(module_of(lambda m, x, p: m.table(p), table=table))
    assert captured.apply(canonical_embedding) == {"mote.embedding": 1}


@pytest.mark.parametrize("bias", [False, True])
def test_linears_of_one_input_are_merged(bias):
    def forward(m, x, p):
        return torch.cat((m.q(x), m.k(x) * 2, m.v(x)), dim=-1)

    captured = Captured(module_of(forward, q=linear(64, bias=bias), k=linear(32, bias=bias), v=linear(16, bias=bias)))
    ops = captured.apply(canonical_linear, merge_linears)
    assert ops["mote.linear"] == 1 and ops["aten.slice"] == 3
    assert only_weight(captured).name == "q.weight+k.weight+v.weight" and only_weight(captured).shape == (112, 64)


def test_linears_of_different_formats_are_not_merged():
    captured = Captured(module_of(lambda m, x, p: m.a(x) + m.b(x), a=linear(32), b=linear(32)))
    captured.methods.weights["a.weight"] = replace(captured.methods.weights["a.weight"], group_size=32)
    assert captured.apply(canonical_linear, merge_linears)["mote.linear"] == 2


def test_a_bias_on_one_only_keeps_linears_apart():
    captured = Captured(module_of(lambda m, x, p: m.a(x) + m.b(x), a=linear(32, bias=True), b=linear(32)))
    assert captured.apply(canonical_linear, merge_linears)["mote.linear"] == 2


def test_a_weight_that_is_also_a_table_is_not_merged():
    def forward(m, x, p):
        return F.linear(x, m.tied.weight)[..., :32] + m.b(x) + m.tied(p)[..., :32]

    captured = Captured(module_of(forward, tied=nn.Embedding(100, 64), b=linear(32)))
    assert captured.apply(canonical_embedding, canonical_linear, merge_linears)["mote.linear"] == 2


@pytest.mark.parametrize("function", [F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.relu, torch.sigmoid])
def test_gate_and_up_are_one_op(function):
    captured = Captured(module_of(lambda m, x, p: function(m.gate(x)) * m.up(x), gate=linear(96), up=linear(96)))
    assert captured.apply(canonical_linear, gated_linear) == {"mote.gated_linear": 1}
    assert only_weight(captured).name == "gate.weight+up.weight"


@pytest.mark.parametrize("halve", [
    lambda y: y.chunk(2, dim=-1), lambda y: (y[..., :96], y[..., 96:]), lambda y: y.split(96, dim=-1),
])  # fmt: skip
def test_halves_of_one_linear_are_one_op(halve):
    def forward(m, x, p):
        gate, up = halve(m.both(x))
        return up * F.silu(gate)

    captured = Captured(module_of(forward, both=linear(192, bias=True)))
    assert captured.apply(canonical_linear, gated_linear) == {"mote.gated_linear": 1}


def test_swapped_halves_stay():
    def forward(m, x, p):
        up, gate = m.both(x).chunk(2, dim=-1)
        return up * F.silu(gate)

    ops = Captured(module_of(forward, both=linear(192))).apply(canonical_linear, gated_linear)
    assert ops["mote.linear"] == 1 and "mote.gated_linear" not in ops


def test_a_gate_that_is_used_twice_stays():
    def forward(m, x, p):
        gate = m.gate(x)
        return F.silu(gate) * m.up(x) + gate

    ops = Captured(module_of(forward, gate=linear(96), up=linear(96))).apply(canonical_linear, gated_linear)
    assert "mote.gated_linear" not in ops


def test_residual_is_part_of_the_linear():
    captured = Captured(module_of(lambda m, x, p: x + m.a(x.sin()), a=linear(64, bias=True)))
    assert captured.apply(canonical_linear, fuse_residual) == {"aten.sin": 1, "mote.linear": 1}


def test_of_two_linears_the_later_takes_the_other():
    captured = Captured(module_of(lambda m, x, p: m.a(x) + m.b(x.sin()) + x, a=linear(64), b=linear(64)))
    assert captured.apply(canonical_linear, fuse_residual) == {"aten.sin": 1, "mote.linear": 2, "aten.add": 1}


def test_a_linear_that_is_used_twice_keeps_its_sum():
    def forward(m, x, p):
        y = m.a(x)
        return x + y + y.sin()

    assert Captured(module_of(forward, a=linear(64))).apply(canonical_linear, fuse_residual)["aten.add"] == 2


def test_a_broadcast_sum_is_no_residual():
    captured = Captured(module_of(lambda m, x, p: m.a(x) + m.bias, a=linear(64), bias=nn.Parameter(torch.empty(64))))
    assert captured.apply(canonical_linear, fuse_residual)["aten.add"] == 1


def test_noops_are_removed():
    def forward(m, x, p):
        y = (x * 1.0 + 0).to(torch.float32).detach().clone()[:, :, :]
        return torch.cat((y.expand(1, -1, -1), y[..., 64:]), dim=-1).sin()

    assert Captured(module_of(forward)).apply(remove_noops) == {"aten.sin": 1}
