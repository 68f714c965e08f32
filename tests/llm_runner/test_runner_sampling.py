"""What sampling draws from is what transformers' logits processors leave."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from llm_runner import ArgumentError, warp


def expected(logits, previous, options):
    """The processors in the order of transformers' _get_logits_processor."""
    processors = LogitsProcessorList()
    if (penalty := options.get("repetition_penalty", 1.0)) != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(penalty))
    if (temperature := options.get("temperature", 1.0)) != 1.0:
        processors.append(TemperatureLogitsWarper(temperature))
    if (top_k := options.get("top_k", 0)) != 0:
        processors.append(TopKLogitsWarper(top_k))
    if (top_p := options.get("top_p", 1.0)) < 1.0:
        processors.append(TopPLogitsWarper(top_p))
    if (min_p := options.get("min_p", 0.0)) > 0.0:
        processors.append(MinPLogitsWarper(min_p))
    ids = torch.tensor([previous], dtype=torch.long).reshape(1, -1)
    return processors(ids, torch.tensor(logits[None])).softmax(-1)[0].numpy()


GRID = [
    dict(zip(("repetition_penalty", "temperature", "top_k", "top_p", "min_p"), values, strict=True))
    for values in itertools.product(
        (1.0, 1.3, 0.8), (1.0, 0.3, 2.5), (0, 1, 7, 100_000), (1.0, 0.9, 0.35, 0.0), (0.0, 0.05, 1.0)
    )
]


@pytest.mark.parametrize("vocab_size", [3, 50, 5000])
def test_filters_are_those_of_transformers(vocab_size):
    rng = np.random.default_rng(vocab_size)
    for options in GRID:
        logits = (rng.standard_normal(vocab_size) * rng.choice([0.5, 3.0, 10.0])).astype(np.float32)
        previous = rng.integers(0, vocab_size, 20).tolist()
        found, wanted = warp(logits, previous, **options), expected(logits, previous, options)
        assert found.dtype == np.float32
        # below that, float32 has denormals that one side rounds to zero
        assert ((found > 1e-30) == (wanted > 1e-30)).all(), options
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-7, err_msg=str(options))


def test_ties_at_the_border_of_top_k_all_stay():
    logits = np.array([1.0, 2.0, 2.0, 2.0, 0.0], np.float32)
    np.testing.assert_allclose(warp(logits, top_k=2), expected(logits, [], {"top_k": 2}), rtol=1e-6)


def test_greedy_is_the_lowest_of_the_largest():
    assert warp(np.array([0.0, 5.0, 5.0], np.float32), do_sample=False).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "options",
    [{"temperature": 0.0}, {"temperature": -1.0}, {"temperature": float("nan")}, {"top_k": -1}, {"top_k": 1.5},
     {"top_p": 1.1}, {"top_p": -0.1}, {"min_p": 2.0}, {"repetition_penalty": 0.0},
     {"temperature": "hot"}, {"seed": -1}, {"top_q": 1}],
)  # fmt: skip
def test_bad_options_are_named(options):
    with pytest.raises(ArgumentError) as error:
        warp(np.zeros(3, np.float32), **options)
    assert next(iter(options)) in str(error.value)
