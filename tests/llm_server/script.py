"""A model that says what it is told to."""

from __future__ import annotations

import time

from llm_runner import Session


def force(monkeypatch, model, text, pause: float = 0.0):
    """Makes every generation write a text and end; pause: seconds before each token."""
    ids = model.tokenize(text, add_special_tokens=False) + [model.generation_config["eos_token_id"][0]]
    start = Session._start

    def forced(self, prompt, stop_strings, options, on_close=lambda: None):
        generation = start(self, prompt, stop_strings, options | {"do_sample": False}, on_close)
        generation._core = Forced(model, ids, options, pause)
        return generation

    monkeypatch.setattr(Session, "_start", forced)


class Forced:
    """A core generation that samples given ids; the text is the tokenizer's."""

    def __init__(self, model, ids, options, pause):
        self._ids, self._at, self._model, self._pause = ids, 0, model, pause
        assert options["skip_special_tokens"] is False and options["skip_eos"] is True

    def next(self):
        time.sleep(self._pause)
        self._at += 1
        is_last = self._at == len(self._ids)
        before, now = (self._model.detokenize(self._ids[: self._at - back]) for back in (1, 0))
        text = "" if is_last else now[len(before) :]
        return text, self._ids[self._at - 1], "eos" if is_last else None, 0.0, []

    def statistics(self):
        return {"prompt_tokens": 1, "generated_tokens": self._at, "prefill_seconds": 0.0, "decode_seconds": 0.0}

    def cancel(self):
        pass
