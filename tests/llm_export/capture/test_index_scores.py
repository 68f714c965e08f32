"""Scores of keys that a module stores in the cache become one op, whichever class computes them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from llm_export.capture.index_scores import IndexScores
from llm_export.errors import UnsupportedError

TOKENS, HEADS, WIDTH = 5, 3, 8


class Context:
    """Remembers the call that a module becomes."""

    model_type = "made_up"

    def indexer(self, module, q, k, weights, *, topk):
        self.call = q, k, weights, topk
        return torch.zeros(1, TOKENS, 1, topk, dtype=torch.int64)


def run(score) -> Context:
    """score: (queries, keys, weights) -> what the module returns"""
    context, generator = Context(), torch.Generator().manual_seed(0)
    q = torch.randn(1, TOKENS, HEADS, WIDTH, generator=generator)
    weights = torch.randn(1, TOKENS, HEADS, generator=generator)
    keys = torch.randn(1, TOKENS, WIDTH, generator=generator)
    context.given = q, keys, weights
    context.found = score(q, IndexScores(context, nn.Identity(), keys), weights)
    return context


def of_deepseek(q, keys, weights):
    scores = F.relu(torch.matmul(q, keys.transpose(-1, -2).float().unsqueeze(1)) * 0.5)
    scores = torch.matmul(weights.unsqueeze(-2), scores).squeeze(-2) + torch.zeros(1, 1, 1)
    return scores.topk(min(4, scores.shape[-1]), dim=-1).indices


def test_a_made_up_indexer_becomes_the_op():
    context = run(of_deepseek)
    q, k, weights, topk = context.call
    assert q.equal(context.given[0].transpose(1, 2) * 0.5) and k.equal(context.given[1].unsqueeze(1))
    assert weights.equal(context.given[2]) and topk == 4
    assert context.found.shape == (1, TOKENS, 4)


@pytest.mark.parametrize(
    ("score", "what"),
    [
        (lambda q, keys, weights: torch.matmul(q, keys).topk(4), "topk"),
        (lambda q, keys, weights: torch.softmax(torch.matmul(q, keys), -1), "softmax"),
        (lambda q, keys, weights: torch.matmul(weights, torch.matmul(q, keys)), "matmul"),
        (lambda q, keys, weights: torch.matmul(q, keys) * -1.0, "mul"),
        (lambda q, keys, weights: torch.matmul(q, keys) + torch.ones(TOKENS, TOKENS), "add"),
    ],
)
def test_other_scores_are_refused_by_name(score, what):
    with pytest.raises(UnsupportedError, match=f"Identity scores keys by '{what}', which mote::indexer does not offer"):
        run(score)
