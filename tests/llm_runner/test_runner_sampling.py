"""What sampling draws from is what transformers' logits processors leave."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from llm_runner import ArgumentError, warp


def expected(logits, previous, options):
    """The processors in the order of transformers' _get_logits_processor."""
    processors = LogitsProcessorList()
    if biases := options.get("sequence_bias"):
        processors.append(SequenceBiasLogitsProcessor(biases))
    if (penalty := options.get("repetition_penalty", 1.0)) != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(penalty))
    if (size := options.get("no_repeat_ngram_size", 0)) != 0:
        processors.append(NoRepeatNGramLogitsProcessor(size))
    if words := options.get("bad_words_ids"):
        processors.append(NoBadWordsLogitsProcessor(words))
    if tokens := options.get("suppress_tokens"):
        processors.append(SuppressTokensLogitsProcessor(tokens))
    if (temperature := options.get("temperature", 1.0)) != 1.0:
        processors.append(TemperatureLogitsWarper(temperature))
    if (top_k := options.get("top_k", 0)) != 0:
        processors.append(TopKLogitsWarper(top_k))
    if (top_p := options.get("top_p", 1.0)) < 1.0:
        processors.append(TopPLogitsWarper(top_p))
    if (min_p := options.get("min_p", 0.0)) > 0.0:
        processors.append(MinPLogitsWarper(min_p))
    if (typical_p := options.get("typical_p", 1.0)) < 1.0:
        processors.append(TypicalLogitsWarper(typical_p))
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


def check(logits, previous, options):
    found, wanted = warp(logits, previous, **options), expected(logits, previous, options)
    assert ((found > 1e-30) == (wanted > 1e-30)).all(), options
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-7, err_msg=str(options))


@pytest.mark.parametrize("vocab_size", [7, 300, 5000])
def test_typical_p_is_that_of_transformers(vocab_size):
    rng = np.random.default_rng(vocab_size)
    for typical_p, top_p, top_k in itertools.product((0.05, 0.2, 0.5, 0.9, 0.999), (1.0, 0.8), (0, 5)):
        logits = (rng.standard_normal(vocab_size) * rng.choice([0.5, 3.0])).astype(np.float32)
        check(logits, [], {"typical_p": typical_p, "top_p": top_p, "top_k": top_k})


@pytest.mark.parametrize("penalty", [1.0, 1.4])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_ngrams_biases_and_bans_are_those_of_transformers(size, penalty):
    rng = np.random.default_rng(size)
    for length in (0, 1, 4, 5, 60):
        logits = rng.standard_normal(40).astype(np.float32)
        previous = rng.integers(0, 4, length).tolist()
        tail = tuple(previous[-2:])
        options = {
            "no_repeat_ngram_size": size, "repetition_penalty": penalty, "suppress_tokens": [31, 2],
            "bad_words_ids": [[17], [3, 18], [*tail, 19], [*previous, 20]],
            "sequence_bias": {(5,): 2.5, (*tail, 6): -1.25, (*tail[1:], 6): 0.5, (1, 2, 3, 0, 1, 7): 4.0},
        }  # fmt: skip
        check(logits, previous, options)


def test_logit_bias_is_a_bias_of_one_token():
    logits = np.zeros(4, np.float32)
    assert (warp(logits, logit_bias={1: 2.0}) == warp(logits, sequence_bias=[([1], 2.0)])).all()
    assert warp(logits, logit_bias={1: float("-inf")})[1] == 0
    assert warp(logits, do_sample=False, logit_bias={2: 0.5}).argmax() == 2


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def test_frequency_and_presence_count_the_output():
    logits = np.array([1.0, 2.0, 3.0, -1.0])
    found = warp(logits, [3, 3, 1, 1, 2], num_generated=3, frequency_penalty=0.5, presence_penalty=-0.25)
    np.testing.assert_allclose(
        found, softmax(logits - 0.5 * np.array([0, 2, 1, 0]) + 0.25 * np.array([0, 1, 1, 0])), rtol=1e-6
    )


def test_the_repetition_window_forgets():
    logits = np.array([1.0, 2.0, 3.0], np.float32)
    options = {"repetition_penalty": 1.5}
    np.testing.assert_allclose(
        warp(logits, [0, 1, 2], repetition_window=2, **options), expected(logits, [1, 2], options), rtol=1e-6
    )


def dry(logits, ids, multiplier, base, allowed, breakers):
    """By the definition: the longest suffix of the text that stands before an earlier occurrence of the next token."""
    result = logits.astype(np.float64).copy()
    for token in range(len(logits)):
        lengths = [0]
        for place in (i for i in range(1, len(ids)) if ids[i] == token and token not in breakers):
            length = 0
            while length < min(place, 50) and ids[place - 1 - length] == ids[-1 - length] not in breakers:
                length += 1
            lengths.append(length)
        if max(lengths) >= allowed:
            result[token] -= multiplier * base ** (max(lengths) - allowed)
    return result


@pytest.mark.parametrize("breakers", [[], [0], [1, 3]])
def test_dry_is_its_definition(breakers):
    rng = np.random.default_rng(3)
    for _ in range(60):
        logits = rng.standard_normal(6).astype(np.float32)
        ids = np.tile(rng.integers(0, 4, rng.integers(1, 6)), 8)[: rng.integers(1, 40)].tolist()
        options = {"dry_multiplier": 0.7, "dry_base": 1.2, "dry_allowed_length": int(rng.integers(1, 5))}
        found = warp(logits, ids, dry_sequence_breakers=breakers, **options)
        np.testing.assert_allclose(found, softmax(dry(logits, ids, *options.values(), breakers)), rtol=2e-4, atol=1e-7)


def test_xtc_leaves_all_but_the_last_top_choice_out():
    probabilities = np.array([0.4, 0.3, 0.2, 0.07, 0.03])
    logits = np.log(probabilities)
    found = warp(logits, xtc_probability=1.0, xtc_threshold=0.15)
    np.testing.assert_allclose(found, np.array([0, 0, 0.2, 0.07, 0.03]) / 0.3, rtol=1e-5)
    np.testing.assert_allclose(warp(logits, xtc_probability=1.0, xtc_threshold=0.35), probabilities, rtol=1e-5)
    np.testing.assert_allclose(warp(logits, xtc_probability=1.0, xtc_threshold=0.5), probabilities, rtol=1e-5)
    seeds = [warp(logits, xtc_probability=0.3, xtc_threshold=0.15, seed=seed)[0] == 0 for seed in range(400)]
    assert 0.22 < np.mean(seeds) < 0.38


def test_ties_at_the_border_of_top_k_all_stay():
    logits = np.array([1.0, 2.0, 2.0, 2.0, 0.0], np.float32)
    np.testing.assert_allclose(warp(logits, top_k=2), expected(logits, [], {"top_k": 2}), rtol=1e-6)


def test_top_n_sigma_leaves_what_is_near_the_largest_logit():
    logits = np.array([0.0, 1.0, 2.0, 10.0, 9.0, 6.0], np.float32)
    limit = logits.max() - 1.2 * logits.std()
    for temperature in (0.5, 1.0, 3.0):
        kept = np.where(logits >= limit, logits / temperature, -np.inf)
        np.testing.assert_allclose(warp(logits, top_n_sigma=1.2, temperature=temperature), softmax(kept), rtol=1e-5)


@pytest.mark.parametrize("options", [{"do_sample": False}, {"temperature": 0}, {"temperature": 0, "top_k": 7}])
def test_greedy_is_the_lowest_of_the_largest(options):
    assert warp(np.array([0.0, 5.0, 5.0], np.float32), **options).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "options",
    [{"temperature": -1.0}, {"temperature": float("nan")}, {"top_k": -1}, {"top_k": 1.5},
     {"top_p": 1.1}, {"top_p": -0.1}, {"min_p": 2.0}, {"repetition_penalty": 0.0},
     {"temperature": "hot"}, {"seed": -1}, {"top_q": 1}, {"typical_p": 0.0}, {"xtc_probability": 1.5},
     {"xtc_threshold": -0.1}, {"frequency_penalty": float("inf")}, {"presence_penalty": float("nan")},
     {"top_n_sigma": -1.0}, {"mirostat": 1}, {"do_sample": 1},
     {"dry_multiplier": -1.0}, {"no_repeat_ngram_size": -1}, {"min_new_tokens": 0.5}, {"repetition_window": -3}],
)  # fmt: skip
def test_bad_options_are_named(options):
    with pytest.raises(ArgumentError) as error:
        warp(np.zeros(3, np.float32), **options)
    assert next(iter(options)) in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"logit_bias": {3: 1.0}}, "token id 3"),
        ({"suppress_tokens": [-1]}, r"suppress_tokens = \[-1\]: must be a list of token ids"),
        ({"bad_words_ids": [[]]}, "bad_words_ids = .*none of them empty"),
        ({"logit_bias": {0: float("inf")}}, "logit_bias = {0: inf}: must be"),
        ({"logit_bias": {0: float("nan")}}, "logit_bias = {0: nan}: must be"),
        ({"sequence_bias": [([0], "much")]}, "sequence_bias = .*much"),
        ({"dry_multiplier": 1.0, "dry_base": 0.5}, "dry_base = 0.5"),
        ({"dry_multiplier": 1.0, "dry_sequence_breakers": [9]}, "token id 9"),
        ({"dry_multiplier": 1.0, "dry_sequence_breakers": ["x"]}, "there is no tokenizer"),
        ({"bad_words": "x"}, "there is no tokenizer"),
    ],
)
def test_bad_lists_are_explained(options, message):
    with pytest.raises(ArgumentError, match=message):
        warp(np.zeros(3, np.float32), **options)
