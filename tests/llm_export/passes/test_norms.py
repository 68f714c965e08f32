import pytest
import torch
from torch import nn
from torch.nn import functional as F

from llm_export.passes.fuse_layer_norm import fuse_layer_norm
from llm_export.passes.fuse_rms_norm import fuse_rms_norm
from llm_export.passes.remove_noops import remove_noops
from tests.llm_export.passes.graphs import Captured, module_of

WEIGHT = {"weight": nn.Parameter(torch.empty(64))}


def normed(x, eps=1e-5):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


RMS_NORMS = {
    "weight first": (lambda m, x, p: m.weight * normed(x), 0),
    "weight last": (lambda m, x, p: normed(x) * m.weight, 0),
    "casts": (lambda m, x, p: m.weight * normed(x.float()).to(x.dtype).to(torch.float32), 0),
    "one plus weight": (lambda m, x, p: normed(x.float()) * (1.0 + m.weight.float()), 1),
    "weight plus one": (lambda m, x, p: (m.weight + 1) * normed(x), 1),
    "square by product": (lambda m, x, p: m.weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)), 0),
    "division": (lambda m, x, p: m.weight * (x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)), 0),
    "pow": (lambda m, x, p: m.weight * (x * torch.pow(x.pow(2).mean(-1, keepdim=True) + 1e-5, -0.5)), 0),
    "torch op": (lambda m, x, p: F.rms_norm(x, (64,), m.weight, 1e-5), 0),
}


@pytest.mark.parametrize("name", RMS_NORMS)
def test_rms_norm_is_one_op(name):
    forward, offset = RMS_NORMS[name]
    captured = Captured(module_of(forward, **WEIGHT))
    assert captured.apply(remove_noops, fuse_rms_norm) == {"mote.rms_norm": 1}
    norm = captured.editor().calls("mote.rms_norm.default")[0]
    assert norm.kwargs["eps"] == pytest.approx(1e-5) and norm.kwargs.get("unit_offset", 0) == offset


def test_weightless_rms_norm():
    captured = Captured(module_of(lambda m, x, p: normed(x)))
    assert captured.apply(fuse_rms_norm) == {"mote.rms_norm": 1}
    assert captured.editor().calls("mote.rms_norm.default")[0].args[1] is None


def test_per_head_rms_norm():
    captured = Captured(module_of(lambda m, x, p: m.weight * normed(x), weight=nn.Parameter(torch.empty(16))), (4, 16))
    assert captured.apply(fuse_rms_norm) == {"mote.rms_norm": 1}


@pytest.mark.parametrize("forward", [
    lambda m, x, p: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5),  # over the tokens
    lambda m, x, p: x * torch.rsqrt((x + 1).pow(2).mean(-1, keepdim=True) + 1e-5),  # of something else
    lambda m, x, p: x * torch.rsqrt(x.pow(4).mean(-1, keepdim=True) + 1e-5),
])  # fmt: skip
def test_what_is_no_rms_norm_stays(forward):
    assert "mote.rms_norm" not in Captured(module_of(forward)).apply(fuse_rms_norm)


def test_a_product_with_an_activation_stays_outside():
    ops = Captured(module_of(lambda m, x, p: normed(x) * x)).apply(fuse_rms_norm)
    assert ops == {"mote.rms_norm": 1, "aten.mul": 1}


def centered(m, x, p):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return m.weight * ((x - mean) * torch.rsqrt(variance + 1e-5))


def with_var(m, x, p):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) * m.weight + m.bias


LAYER_NORMS = {
    "torch op": lambda m, x, p: F.layer_norm(x, (64,), m.weight, m.bias, 1e-5),
    "no bias": lambda m, x, p: F.layer_norm(x, (64,), m.weight, None, 1e-5),
    "no weight": lambda m, x, p: F.layer_norm(x, (64,), None, None, 1e-5),
    "native": lambda m, x, p: torch.native_layer_norm(x, (64,), m.weight, m.bias, 1e-5)[0],
    "spelled out": centered,
    "var": with_var,
}


@pytest.mark.parametrize("name", LAYER_NORMS)
def test_layer_norm_is_one_op(name):
    module = module_of(LAYER_NORMS[name], weight=nn.Parameter(torch.empty(64)), bias=nn.Parameter(torch.empty(64)))
    assert Captured(module).apply(remove_noops, fuse_layer_norm) == {"mote.layer_norm": 1}


def test_corrected_variance_is_no_layer_norm():
    def forward(m, x, p):
        return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)

    assert "mote.layer_norm" not in Captured(module_of(forward)).apply(fuse_layer_norm)
