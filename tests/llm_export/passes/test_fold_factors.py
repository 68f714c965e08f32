import torch
from torch import nn

from llm_export.passes.fold_factors import fold_factors
from llm_export.passes.fold_functions import fold_functions
from llm_export.passes.gated_linear import gated_linear
from llm_export.passes.linear import canonical_linear
from llm_export.passes.merge_linears import merge_linears
from llm_export.passes.residual import fuse_residual
from tests.llm_export.passes.graphs import Captured, module_of


def linear(out, inner=64, bias=False):
    return nn.Linear(inner, out, bias=bias)


def test_a_factor_of_the_result_scales_weight_and_bias():
    captured = Captured(module_of(lambda m, x, p: x + m.a(x) * 0.22, a=linear(64, bias=True)))
    assert captured.apply(canonical_linear, fold_factors, fuse_residual) == {"mote.linear": 1}
    specs = [captured.editor().weight(node) for node in captured.editor().calls("mote.linear.default")[0].args[1:3]]
    assert [spec.name for spec in specs] == ["a.weight*0.22", "a.bias*0.22"]


def test_factors_behind_views_and_in_front_of_several_linears_meet():
    def forward(m, x, p):
        x = x * 1.25
        return torch.cat([m.a(x).view(1, -1, 4, 8).transpose(1, 2) * 0.5, m.b(x).view(1, -1, 4, 8).transpose(1, 2)])

    captured = Captured(module_of(forward, a=linear(32), b=linear(32, bias=True)))
    ops = captured.apply(canonical_linear, fold_factors)
    assert (ops["mote.linear"], ops["aten.mul"]) == (2, 0)
    factors = {spec.name: spec.factors for spec in captured.methods.weights.values() if spec.factors}
    assert factors["a.weight*0.625"] == (0.625,) and factors["b.weight*1.25"] == (1.25,)


def test_linears_with_and_without_factors_are_merged():
    captured = Captured(module_of(lambda m, x, p: torch.cat([m.a(x) * 0.5, m.b(x)], -1), a=linear(32), b=linear(16)))
    assert captured.apply(canonical_linear, fold_factors, merge_linears)["mote.linear"] == 1
    (spec,) = [spec for spec in captured.methods.weights.values() if len(spec.sources) == 2]
    assert (spec.factors, spec.source_rows) == ((0.5, 1.0), (32, 16))


def test_a_gate_with_a_factor_is_one_op():
    def forward(m, x, p):
        return m.up(x) * torch.nn.functional.silu(m.gate(x) * 0.8)

    captured = Captured(module_of(forward, up=linear(32), gate=linear(32)))
    assert captured.apply(canonical_linear, fold_factors, gated_linear)["mote.gated_linear"] == 1


def test_factors_that_weights_cannot_take_stay():
    def forward(m, x, p):
        shared = m.shared(x)
        twice = m.twice(m.twice(x) * 0.5)
        logits = m.logits(torch.cat([twice, x], -1))[..., :64] * 0.5
        return torch.cat([shared * 0.5, shared, m.negative(x) * -0.5, logits], -1)

    parts = {"shared": linear(64), "twice": linear(64), "negative": linear(64), "logits": linear(96, 128)}
    captured = Captured(module_of(forward, **parts))
    assert captured.apply(canonical_linear, fold_factors)["aten.mul"] == 4
    # Other methods may share what gives the logits.
    captured = Captured(module_of(lambda m, x, p: torch.tanh(m.a(x) * 0.5) * 3.0, a=linear(32)))
    assert captured.apply(canonical_linear, fold_factors)["aten.mul"] == 2


def test_weights_of_fewer_bits_take_powers_of_two_only():
    for factor, num_left in ((0.25, 0), (0.22, 1)):
        captured = Captured(module_of(lambda m, x, p, by=factor: x + m.a(x) * by, a=linear(64)))
        name, spec = next(iter(captured.methods.weights.items()))
        captured.methods.weights[name] = type(spec)(spec.sources, spec.shape, torch.bfloat16)
        assert captured.apply(canonical_linear, fold_factors)["aten.mul"] == num_left


def test_functions_of_weights_are_computed_at_export():
    def forward(m, x, p):
        return x * -torch.exp(m.log.float())

    captured = Captured(module_of(forward, log=nn.Parameter(torch.empty(64))))
    assert captured.apply(fold_functions) == {"aten.mul": 1}
    (spec,) = [spec for spec in captured.methods.weights.values() if spec.functions == ("exp", "neg")]
    assert spec.name == "neg(exp(log))"
