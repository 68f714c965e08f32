"""How likely the tokens of a prompt were, each after those before it: `echo` with `logprobs`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llm_runner import Model, Session, TokenLogprob
from llm_server.engine.engine import Engine
from llm_server.engine.steps import in_thread

MAX_LOGITS = 2**22  # held at a time, 16 MiB
MAX_WINDOW = 32  # tokens that are made text at a time


async def prompt_logprobs(engine: Engine, session: Session, ids: Sequence[int], top: int) -> list[TokenLogprob]:
    """Makes the ids the tokens of a session and returns an entry for each but the first.

    top: how many of the likeliest tokens an entry has   Cost: reads the whole prompt, whatever the session has of it
    """
    await in_thread(session.reset)
    rows = max(1, MAX_LOGITS // engine.model.info["vocab_size"])
    found: list[TokenLogprob] = []
    for begin in range(0, len(ids), rows):
        part = ids[begin : begin + rows]
        found += await in_thread(_read, session, part, ids[begin + 1 : begin + 1 + rows], top)
    return found


def _read(session: Session, ids: Sequence[int], following: Sequence[int], top: int) -> list[TokenLogprob]:
    logits = session.verify(ids)[: len(following)]  # [following, vocab_size]
    return [_entry(row, token_id, top) for row, token_id in zip(logits, following, strict=True)]


def _entry(logits: np.ndarray, token_id: int, top: int) -> TokenLogprob:
    values = logits.astype(np.float64)
    values -= values.max()
    values -= np.log(np.exp(values).sum())
    likeliest = np.argpartition(-values, min(top, len(values) - 1))[:top]
    likeliest = likeliest[np.lexsort((likeliest, -values[likeliest]))]
    return TokenLogprob(token_id, float(values[token_id]), [(int(i), float(values[i])) for i in likeliest])


def text_offsets(model: Model, ids: Sequence[int]) -> list[int]:
    """Returns where in the text of ids, special tokens left out, each of them begins."""
    offsets: list[int] = []
    length = 0  # of the text before `begin`
    begin = 0
    for i in range(len(ids)):
        before = _text(model, ids, begin, i)
        offsets.append(length + len(before))
        # A character that is not whole yet ends in U+FFFD.
        if i - begin >= MAX_WINDOW and not before.endswith("\ufffd"):
            length, begin = offsets[-1], i
    return offsets


def _text(model: Model, ids: Sequence[int], begin: int, end: int) -> str:
    # With the token before, because decoders drop a space at the beginning of a text.
    start = max(begin - 1, 0)
    before = model.detokenize(ids[start:begin], skip_special_tokens=True)
    return model.detokenize(ids[start:end], skip_special_tokens=True)[len(before) :]
