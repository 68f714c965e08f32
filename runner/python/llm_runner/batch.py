"""Sequences that decode together."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Unpack

from llm_runner import _core
from llm_runner._core import Session as NativeSession
from llm_runner.arguments import checked_ids, checked_int
from llm_runner.errors import ArgumentError, MoteError
from llm_runner.generation import TokenLogprob
from llm_runner.labels import file_label, never_raises
from llm_runner.loaded import LoadedModel
from llm_runner.option_types import GenerationOptions
from llm_runner.options import native
from llm_runner.session_options import SessionOptions, native_session_options

MAX_SEQUENCES = 256


class AnySession(Protocol):
    """A `Session`."""

    @property
    def _core(self) -> NativeSession: ...


class BatchPiece(NamedTuple):
    """What one step adds to a sequence."""

    sequence: int  # as `Batch.add` called it
    text: str  # whole characters; empty while a character or a stop string may go on
    token_id: int | None  # what was sampled
    logprob: TokenLogprob | None  # of token_id; 0 unless the option logprobs or top_logprobs was given
    finish_reason: str | None  # of the last piece, as `Generation.finish_reason`
    error: MoteError | None  # what the sequence ended with instead of a finish_reason
    statistics: dict[str, Any] | None  # of the last piece

    @property
    def is_last(self) -> bool:
        """Whether the sequence is over."""
        return self.finish_reason is not None or self.error is not None


class Batch:
    """Sequences of one model that decode together; `Model.batch` opens it.

    A step reads the weights once for all sequences, and each gets what it would get alone, to the bit. Sequences join
    and end at any step: add them from any thread, let one thread step.

    with model.batch() as batch:
        numbers = [batch.add(prompt, max_new_tokens=64) for prompt in prompts]
        for piece in batch.run():
            print(piece.sequence, piece.text)

    Thread safety: `add`, `cancel`, `wait` and `len` from any thread at any time; calls of `step` take turns.
    """

    def __init__(self, model: LoadedModel, max_sequences: int = 16, **options: Unpack[SessionOptions]):
        checked_int("max_sequences", max_sequences, 1, MAX_SEQUENCES)
        if options.pop("draft_model", None) is not None:
            raise ArgumentError("draft_model: a batch decodes one token of each sequence at a time")
        self._model = model
        self._max_sequences = max_sequences
        self._native: _core.Batch | None = _core.Batch(model._core, max_sequences, native_session_options(options))
        self._changed = threading.Condition()

    def add(
        self,
        prompt: str | Sequence[int],
        *,
        session: AnySession | None = None,
        fork: bool = False,
        **options: Unpack[GenerationOptions],
    ) -> int:
        """Adds a sequence that the next steps compute and returns its number; numbers count up from 0.

        session: what the sequence continues, with its own context_length and kv_dtype; it has no other calls until the
            last piece. None: a new one, as the batch was told to open them
        fork: continues a fork of the session, which stays as it is
        options: as for `Model.generate`
        Errors: ArgumentError naming the option; ContextFullError if the prompt does not fit
        """
        ids = self._model.tokenize(prompt) if isinstance(prompt, str) else checked_ids(prompt)
        given = native(options, "generation")
        number = self._core().add(None if session is None else session._core, fork and session is not None, ids, given)
        with self._changed:
            self._changed.notify_all()
        return number

    def cancel(self, sequence: int) -> None:
        """From any thread: the sequence's next piece is its last, with the finish_reason "cancelled".

        Nothing happens if it is over.
        """
        self._core().cancel(checked_int("sequence", sequence, 0, 2**63 - 1))

    def step(self) -> list[BatchPiece]:
        """Computes a chunk of one prompt, if there is one, and a token of each sequence that has read its own.

        Returns: at most one piece a sequence; none if there is nothing to compute
        """
        return [_piece(*item) for item in self._core().step()]

    def run(self) -> Iterator[BatchPiece]:
        """Steps until every sequence is over, those added meanwhile included."""
        while len(self):
            yield from self.step()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is a sequence to compute; False after `timeout` seconds without one, or once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._native is None or len(self), timeout)
            return self._native is not None and len(self) > 0

    def __len__(self) -> int:
        """Sequences that are not over."""
        return self._core().num_sequences()

    def close(self) -> None:
        """Ends all sequences without further pieces; a step under way goes to its end."""
        self._native = None
        with self._changed:
            self._changed.notify_all()

    def _core(self) -> _core.Batch:
        core = self._native
        if core is None:
            raise ArgumentError("the batch is closed")
        return core

    @never_raises
    def __repr__(self) -> str:
        label = f"Batch of {file_label(self._model.path)}"
        if self._native is None:
            return f"{label}, closed"
        return f"{label}: {len(self)} sequences, at most {self._max_sequences} at a time"

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def generate_batch(
    batch: Batch,
    prompts: Sequence[str | Sequence[int]],
    options: GenerationOptions,
    forked: AnySession | None = None,
) -> Iterator[tuple[int, str]]:
    """Adds the prompts to an empty batch; the iterator, for `Model.generate_batch`, closes it.

    forked: what all of them continue a fork of
    """
    seed = options.get("seed")
    for index, prompt in enumerate(prompts):
        own: GenerationOptions = options if seed is None or index == 0 else {**options, "seed": seed + index}
        batch.add(prompt, session=forked, fork=forked is not None, **own)
    return _texts(batch)


def _texts(batch: Batch) -> Iterator[tuple[int, str]]:
    with batch:
        for piece in batch.run():
            if piece.error is not None:
                raise piece.error
            if piece.text:
                yield piece.sequence, piece.text


def _piece(
    sequence: int, piece: tuple | None, error: MoteError | None, statistics: dict[str, Any] | None
) -> BatchPiece:
    if piece is None:
        return BatchPiece(sequence, "", None, None, None, error, statistics)
    text, token_id, finish_reason, logprob, top = piece
    entry = None if token_id is None else TokenLogprob(token_id, logprob, top)
    return BatchPiece(sequence, text, token_id, entry, finish_reason, None, statistics)
