"""GPTQ leaves smaller errors of products than plain rounding, in numbers that the format holds."""

import pytest
import torch

from llm_export.errors import FileError
from llm_export.program.formats import FORMATS
from llm_export.program.specs import WeightSpec
from llm_export.quantize.affine import MAX_SUM, quantize_rows
from llm_export.quantize.gptq import Inputs, Metric, gptq


def spec_of(shape, bits, **fields):
    return WeightSpec(("w",), shape, torch.float32, bits=bits, **{"group_size": 32, "activations": "int8"} | fields)


def correlated(num_tokens, columns, seed=0):
    """Inputs of which a few directions and a few columns are much larger than the rest."""
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randn(columns, columns, generator=generator) * torch.logspace(0, -1.5, columns)
    x = torch.randn(num_tokens, columns, generator=generator) @ mixed.T
    x[:, 3] *= 20
    return x


def inputs_of(x, y=None):
    inputs = Inputs.empty(x.shape[1])
    inputs.add(x, x if y is None else y)
    return inputs


def weight_of(rows, columns, seed=1):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.02


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("bits", sorted(FORMATS))
def test_products_are_nearer_than_those_of_plain_rounding(bits, per_channel, signed):
    x, w = correlated(512, 96), weight_of(24, 96)
    spec = spec_of((24, 96), bits, per_channel=per_channel, signed=signed)
    found = gptq(w, spec, inputs_of(x))
    plain = quantize_rows(w, bits, 32, per_channel=per_channel, signed=signed)
    metric = Metric.of(inputs_of(x))
    assert bool((metric.errors(found, w) <= metric.errors(plain, w) * 1.0001).all())
    lost, lost_plain = ((x @ (q.dequantize() - w).T).square().sum() for q in (found, plain))
    assert lost < (0.9 if bits > 1 else 1.0) * lost_plain


@pytest.mark.parametrize("bits", sorted(FORMATS))
def test_numbers_are_those_of_the_format(bits):
    form = FORMATS[bits]
    found = gptq(weight_of(20, 64), spec_of((20, 64), bits), inputs_of(correlated(256, 64)))
    assert [part.dtype for part in found] == [torch.int8, torch.int8, torch.float32]
    assert [tuple(part.shape) for part in found] == [(20, 64), (20, 2), (20,)]
    assert found.codes.min() >= form.code_min and found.codes.max() <= form.code_max
    assert int(found.multipliers.abs().max()) <= form.max_multiplier
    assert bits > 1 or bool((found.codes != 0).all())


def test_sums_stay_within_32_bits():
    w = weight_of(8, 2048).abs() + 0.01
    found = gptq(w, spec_of((8, 2048), 8), inputs_of(correlated(64, 2048)))
    products = found.codes.view(8, -1, 32).long() * found.multipliers[..., None]
    assert int(products.flatten(1).clamp(min=0).sum(-1).max()) <= MAX_SUM
    assert int(-products.flatten(1).clamp(max=0).sum(-1).min()) <= MAX_SUM
    assert float((found.dequantize() - w).abs().max()) < 0.01


def test_weights_make_up_for_inputs_that_are_off():
    x, w = correlated(1024, 64), weight_of(16, 64)
    off = x + 0.3 * x.roll(1, 1)
    spec = spec_of((16, 64), 6)
    wanted = x @ w.T
    blind, aware = (gptq(w, spec, inputs_of(off, y)).dequantize() for y in (off, x))
    assert (off @ aware.T - wanted).square().sum() < 0.2 * (off @ blind.T - wanted).square().sum()


def test_inputs_that_are_never_used_and_rows_of_zeros():
    x, w = correlated(128, 64), weight_of(4, 64)
    x[:, 7], w[2] = 0, 0
    found = gptq(w, spec_of((4, 64), 4), inputs_of(x))
    assert bool(torch.isfinite(found.dequantize()).all()) and not found.dequantize()[2].any()
    assert bool(torch.isfinite(gptq(w, spec_of((4, 64), 4), inputs_of(x * 0)).dequantize()).all())


def test_rows_are_independent_of_each_other():
    x, w = correlated(256, 64), weight_of(6, 64)
    whole = gptq(w, spec_of((6, 64), 4), inputs_of(x))
    part = gptq(w[2:4], spec_of((2, 64), 4), inputs_of(x))
    assert torch.equal(whole.codes[2:4], part.codes)


def test_refuses_what_is_not_finite():
    w = weight_of(4, 64)
    w[1, 1] = torch.nan
    with pytest.raises(FileError, match="w: holds NaN or infinity"):
        gptq(w, spec_of((4, 64), 4), inputs_of(correlated(64, 64)))
