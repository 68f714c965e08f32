"""The rotation of inputs against matrices that are written down from its definition, in float64."""

import numpy as np
import pytest
import torch

from llm_export.capture.hadamard import hadamard, inverse_hadamard
from llm_export.capture.ops import quantize_activations, quantize_symmetrically

COLUMNS = (32, 64, 96, 288, 512, 576, 1536)


def turn(size: int) -> np.ndarray:
    index = np.arange(size)
    ones = np.array([[bin(i & j).count("1") for j in index] for i in index])
    signs = np.array([(-1.0) ** bin(i & i >> 1).count("1") for i in index])
    return signs[:, None] * (-1.0) ** ones / np.sqrt(size)


def matrix(columns: int) -> np.ndarray:
    """[K, K], by which a row is multiplied from the right."""
    size = 2 ** int(np.log2(columns))
    first, second = np.eye(columns), np.eye(columns)
    first[:size, :size] = turn(size)
    if size == columns:
        return first
    second[-size:, -size:] = turn(size)
    return first @ second


@pytest.mark.parametrize("columns", COLUMNS)
def test_multiplies_by_the_matrix_of_the_definition(columns):
    x = torch.randn(3, 5, columns, generator=torch.Generator().manual_seed(columns))
    rotation = matrix(columns)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(columns), atol=1e-12)
    np.testing.assert_allclose(hadamard(x).numpy(), x.double().numpy() @ rotation, atol=2e-5)
    np.testing.assert_allclose(inverse_hadamard(hadamard(x)).numpy(), x.numpy(), atol=2e-5)


@pytest.mark.parametrize("columns", COLUMNS)
def test_products_with_a_few_large_channels_lose_less_to_rounding(columns):
    generator = torch.Generator().manual_seed(1)
    x, weight = torch.randn(64, columns, generator=generator), torch.randn(16, columns, generator=generator)
    x[:, columns // 3] *= 100
    exact = x @ weight.T
    plain = quantize_activations(x) @ weight.T
    rotated = quantize_symmetrically(hadamard(x)) @ hadamard(weight).T
    assert (rotated - exact).square().sum() < 0.2 * (plain - exact).square().sum()


def test_bits_do_not_depend_on_how_many_rows_are_rotated_together():
    x = torch.randn(7, 576)
    assert torch.equal(hadamard(x), torch.stack([hadamard(row) for row in x]))
