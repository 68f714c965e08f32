"""Text as it is generated, and the sampling behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from llm_runner import _core
from llm_runner.errors import ArgumentError
from llm_runner.options import GenerationOptions, checked_ids, checked_int, native_options


class TokenLogprob(NamedTuple):
    """How likely a token was, by the model's own distribution, before temperature, penalties and filters."""

    id: int
    logprob: float  # natural logarithm
    top: list[tuple[int, float]]  # (id, logprob) of the likeliest tokens, likeliest first


class Generation:
    """An iterator over pieces of text, each whole characters and never empty.

    Attributes, complete once it ends: `token_ids` (all that were sampled, the end-of-sequence token included),
    `logprobs` (one for each of them, 0 unless the option logprobs or top_logprobs was given) and
    `finish_reason`: "eos", "length", "stop_string", "cancelled", or None while it runs or if it was closed.
    Thread safety: one thread at a time.
    """

    def __init__(self, core: _core.Generation, on_close: Callable[[], None] = lambda: None):
        self._core = core
        self._on_close = on_close
        self._closed = False
        self._statistics: dict[str, Any] | None = None
        self.token_ids: list[int] = []
        self.logprobs: list[TokenLogprob] = []
        self.finish_reason: str | None = None

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        while not self._closed and self.finish_reason is None:
            text, token_id, self.finish_reason, logprob, top = self._core.next()
            if token_id is not None:
                self.token_ids.append(token_id)
                self.logprobs.append(TokenLogprob(token_id, logprob, top))
            if self.finish_reason is not None:
                self.close()
            if text:
                return text
        raise StopIteration

    def text(self) -> str:
        """Runs to the end and returns what is left of the text."""
        return "".join(self)

    @property
    def statistics(self) -> dict[str, Any]:
        """Tokens, seconds, tokens a second and the memory of the process, so far."""
        if self._statistics is not None:
            return self._statistics
        found = self._core.statistics()
        decoded = max(found["generated_tokens"] - 1, 0)
        found["prefill_tokens_per_second"] = _rate(found["prompt_tokens"], found["prefill_seconds"])
        found["decode_tokens_per_second"] = _rate(decoded, found["decode_seconds"])
        return found

    def close(self) -> None:
        """Stops. The statistics stay."""
        if not self._closed:
            self._closed = True
            self._statistics = self.statistics
            self._core = None
            self._on_close()

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def warp(
    logits: np.ndarray, previous_ids: Sequence[int] = (), num_generated: int = 0, **options: Unpack[GenerationOptions]
) -> np.ndarray:
    """Returns what sampling draws from: the probability of each id after all penalties and filters.

    logits: float32 [vocab_size]   previous_ids: the text so far, of which the last num_generated ids are output
    options: those of `Model.generate`; what is not given is off, dry_sequence_breakers too
    Source: transformers generation/logits_process.py
    """
    options.setdefault("do_sample", True)
    options.setdefault("dry_sequence_breakers", ())
    native = native_options(options, _no_tokenizer, ())
    count = checked_int("num_generated", num_generated, 0, len(previous_ids))
    return _core.warp(np.asarray(logits, np.float32), checked_ids(previous_ids), count, native)


def _no_tokenizer(text: str) -> list[int]:
    raise ArgumentError(f"dry_sequence_breakers: {text!r}: must be a token id, as there is no tokenizer here")


def _rate(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if seconds > 0 else None
