"""A model that says what it is told to."""

from __future__ import annotations

import time
from typing import Any

from llm_runner import Session


def saying(model, text) -> dict[str, Any]:
    """Returns options that make a generation of this text, with its special tokens spelled out."""
    ids = model.tokenize(text, add_special_tokens=False) + [model.generation_config["eos_token_id"][0]]
    # Where the beginning of the text stands, its next token is the likeliest; the longest beginning counts most.
    return {
        "do_sample": False,
        "sequence_bias": [(ids[: count + 1], 1000.0 * (count + 1)) for count in range(len(ids))],
    }


def force(monkeypatch, model, text, pause: float = 0.0):
    """Makes every reply a text; pause: seconds before each token."""
    reply = Session.reply

    def forced(self, conversation, **options):
        generation = reply(self, conversation, **saying(model, text) | options)
        generation._core = Slow(generation._core, pause)
        return generation

    monkeypatch.setattr(Session, "reply", forced)


def slow_down(monkeypatch, pause: float):
    """Makes every reply take its time."""
    reply = Session.reply

    def slowed(self, conversation, **options):
        generation = reply(self, conversation, **options)
        generation._core = Slow(generation._core, pause)
        return generation

    monkeypatch.setattr(Session, "reply", slowed)


class Slow:
    """A turn that takes its time."""

    def __init__(self, core, pause):
        self._core, self._pause = core, pause

    def next(self):
        time.sleep(self._pause)
        return self._core.next()

    def __getattr__(self, name):
        return getattr(self._core, name)
