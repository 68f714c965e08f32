import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from llm_export.passes.fold_constants import fold_constants
from llm_export.passes.fuse_activations import fuse_activations
from llm_export.passes.last_position import last_position
from llm_export.passes.linear import canonical_linear
from llm_export.passes.merge_duplicates import merge_duplicates
from llm_export.passes.remove_noops import remove_noops
from tests.llm_export.passes.graphs import Captured, module_of

ROOT = math.sqrt(2 / math.pi)

ACTIVATIONS = {
    "silu": (lambda x: x * torch.sigmoid(x), "aten.silu"),
    "gelu_new": (lambda x: 0.5 * x * (1.0 + torch.tanh(ROOT * (x + 0.044715 * torch.pow(x, 3.0)))), "aten.gelu"),
    "gelu_fast": (lambda x: 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))), "aten.gelu"),
    "gelu by erf": (lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))), "aten.gelu"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_spelled_activations_are_one_op(name):
    function, op = ACTIVATIONS[name]
    assert Captured(module_of(lambda m, x, p: function(x))).apply(fuse_activations) == {op: 1}


def test_another_factor_is_no_gelu():
    ops = Captured(module_of(lambda m, x, p: 0.5 * x * (1.0 + torch.tanh(x + 0.044715 * x.pow(3))))).apply(
        fuse_activations
    )
    assert "aten.gelu" not in ops


def test_constants_are_folded():
    def forward(m, x, p):
        return x * (m.table.cos() * 2)[None] + torch.arange(64).float()

    captured = Captured(module_of(forward, table=torch.linspace(0, 1, 64)))
    assert captured.apply(remove_noops, fold_constants) == {"aten.mul": 1, "aten.add": 1}
    folded = [value for name, value in captured.methods.constants.items() if name.startswith("folded.")]
    assert sorted(tuple(value.shape) for value in folded) == [(1, 64), (64,)]


def test_what_depends_on_the_tokens_is_not_folded():
    ops = Captured(module_of(lambda m, x, p: x + torch.arange(x.shape[1])[None, :, None])).apply(fold_constants)
    assert ops["aten.arange"] == 1


def test_equal_expressions_are_computed_once():
    ops = Captured(module_of(lambda m, x, p: x.sin() + x.sin() * 2.0 + x.sin() * 2)).apply(merge_duplicates)
    assert ops["aten.sin"] == 1 and ops["aten.mul"] == 2  # 2 and 2.0 differ


class TestLastPosition:
    def logits(self, forward, **parts):
        captured = Captured(module_of(forward, **parts))
        captured.apply(canonical_linear)
        expected = captured.expected(5)
        captured.methods.programs["verify"] = last_position(captured.methods.programs["verify"], captured.methods)
        actual = captured.run(5)
        torch.testing.assert_close(actual, expected[:, -1:], rtol=1e-5, atol=1e-5)
        return captured

    def test_the_head_sees_one_position(self):
        captured = self.logits(lambda m, x, p: m.head(F.relu(x.cumsum(1))), head=nn.Linear(64, 100))
        linear = captured.editor().calls("mote.linear.default")[0]
        assert tuple(linear.meta["val"].shape) == (1, 1, 100)
        relu = captured.editor().calls("aten.relu.default")[0]
        assert tuple(relu.meta["val"].shape) == (1, 1, 64)

    def test_sums_cut_every_operand(self):
        captured = self.logits(lambda m, x, p: m.head(x.cumsum(1)) + x.sin(), head=nn.Linear(64, 64))
        assert captured.ops()["aten.slice"] == 2

    def test_operands_without_positions_are_left_whole(self):
        self.logits(lambda m, x, p: x * m.weight + 1, weight=nn.Parameter(torch.empty(64)))

    def test_what_mixes_positions_is_cut_behind(self):
        captured = self.logits(lambda m, x, p: x.cumsum(1))
        assert captured.ops() == {"aten.cumsum": 1, "aten.slice": 1}

    def test_softmax_over_tokens_is_cut_behind(self):
        self.logits(lambda m, x, p: x.softmax(1).transpose(1, 2).contiguous().view(1, -1, 64))
