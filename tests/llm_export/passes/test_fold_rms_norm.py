import pytest
import torch
from torch import nn
from torch.nn import functional as F

from llm_export.passes.fold_rms_norm import fold_rms_norm
from llm_export.passes.fuse_rms_norm import fuse_rms_norm
from llm_export.passes.gated_linear import gated_linear
from llm_export.passes.linear import canonical_linear
from llm_export.passes.merge_linears import merge_linears
from llm_export.passes.residual import fuse_residual
from tests.llm_export.passes.graphs import Captured, module_of

PASSES = (canonical_linear, fuse_rms_norm, gated_linear, merge_linears, fuse_residual, fold_rms_norm)


def linear(out, bias=False):
    return nn.Linear(64, out, bias=bias)


def norm(m, x):
    return F.rms_norm(x, (64,), m.weight, 1e-3)


def module(forward, **parts):
    return Captured(module_of(forward, weight=nn.Parameter(torch.empty(64)), **parts))


def only_linear(captured):
    (node,) = captured.editor().calls("mote.linear.default", "mote.gated_linear.default")
    return node


@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_takes_its_norm(bias):
    captured = module(lambda m, x, p: m.a(norm(m, x)), a=linear(32, bias))
    assert captured.apply(*PASSES) == {"mote.linear": 1}
    node = only_linear(captured)
    assert captured.editor().weight_name(node.args[4]) == "weight"
    assert (node.kwargs["norm"], node.kwargs["norm_unit_offset"]) == ("rms", 0)
    assert node.kwargs["norm_eps"] == pytest.approx(1e-3)


def test_the_offset_of_a_norm_goes_with_it():
    def forward(m, x, p):
        return m.a(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * (1 + m.weight))

    captured = module(forward, a=linear(32))
    assert captured.apply(*PASSES) == {"mote.linear": 1}
    assert only_linear(captured).kwargs["norm_unit_offset"] == 1


def test_a_norm_without_weight():
    captured = module(lambda m, x, p: m.a(F.rms_norm(x, (64,), None, 1e-3)), a=linear(32))
    assert captured.apply(*PASSES) == {"mote.linear": 1}
    assert only_linear(captured).args[4] is None


def test_merged_linears_take_their_norm():
    def forward(m, x, p):
        y = norm(m, x)
        return torch.cat((m.q(y), m.k(y)), dim=-1)

    ops = module(forward, q=linear(32), k=linear(16)).apply(*PASSES)
    assert ops["mote.linear"] == 1 and "mote.rms_norm" not in ops


def test_a_gated_linear_takes_its_norm():
    def forward(m, x, p):
        y = norm(m, x)
        return F.silu(m.gate(y)) * m.up(y)

    captured = module(forward, gate=linear(96), up=linear(96))
    assert captured.apply(*PASSES) == {"mote.gated_linear": 1}
    assert captured.editor().weight_name(only_linear(captured).args[3]) == "weight"


def test_the_input_of_the_norm_may_be_the_residual():
    captured = module(lambda m, x, p: x + m.a(norm(m, x)), a=linear(64))
    assert captured.apply(*PASSES) == {"mote.linear": 1}


@pytest.mark.parametrize("forward", [
    lambda m, x, p: m.a(norm(m, x).sin()),
    lambda m, x, p: norm(m, m.a(x)),
])  # fmt: skip
def test_other_norms_stay(forward):
    captured = module(forward, a=linear(64))
    ops = captured.apply(*PASSES)
    assert ops["mote.rms_norm"] >= 1
    assert only_linear(captured).kwargs.get("norm", "none") == "none"


def test_a_norm_that_something_else_reads_stays():
    def forward(m, x, p):
        y = norm(m, x)
        return m.a(y) * y.sin()

    ops = module(forward, a=linear(64)).apply(*PASSES)
    assert (ops["mote.rms_norm"], ops["mote.linear"]) == (1, 1)


def test_a_norm_that_is_also_the_residual_stays():
    def forward(m, x, p):
        y = norm(m, x)
        return y + m.a(y)

    assert module(forward, a=linear(64)).apply(*PASSES) == {"mote.rms_norm": 1, "mote.linear": 1}


def test_linears_of_different_formats_share_the_norm_as_it_is():
    def forward(m, x, p):
        y = norm(m, x)
        return torch.cat((m.a(y), m.b(y)), dim=-1)

    captured = module(forward, a=linear(32), b=linear(32, bias=True))
    ops = captured.apply(*PASSES)
    assert (ops["mote.rms_norm"], ops["mote.linear"]) == (1, 2)
