"""When another most likely token is a disagreement."""

import torch

from llm_export.check import _num_lost

EXPECTED = torch.tensor([[2.0, 1.8, -4.0], [2.0, 1.8, -4.0]])  # 0.05 of the largest magnitude apart
FOUND = torch.tensor([[1.9, 1.95, -4.0], [2.0, 1.8, -4.0]])


def test_a_swap_within_twice_the_noise_is_a_tie():
    assert _num_lost(FOUND, EXPECTED, noise=0.03) == 0


def test_a_swap_beyond_it_is_counted():
    assert _num_lost(FOUND, EXPECTED, noise=0.02) == 1
