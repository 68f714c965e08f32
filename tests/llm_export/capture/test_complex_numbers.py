"""Products of complex numbers on pairs are those of PyTorch's complex tensors."""

from __future__ import annotations

import torch

from llm_export.capture.complex_numbers import as_pairs


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    turn = torch.polar(torch.ones_like(angles), angles) * 1.5
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn[:, None].to(x.device)).flatten(3)


def test_a_rotation_is_that_of_complex_tensors():
    generator = torch.Generator().manual_seed(0)
    x, angles = torch.randn(1, 3, 5, 8, generator=generator), torch.randn(1, 5, 4, generator=generator)
    expected = rotate(x, angles)
    with as_pairs():
        found = rotate(x, angles)
    torch.testing.assert_close(found, expected)
    assert torch.polar(torch.ones(1), torch.ones(1)).is_complex()  # as before
