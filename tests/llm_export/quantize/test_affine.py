"""Quantised weights keep the bounds of the format, and are as near to the weight as those of torchao or nearer."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_export.errors import FileError
from llm_export.program.formats import FORMATS
from llm_export.quantize.affine import quantize_rows
from llm_export.quantize.torchao_quiet import (
    IntxWeightOnlyConfig,
    PerAxis,
    PerGroup,
    quantize_,
    quantize_affine,
)

LARGEST_INPUT = 255  # of an int8 input less its zero point


def by_torchao(weight, bits, granularity):
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight = torch.nn.Parameter(weight.clone(), requires_grad=False)
    dtype = getattr(torch, f"int{bits}")
    config = IntxWeightOnlyConfig(weight_dtype=dtype, granularity=granularity, scale_dtype=torch.float16)
    quantize_(linear, config)
    return linear.weight.dequantize()


def squared_error(found, weight):
    return (found.double() - weight.double()).square().sum().item()


def random_weight(rows, columns, exponent, seed):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 10.0**exponent


def assert_within_format(weight, bits):
    """Also that sums of products with any int8 inputs fit 32 bits."""
    form = FORMATS[bits]
    assert weight.codes.min() >= form.code_min and weight.codes.max() <= form.code_max
    assert weight.multipliers.abs().max() <= form.max_multiplier
    products = weight.codes.view(*weight.multipliers.shape, -1).long() * weight.multipliers[..., None]
    for side in (products.clamp(min=0), products.clamp(max=0)):
        assert side.sum((1, 2)).abs().max() * LARGEST_INPUT < 2**31
    assert torch.isfinite(weight.scales).all()


WEIGHTS = {
    "group_size": st.sampled_from([32, 64, 128, 256]),
    "rows": st.integers(1, 40),
    "groups": st.integers(1, 4),
    "exponent": st.integers(-30, 30),
    "seed": st.integers(0, 2**31),
}


@settings(max_examples=60, deadline=None)
@given(bits=st.integers(1, 8), per_channel=st.booleans(), **WEIGHTS)
def test_stays_within_the_format(bits, group_size, per_channel, rows, groups, exponent, seed):
    weight = random_weight(rows, groups * group_size, exponent, seed)
    found = quantize_rows(weight, bits, group_size, per_channel=per_channel)
    assert_within_format(found, bits)
    if per_channel:
        assert (found.multipliers == 1).all()


@settings(max_examples=60, deadline=None)
@given(bits=st.integers(2, 8), per_channel=st.booleans(), **WEIGHTS)
def test_codes_are_those_of_torchao_for_the_scales(bits, group_size, per_channel, rows, groups, exponent, seed):
    weight = random_weight(rows, groups * group_size, exponent, seed)
    found, form = quantize_rows(weight, bits, group_size, per_channel=per_channel), FORMATS[bits]
    scales = found.group_scales()
    zeros = torch.zeros_like(scales, dtype=torch.int8)
    limits = {"quant_min": form.code_min, "quant_max": form.code_max}
    codes = quantize_affine(weight, (1, group_size), scales, zeros, torch.int8, **limits)
    assert torch.equal(found.codes, codes)


@pytest.mark.parametrize(("bits", "most"), [(2, 0.6), (3, 0.7), (4, 0.82), (5, 0.9), (6, 0.95), (7, 0.97), (8, 0.97)])
@pytest.mark.parametrize("group_size", [32, 128])
@pytest.mark.parametrize("columns", [256, 2048])
def test_squared_error_is_below_that_of_torchao(bits, most, group_size, columns):
    weight = random_weight(256, columns, -2, seed=bits)
    error = squared_error(quantize_rows(weight, bits, group_size).dequantize(), weight)
    assert error <= most * squared_error(by_torchao(weight, bits, PerGroup(group_size)), weight)


@pytest.mark.parametrize(("bits", "most"), [(2, 0.5), (3, 0.66), (4, 0.8), (5, 0.95), (6, 1.01), (7, 1.01), (8, 1.01)])
@pytest.mark.parametrize("columns", [256, 2048])
def test_squared_error_of_rows_with_one_scale_is_below_that_of_torchao(bits, most, columns):
    weight = random_weight(256, columns, -2, seed=bits)
    error = squared_error(quantize_rows(weight, bits, 256, per_channel=True).dequantize(), weight)
    assert error <= most * squared_error(by_torchao(weight, bits, PerAxis(0)), weight)


@pytest.mark.parametrize("bits", range(2, 9))
def test_the_largest_weight_of_a_group_gets_the_sign_that_has_one_code_more(bits):
    weight = random_weight(64, 256, -2, seed=bits)
    groups = weight.view(64, 8, 32)
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))[..., 0]
    found = quantize_rows(weight, bits, 32)
    assert torch.equal(found.multipliers.sign().float(), -largest.sign())
    assert (quantize_rows(weight, bits, 32, signed=False).multipliers >= 0).all()


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("per_channel", [False, True])
def test_rows_that_are_as_large_as_sums_allow(bits, per_channel):
    for weight in (torch.full((2, 65536), 1.0), torch.full((2, 65536), -1.0), torch.rand(2, 65536)):
        found = quantize_rows(weight, bits, 32, per_channel=per_channel)
        assert_within_format(found, bits)
        assert squared_error(found.dequantize(), weight) < 0.4 * squared_error(torch.zeros_like(weight), weight)


@pytest.mark.parametrize("bits", range(2, 9))
def test_a_group_of_small_weights_beside_large_ones_keeps_codes(bits):
    weight = torch.cat((torch.full((1, 32), 1000.0), torch.linspace(-100, 100, 32)[None]), dim=1)
    assert quantize_rows(weight, bits, 32).codes[0, 32:].any()


@pytest.mark.parametrize("bits", range(2, 9))
def test_bfloat16_weights_are_quantised_in_float32(bits):
    weight = torch.randn(32, 64).to(torch.bfloat16)
    found, expected = quantize_rows(weight, bits, 32), quantize_rows(weight.float(), bits, 32)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("bits", range(1, 9))
def test_zero_rows_stay_zero(bits):
    weight = torch.zeros(16, 64)
    weight[3] = torch.randn(64)
    found = quantize_rows(weight, bits, 32)
    assert not found.dequantize()[weight.abs().sum(-1) == 0].any()
    assert bits == 1 or not found.codes[4:].any()


@pytest.mark.parametrize("bits", range(4, 9))
@pytest.mark.parametrize("largest", [1e38, 1.0, 1e-6, 1e-30])
def test_weights_of_any_size_keep_their_values(bits, largest):
    weight = torch.linspace(-largest, largest, 64)[None]
    found = quantize_rows(weight, bits, 64).dequantize()
    assert ((found - weight).abs().max() / largest).item() <= 1.2 * 2.0 ** (1 - bits)


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
    found = quantize_rows(torch.from_numpy(weight), 1, group_size)
    mean = np.abs(weight.astype(np.float64)).reshape(rows, 2, group_size).mean(-1)
    assert (found.codes.numpy() == np.where(weight < 0, -1, 1)).all()
    half_a_step = 0.5 * found.scales.numpy().astype(np.float64)[:, None]
    assert (np.abs(found.group_scales().numpy().astype(np.float64) - mean) <= half_a_step * 1.001).all()


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_refuses_what_is_not_finite(value, bits):
    weight = torch.zeros(16, 32)
    weight[3, 5] = value
    with pytest.raises(FileError, match="model.layers.0.q_proj.weight: holds NaN or infinity"):
        quantize_rows(weight, bits, 32, "model.layers.0.q_proj.weight")
