"""Text as it is generated, and the sampling behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np

from llm_runner import _core
from llm_runner.arguments import checked_ids, checked_int
from llm_runner.labels import never_raises
from llm_runner.option_types import GenerationOptions
from llm_runner.options import native


class TokenLogprob(NamedTuple):
    """How likely a token was, by the model's own distribution, before temperature, penalties and filters."""

    id: int
    logprob: float  # natural logarithm
    top: list[tuple[int, float]]  # (id, logprob) of the likeliest tokens, likeliest first


class Piece(NamedTuple):
    """What one step of a generation adds."""

    text: str  # whole characters; empty while a character or a stop string may go on
    token_id: int | None  # what was sampled
    logprob: TokenLogprob | None  # of token_id; 0 unless the option logprobs or top_logprobs was given
    finish_reason: str | None  # of the last piece


class Streamer(Protocol):
    """What transformers calls a streamer, such as its TextStreamer and TextIteratorStreamer."""

    def put(self, value: Any) -> None:
        """Takes ids, an integer array: first the prompt [1, tokens], then each token [1]."""

    def end(self) -> None:
        """There is nothing more."""


class Generation:
    """An iterator over pieces of text, each whole characters and never empty.

    Attributes, complete once it ends: `token_ids` (all that were sampled, the end-of-sequence token included),
    `logprobs` (one for each of them, 0 unless the option logprobs or top_logprobs was given) and
    `finish_reason`: "eos", "length", "stop_string", "stop_token", "time", "cancelled", or None while it runs or if it
    was closed.
    Thread safety: one thread at a time; `cancel` may come from any.
    """

    def __init__(self, core: _core.Generation, on_close: Callable[[], None] = lambda: None):
        self._core: _core.Generation | None = core
        self._on_close = on_close
        self._replay: deque[str] = deque()  # text that a streamer had already
        self._statistics: dict[str, Any] | None = None
        self.token_ids: list[int] = []
        self.logprobs: list[TokenLogprob] = []
        self.finish_reason: str | None = None

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        if self._replay:
            return self._replay.popleft()
        while (piece := self.next_piece()) is not None:
            if piece.text:
                return piece.text
        raise StopIteration

    def next_piece(self) -> Piece | None:
        """Takes one step; None at the end."""
        if self._core is None:
            return None
        text, token_id, self.finish_reason, logprob, top = self._core.next()
        entry = None if token_id is None else TokenLogprob(token_id, logprob, top)
        if entry is not None:
            self.token_ids.append(entry.id)
            self.logprobs.append(entry)
        if self.finish_reason is not None:
            self.close()
        return Piece(text, token_id, entry, self.finish_reason)

    def pieces(self) -> Iterator[Piece]:
        """Iterates over text, ids and log-probabilities instead of text alone."""
        while (piece := self.next_piece()) is not None:
            yield piece

    def stream_to(self, streamer: Streamer, prompt_ids: Sequence[int]) -> None:
        """Runs to the end and gives prompt and tokens to the streamer, whose `end` is called also after an error.

        The text can be iterated over afterwards.
        """
        try:
            streamer.put(np.array([prompt_ids], np.int64))
            for piece in self.pieces():
                if piece.token_id is not None:
                    streamer.put(np.array([piece.token_id], np.int64))
                if piece.text:
                    self._replay.append(piece.text)
        finally:
            self.close()
            streamer.end()

    def text(self) -> str:
        """Runs to the end and returns what is left of the text."""
        return "".join(self)

    @property
    def statistics(self) -> dict[str, Any]:
        """Tokens, seconds, tokens a second and the memory of the process, so far."""
        core = self._core
        if core is None:
            return self._statistics or {}
        return with_rates(core.statistics())

    def cancel(self) -> None:
        """From any thread: the step under way, or the next one, ends the generation at the next instruction.

        The finish_reason is then "cancelled", and the session goes on from what it had read, exactly.
        """
        core = self._core
        if core is not None:
            core.cancel()

    def close(self) -> None:
        """Stops. The statistics stay."""
        if self._core is not None:
            self._statistics = self.statistics
            self._core = None
            self._on_close()

    @never_raises
    def __repr__(self) -> str:
        state = self.finish_reason or ("closed" if self._core is None else "running")
        return f"{type(self).__name__}: {len(self.token_ids)} tokens, {state}"

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def warp(
    logits: np.ndarray, previous_ids: Sequence[int] = (), num_generated: int = 0, **options: Unpack[GenerationOptions]
) -> np.ndarray:
    """Returns what sampling draws from: the probability of each id after all penalties and filters.

    logits: float32 [vocab_size]   previous_ids: the text so far, of which the last num_generated ids are output
    options: those of `Model.generate`, tokens by their ids; what is not given is off, but for do_sample
    Source: transformers generation/logits_process.py
    """
    count = checked_int("num_generated", num_generated, 0, len(previous_ids))
    given = {"do_sample": True} | {name: value for name, value in options.items() if value is not None}
    values = np.asarray(logits, np.float32)
    return _core.warp(values, checked_ids(previous_ids), count, native(given, "generation"))


def with_rates(statistics: dict[str, Any]) -> dict[str, Any]:
    """Returns statistics of a generation with what they say a second."""
    decoded = max(statistics["generated_tokens"] - 1, 0)
    return statistics | {
        "prefill_tokens_per_second": _rate(statistics["prompt_tokens"], statistics["prefill_seconds"]),
        "decode_tokens_per_second": _rate(decoded, statistics["decode_seconds"]),
    }


def _rate(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if seconds > 0 else None
