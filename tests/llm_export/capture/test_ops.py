"""The eager references and fake kernels of the `mote::` ops."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torchao.quantization.utils import per_token_dynamic_quant
from transformers.models.mamba.modeling_mamba import mamba_selective_scan
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_recurrent_gated_delta_rule

from llm_export.capture import ops, recurrent_ops  # noqa: F401
from llm_export.capture.ops import ReferenceState
from llm_export.errors import ArgumentError, ProgramError
from tests.contracts.ops import CASES


def attributes_of(case) -> dict:
    return case.attributes | ({"state": 0} if case.op == "attention" else {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op} {case.name}")
def test_reference_agrees_with_an_independent_one(case):
    tensors = case.inputs(torch.Generator().manual_seed(0))
    with ReferenceState():
        found = getattr(torch.ops.mote, case.op)(*tensors, **attributes_of(case))
    torch.testing.assert_close(found.double(), case.expected(*tensors).double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op} {case.name}")
def test_fake_kernel_gives_shape_and_strides_of_the_reference(case):
    tensors = case.inputs(torch.Generator().manual_seed(0))
    with ReferenceState():
        real = getattr(torch.ops.mote, case.op)(*tensors, **attributes_of(case))
    with FakeTensorMode() as mode:
        fakes = [None if tensor is None else mode.from_tensor(tensor) for tensor in tensors]
        fake = getattr(torch.ops.mote, case.op)(*fakes, **attributes_of(case))
    assert (fake.shape, fake.stride(), fake.dtype) == (real.shape, real.stride(), real.dtype)


def test_int8_activations_are_torchao_s():
    x, weight = torch.randn(7, 64) * 3, torch.randn(5, 64)
    x[2] = 0
    expected = F.linear(per_token_dynamic_quant(x), weight)
    assert torch.equal(torch.ops.mote.linear(x, weight, activations="int8"), expected)


def test_refuses_unknown_activations():
    with pytest.raises(ArgumentError, match="int7"):
        torch.ops.mote.linear(torch.ones(1, 2), torch.ones(1, 2), activations="int7")


@pytest.mark.parametrize(("attributes", "message"), [({"norm": "layer"}, "layer"), ({}, "norm = 'none'")])
@pytest.mark.parametrize("op", ["linear", "gated_linear"])
def test_refuses_norms_that_do_not_exist(op, attributes, message):
    absent = (None, None) if op == "linear" else (None,)
    with pytest.raises(ArgumentError, match=message):
        getattr(torch.ops.mote, op)(torch.ones(1, 2), torch.ones(2, 2), *absent, torch.ones(2), **attributes)


def attend(state: ReferenceState, qkv, first: int, last: int) -> torch.Tensor:
    q, k, v = (tensor[:, :, first:last] for tensor in qkv)
    with state:
        return torch.ops.mote.attention(q, k, v, torch.arange(first, last)[None], state=0, scale=0.5)


def test_attention_in_pieces_and_after_going_back_is_that_of_one_call():
    qkv = [torch.randn(1, 2, 9, 8) for _ in range(3)]
    whole = attend(ReferenceState(), qkv, 0, 9)
    state = ReferenceState()
    attend(state, qkv, 0, 4)
    attend(state, qkv, 4, 8)
    pieces = [attend(state, qkv, 3, 5), attend(state, qkv, 5, 9)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole[:, 3:])


def test_attention_refuses_a_gap():
    qkv = [torch.randn(1, 2, 9, 8) for _ in range(3)]
    state = ReferenceState()
    attend(state, qkv, 0, 2)
    with pytest.raises(ArgumentError, match="gap"):
        attend(state, qkv, 4, 5)


def test_attention_without_keys_reads_the_cache_of_another_layer():
    qkv = [torch.randn(1, 2, 5, 8) for _ in range(3)]
    state = ReferenceState()
    first = attend(state, qkv, 0, 5)
    with state:
        again = torch.ops.mote.attention(qkv[0], None, None, torch.arange(5)[None], state=0, scale=0.5)
    torch.testing.assert_close(first, again)


def test_ops_with_a_state_refuse_to_run_without_one():
    with pytest.raises(ProgramError, match="ReferenceState"):
        torch.ops.mote.short_conv(torch.ones(1, 2, 3), torch.ones(3, 4), state=0)


def test_short_conv_in_pieces_is_a_padded_convolution():
    x, weight, bias = torch.randn(1, 9, 6), torch.randn(6, 4), torch.randn(6)
    padded = F.pad(x.transpose(1, 2), (3, 0))
    expected = F.conv1d(padded, weight[:, None], bias, groups=6).transpose(1, 2)
    with ReferenceState():
        found = [torch.ops.mote.short_conv(piece, weight, bias, state=0) for piece in x.split([1, 5, 3], dim=1)]
    torch.testing.assert_close(torch.cat(found, dim=1), expected)


@pytest.mark.parametrize("key_heads", [1, 3])
def test_linear_attention_in_pieces_is_the_gated_delta_rule_of_transformers(key_heads):
    query, key = (F.normalize(torch.randn(1, 9, key_heads, 6), dim=-1) for _ in range(2))
    value, g, beta = torch.randn(1, 9, 3, 5), -torch.rand(1, 9, 3), torch.rand(1, 9, 3)
    expected, _ = torch_recurrent_gated_delta_rule(query, key, value, g=g, beta=beta)
    operands = [query * 6**-0.5, key, value, g.exp(), beta]
    with ReferenceState():
        pieces = zip(*(x.split([1, 5, 3], dim=1) for x in operands), strict=True)
        found = [torch.ops.mote.linear_attention(*piece, state=0) for piece in pieces]
    torch.testing.assert_close(torch.cat(found, dim=1), expected)


def test_linear_attention_in_pieces_is_the_scan_of_mamba():
    x, dt, a = torch.randn(1, 4, 9), torch.rand(1, 4, 9), -torch.rand(4, 6)
    b, c = torch.randn(2, 1, 6, 9)
    expected = mamba_selective_scan(x, dt, a, b, c).transpose(1, 2)
    steps = dt.transpose(1, 2).unsqueeze(-1)  # [1, T, channels, 1]
    keys, queries = (each.transpose(1, 2).unsqueeze(2) for each in (b, c))
    operands = [queries, keys, steps * x.transpose(1, 2).unsqueeze(-1), (steps * a).exp()]
    with ReferenceState():
        pieces = zip(*(each.split([4, 5], dim=1) for each in operands), strict=True)
        found = [torch.ops.mote.linear_attention(*piece, state=0) for piece in pieces]
    torch.testing.assert_close(torch.cat(found, dim=1).squeeze(-1), expected)
