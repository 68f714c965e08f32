"""How likely continuations are; what texts have in common is computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from llm_runner import Session

CHUNK_TOKENS = 64  # in one call of the runner, which bounds the memory of the logits

Pair = tuple[Sequence[int], Sequence[int]]  # ids of a context, ids of what continues it; neither is empty
Score = tuple[float, bool]  # log-probability of a continuation, whether each id of it is the likeliest


def score_pairs(
    session: Session, pairs: Sequence[Pair], progress: Callable[[int], object] = lambda pairs: None
) -> list[Score]:
    """Scores continuations, each no longer than the session's context; contexts lose what is too much at their left.

    progress: called with the number of pairs that were scored
    Cost: one pass over what differs from a text before it, in the order of their ids
    """
    limit = session.info["context_length"] + 1  # the last id is predicted and not read
    texts = [tuple([*context, *continuation][-limit:]) for context, continuation in pairs]
    found: dict[int, Score] = {}
    order = sorted(range(len(pairs)), key=lambda index: texts[index])
    for seen, group in groupby(order, key=lambda index: texts[index][:-1]):
        members = list(group)
        first = len(seen) - max(len(pairs[index][1]) for index in members)
        logprobs, is_likeliest, last = _read(session, seen, first)
        for index in members:
            inner, end = len(pairs[index][1]) - 1, texts[index][-1]
            rows = slice(len(logprobs) - inner, None)
            found[index] = (
                float(logprobs[rows].sum() + last[end]),
                bool(is_likeliest[rows].all() and last.argmax() == end),
            )
        progress(len(members))
    return [found[index] for index in range(len(pairs))]


def _read(session: Session, ids: Sequence[int], first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makes ids the tokens of the session, and tells of those behind `first` how likely each was.

    Returns: log-probabilities float64 and whether each was the likeliest, both [len(ids) - first - 1], and the
    log-probabilities of what may follow the last, float64 [vocab_size]
    """
    kept = session.rewind_to_prefix(ids[: first + 1])
    if kept < first:
        session.append(ids[kept:first])
    logprobs, is_likeliest = np.empty(len(ids) - first - 1), np.empty(len(ids) - first - 1, bool)
    for start in range(first, len(ids), CHUNK_TOKENS):
        rows = log_softmax(session.verify(ids[start : start + CHUNK_TOKENS]))
        targets = np.array(ids[start + 1 : start + 1 + len(rows)], np.int64)
        here = slice(start - first, start - first + len(targets))
        logprobs[here] = rows[np.arange(len(targets)), targets]
        is_likeliest[here] = rows[: len(targets)].argmax(-1) == targets
    return logprobs, is_likeliest, rows[-1]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Returns log-probabilities, float64 [..., vocab_size]."""
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
