"""Scores of a text equal those that PyTorch computes from the same logits."""

import math

import pytest
import torch
from torch.nn import functional as F

from llm_export.check.evaluate import Window, evaluate, windows
from llm_export.errors import ArgumentError

VOCAB = 50


def fixed_scorer(seed):
    """Logits that depend on the id and its place in the window, as those of a model do."""
    table = torch.randn(600, VOCAB, generator=torch.Generator().manual_seed(seed))
    return lambda ids: table[: len(ids)] + table[torch.tensor(ids)]


IDS = torch.randint(0, VOCAB, (301,), generator=torch.Generator().manual_seed(0)).tolist()


def test_windows_without_overlap():
    assert list(windows(10, 4, 4)) == [Window(0, 4, 1), Window(4, 8, 5), Window(8, 10, 9)]


def test_overlapping_windows_score_each_token_once():
    cuts = list(windows(100, 16, 4))
    targets = [target for cut in cuts for target in range(cut.first_target, cut.stop)]
    assert targets == list(range(1, 100))
    assert all(cut.stop - cut.start <= 16 for cut in cuts)
    assert all(cut.first_target - cut.start >= 12 for cut in cuts[1:])


def test_max_tokens_bounds_what_is_scored():
    cuts = list(windows(100, 16, 16, max_tokens=20))
    assert sum(cut.stop - cut.first_target for cut in cuts) == 20


@pytest.mark.parametrize("arguments", [(10, 1, 1), (10, 4, 5), (10, 4, 0), (10, 4, 4, 0)])
def test_refuses_bad_sizes(arguments):
    with pytest.raises(ArgumentError):
        list(windows(*arguments))


@pytest.mark.parametrize("stride", [64, 300, 7])
def test_perplexity_equals_cross_entropy(stride):
    cuts = list(windows(len(IDS), 300 if stride == 300 else 64, stride))
    scorer = fixed_scorer(1)
    losses = []
    for cut in cuts:
        seen = IDS[cut.start : cut.stop]
        per_token = F.cross_entropy(scorer(seen)[:-1].double(), torch.tensor(seen[1:]), reduction="none")
        losses.append(per_token[cut.first_target - cut.start - 1 :])
    result = evaluate(IDS, scorer, cuts)
    assert result.num_tokens == sum(map(len, losses))
    assert result.perplexity == pytest.approx(math.exp(torch.cat(losses).mean()), rel=1e-9)
    assert result.kl_divergence is None


def test_divergence_equals_kl_div():
    cuts = list(windows(len(IDS), 64, 64))
    found, expected = fixed_scorer(1), fixed_scorer(2)
    result = evaluate(IDS, found, cuts, expected)
    kl, agreed = [], []
    for cut in cuts:
        seen = IDS[cut.start : cut.stop]
        p, q = expected(seen)[:-1].double().log_softmax(-1), found(seen)[:-1].double().log_softmax(-1)
        kl.append(F.kl_div(q, p, log_target=True, reduction="none").sum(-1))
        agreed.append((p.argmax(-1) == q.argmax(-1)).double())
    assert result.kl_divergence == pytest.approx(torch.cat(kl).mean().item(), rel=1e-9)
    assert result.top1_agreement == pytest.approx(torch.cat(agreed).mean().item())


def test_a_model_compared_with_itself_diverges_by_nothing():
    result = evaluate(IDS, fixed_scorer(3), list(windows(len(IDS), 50, 25)), fixed_scorer(3))
    assert result.kl_divergence == pytest.approx(0, abs=1e-12)
    assert result.top1_agreement == 1 and result.checkpoint_perplexity == pytest.approx(result.perplexity)


def test_refuses_a_text_without_a_target():
    with pytest.raises(ArgumentError, match="too short"):
        evaluate([3], fixed_scorer(0), list(windows(1, 8, 8)))
