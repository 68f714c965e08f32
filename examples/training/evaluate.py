"""Measures perplexity on a text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional


@dataclass(frozen=True)
class Score:
    """How well a model predicts a text: per token, and per byte whatever the tokenizer."""

    num_tokens: int
    perplexity: float
    bits_per_byte: float


@torch.no_grad()
def evaluate(model, tokenizer, text: str, context: int = 512) -> Score:
    """Scores every token but the first, in windows that do not overlap.

    context: tokens a window holds; its first prediction sees one token, its last sees all
    Cost: one forward pass over the text
    """
    model.eval()
    device = next(model.parameters()).device
    tokens = torch.tensor(tokenizer(text, verbose=False)["input_ids"], device=device)
    total = 0.0
    for start in range(0, len(tokens) - 1, context):
        window = tokens[start : start + context + 1]
        logits = model(input_ids=window[None, :-1], use_cache=False).logits[0]
        total += functional.cross_entropy(logits.float(), window[1:], reduction="sum").item()
    num_tokens = len(tokens) - 1
    return Score(
        num_tokens,
        math.exp(total / num_tokens),
        total / math.log(2) / len(text.encode()),
    )
