"""Stacks that a checkpoint stores as one matrix: what the graph computes stays, what it reads can be quantized."""

import pytest
import torch
from torch import nn

from llm_export.capture.stacks import separate
from llm_export.passes.linear import canonical_experts
from llm_export.quantize.uses import weight_uses
from tests.llm_export.passes.graphs import Captured, module_of

mote = torch.ops.mote


def matrix(rows, columns=64):
    return nn.Parameter(torch.empty(rows, columns))


def separated(module, x_shape=(64,)):
    captured = Captured(module, x_shape, activations="int8", bits=0)
    captured.apply(lambda program, methods: separate([program], methods.weights) or program)
    return captured, {name: use.kind for use in weight_uses(captured.methods).values() for name in use.names[:1]}


def routed(x):
    scores, chosen = x[0, :, :4].topk(2, dim=-1)
    return x[0], chosen, scores.softmax(-1)


def test_experts_whose_matrices_lie_one_below_the_other():
    def forward(m, x, p):
        gate, up, down = (weight.view(4, -1, 64) for weight in (m.gate, m.up, m.down))
        return mote.moe_experts(*routed(x), torch.cat((gate, up), dim=1), down.transpose(1, 2))

    captured, kinds = separated(module_of(forward, gate=matrix(96), up=matrix(96), down=matrix(96)))
    assert kinds == {"gate@4,0:24+up@4,0:24": "experts", "down@4,0:24": "experts"}
    gate_up, down = (captured.methods.weights[name] for name in kinds)
    assert (gate_up.shape, gate_up.source_rows, gate_up.transpose) == ((4, 48, 64), (24, 24), False)
    assert (down.shape, down.source_rows, down.transpose) == ((4, 64, 24), (), True)


def test_experts_of_one_matrix():
    def forward(m, x, p):
        hidden, chosen, _ = routed(x)
        return mote.expert_linear(hidden, chosen, m.weight.view(4, 8, 64))

    captured, kinds = separated(module_of(forward, weight=matrix(32)))
    assert kinds == {"weight@4,0:8": "experts"}
    assert captured.methods.weights["weight@4,0:8"].shape == (4, 8, 64)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_linear_for_each_group_of_features(transposed):
    def forward(m, x, p):
        rows = m.weight.view(2, -1, 12) if transposed else m.weight.view(2, -1, 32).transpose(1, 2)
        return torch.bmm(x.reshape(-1, 2, 32).transpose(0, 1), rows).transpose(0, 1).reshape(1, -1, 24)

    weight = matrix(64, 12) if transposed else matrix(24, 32)
    captured, kinds = separated(module_of(forward, weight=weight))
    (name,) = kinds
    assert kinds[name] == "linear" and captured.ops()["mote.head_linear"] == 1 and "aten.bmm" not in captured.ops()
    spec = captured.methods.weights[name]
    assert (spec.shape, spec.transpose) == ((2, 12, 32), transposed)
    captured.methods.programs["verify"] = canonical_experts(captured.methods.programs["verify"], captured.methods)
    (product,) = captured.editor().calls("mote.head_linear.default")
    assert product.kwargs["activations"] == spec.activations


@pytest.mark.parametrize(
    "stack",
    [
        lambda m: m.weight.view(4, 16, 64) * 2,
        lambda m: torch.cat((m.weight.view(4, 16, 64)[:, :8], m.weight.view(4, 16, 64)[:, 8:]), dim=1),
        lambda m: torch.cat((m.weight.view(4, 64, 16), m.other.view(4, 64, 48)), dim=2),
        lambda m: m.weight.view(4, 8, 128)[:, :, :64],
    ],
    ids=["computed", "read twice", "columns", "rows of another length"],
)
def test_what_is_computed_or_moved_more_stays(stack):
    def forward(m, x, p):
        hidden, chosen, _ = routed(x)
        return mote.expert_linear(hidden, chosen, stack(m))

    _, kinds = separated(module_of(forward, weight=matrix(64), other=matrix(64, 192)))
    assert kinds["weight"] == "other"
