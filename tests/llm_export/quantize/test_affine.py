"""Codes and scales are torchao's own for any finite weight, and sane where torchao divides by zero."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_export.errors import FileError
from llm_export.quantize.affine import dequantize_rows, quantize_rows
from llm_export.quantize.torchao_quiet import IntxWeightOnlyConfig, PerGroup, quantize_


def by_torchao(weight, bits, group_size):
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight = torch.nn.Parameter(weight.clone(), requires_grad=False)
    dtype = getattr(torch, f"int{bits}")
    config = IntxWeightOnlyConfig(weight_dtype=dtype, granularity=PerGroup(group_size), scale_dtype=torch.float16)
    quantize_(linear, config)
    return linear.weight


@settings(max_examples=40, deadline=None)
@given(
    bits=st.integers(2, 8),
    group_size=st.sampled_from([32, 64, 128, 256]),
    rows=st.integers(1, 40),
    groups=st.integers(1, 4),
    exponent=st.integers(-2, 4),
    seed=st.integers(0, 2**31),
)
def test_equals_torchao(bits, group_size, rows, groups, exponent, seed):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, groups * group_size, generator=generator) * 10.0**exponent
    expected = by_torchao(weight, bits, group_size)
    codes, scales = quantize_rows(weight, bits, group_size)
    assert torch.equal(codes, expected.qdata)
    assert torch.equal(scales, expected.scale)
    assert torch.equal(dequantize_rows(codes, scales), expected.dequantize())


@pytest.mark.parametrize("bits", range(2, 9))
def test_bfloat16_weights_are_quantised_in_float32(bits):
    weight = torch.randn(32, 64).to(torch.bfloat16)
    codes, _ = quantize_rows(weight, bits, 32)
    assert torch.equal(codes, by_torchao(weight.float(), bits, 32).qdata)


@pytest.mark.parametrize("bits", range(2, 9))
def test_zero_rows_give_zero_codes(bits):
    codes, scales = quantize_rows(torch.zeros(16, 64), bits, 32)
    assert not codes.any() and not dequantize_rows(codes, scales).any()


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("largest", [1e-3, 1e-4, 1e-5, 1e-6])
def test_tiny_weights_keep_their_values(bits, largest):
    weight = torch.linspace(-largest, largest, 64)[None]
    codes, scales = quantize_rows(weight, bits, 64)
    step = scales.float().max().item()
    # Scales below the normal range of float16 are rounded to multiples of 2^-24, which may clip the extremes.
    error = (dequantize_rows(codes, scales) - weight).abs().max().item()
    assert error <= step * 0.51 + 2.0**-25 * 2 ** (bits - 1) + largest * 2 ** -(bits - 1) * 0.5


@settings(max_examples=30, deadline=None)
@given(
    group_size=st.sampled_from([32, 64, 128, 256]),
    rows=st.integers(1, 40),
    exponent=st.integers(-3, 4),
    seed=st.integers(0, 2**31),
)
def test_one_bit_keeps_signs_and_the_mean_magnitude(group_size, rows, exponent, seed):
    weight = np.random.default_rng(seed).normal(size=(rows, 2 * group_size)) * 10.0**exponent
    weight = weight.astype(np.float32)
    weight[0, 0] = 0.0
    codes, scales = quantize_rows(torch.from_numpy(weight), 1, group_size)
    mean = np.abs(weight.astype(np.float64)).reshape(rows, 2, group_size).mean(-1)
    assert (codes.numpy() == np.where(weight < 0, -1, 1)).all()
    # Rounded to float16: half a unit in the last place, and no smaller than half of its least denormal.
    assert (np.abs(scales.numpy().astype(np.float64) - mean) <= np.maximum(mean * 2.0**-11, 2.0**-25) * 1.001).all()


def test_one_bit_of_nothing_is_nothing():
    assert not dequantize_rows(*quantize_rows(torch.zeros(16, 64), 1, 32)).any()


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e9])
def test_refuses_what_float16_scales_cannot_hold(value, bits):
    weight = torch.zeros(16, 32)
    weight[3, 5] = value
    with pytest.raises(FileError, match="model.layers.0.q_proj.weight"):
        quantize_rows(weight, bits, 32, "model.layers.0.q_proj.weight")
