"""Scores a text with a program file and with its checkpoint in PyTorch: perplexity, KL divergence, top-1 agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from llm_export.errors import ArgumentError

CHUNK_TOKENS = 64  # in one call of the runner, which bounds the memory of the logits

Scorer = Callable[[Sequence[int]], Tensor]  # ids of a window -> logits float32 [len(ids), vocab_size]


@dataclass
class Evaluation:
    """Averages over the scored tokens; the last three are None where there is nothing to compare with."""

    num_tokens: int
    perplexity: float
    checkpoint_perplexity: float | None = None
    kl_divergence: float | None = None  # of the checkpoint's distribution to the file's, in nats
    top1_agreement: float | None = None


@dataclass(frozen=True)
class Window:
    """ids start..stop-1 are seen; the tokens first_target..stop-1 are scored."""

    start: int
    stop: int
    first_target: int


def windows(num_ids: int, context: int, stride: int, max_tokens: int | None = None) -> Iterator[Window]:
    """Cuts a text into windows of `context` ids that start every `stride` ids; no token is scored twice.

    Errors: ArgumentError if a number is out of its range
    """
    if context < 2:
        raise ArgumentError(f"context = {context}: must be at least 2 tokens")
    if not 1 <= stride <= context:
        raise ArgumentError(f"stride = {stride}: must be in 1..{context} (the context)")
    if max_tokens is not None and max_tokens < 1:
        raise ArgumentError(f"max_tokens = {max_tokens}: must be at least 1")
    scored_to, left = 1, num_ids if max_tokens is None else max_tokens
    for start in range(0, num_ids - 1, stride):
        first = max(start + 1, scored_to)
        stop = min(start + context, num_ids, first + left)
        if first < stop:
            yield Window(start, stop, first)
        scored_to, left = max(scored_to, stop), left - (stop - first)
        if left <= 0 or start + context >= num_ids:
            return


def file_scorer(model, context: int, threads: int | None = None, kv_dtype: str = "float32") -> Scorer:
    """Returns the scorer of a program file. model: llm_runner.Model"""
    session = model.session(context_length=context, kv_dtype=kv_dtype, threads=threads)

    def score(ids: Sequence[int]) -> Tensor:
        session.reset()
        chunks = [session.verify(list(ids[i : i + CHUNK_TOKENS])) for i in range(0, len(ids), CHUNK_TOKENS)]
        return torch.from_numpy(np.concatenate(chunks))

    return score


def evaluate(
    ids: Sequence[int],
    scorer: Scorer,
    cuts: Sequence[Window],
    reference: Scorer | None = None,
    progress: Callable[[int], object] = lambda tokens: None,
) -> Evaluation:
    """Scores the windows of a text. progress: called with the number of tokens that were scored.

    Errors: ArgumentError if there is no token to score
    """
    totals = dict.fromkeys(("tokens", "nll", "reference_nll", "kl", "agreed"), 0.0)
    for cut in cuts:
        seen = ids[cut.start : cut.stop]
        rows = slice(cut.first_target - 1 - cut.start, cut.stop - 1 - cut.start)  # row i predicts id i + 1
        targets = torch.tensor(seen)[rows.start + 1 :]
        found = scorer(seen)[rows]
        expected = reference(seen)[rows] if reference is not None else None
        for part in range(0, len(targets), CHUNK_TOKENS):
            piece = slice(part, part + CHUNK_TOKENS)
            _add(totals, found[piece], None if expected is None else expected[piece], targets[piece])
            progress(len(targets[piece]))
    if not totals["tokens"]:
        raise ArgumentError("the text is too short: it needs at least 2 tokens")
    return _averages(totals, reference is not None)


def _add(totals: dict[str, float], found: Tensor, expected: Tensor | None, targets: Tensor) -> None:
    log_found = found.double().log_softmax(-1)
    totals["tokens"] += len(targets)
    totals["nll"] -= log_found.gather(1, targets[:, None]).sum().item()
    if expected is not None:
        log_expected = expected.double().log_softmax(-1)
        totals["reference_nll"] -= log_expected.gather(1, targets[:, None]).sum().item()
        totals["kl"] += (log_expected.exp() * (log_expected - log_found)).sum().item()
        totals["agreed"] += (found.argmax(-1) == expected.argmax(-1)).sum().item()


def _averages(totals: dict[str, float], compared: bool) -> Evaluation:
    count = totals["tokens"]
    result = Evaluation(int(count), _perplexity(totals["nll"] / count))
    if compared:
        result.checkpoint_perplexity = _perplexity(totals["reference_nll"] / count)
        result.kl_divergence = totals["kl"] / count
        result.top1_agreement = totals["agreed"] / count
    return result


def _perplexity(nll: float) -> float:
    return math.exp(nll) if nll < 700 else math.inf
