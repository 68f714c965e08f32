"""Requests that run at the same time decode together: one reading of the weights makes a token of each."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import defaultdict
from queue import SimpleQueue
from typing import Any

from llm_runner import Batch, BatchPiece, CancelledError, Generation, Model, MoteError, Session

log = logging.getLogger("llm_server")


class BatchRunner:
    """Steps a batch in a thread of its own. Thread safety: any thread."""

    def __init__(self, batch: Batch):
        self.batch = batch
        self._lock = threading.Lock()
        self._error: MoteError | None = None  # what every sequence ends with from now on
        self._pieces: defaultdict[int, SimpleQueue[BatchPiece]] = defaultdict(SimpleQueue)
        self._thread = threading.Thread(target=self._run, name="mote-batch", daemon=True)
        self._thread.start()

    def pieces(self, sequence: int) -> SimpleQueue[BatchPiece]:
        """Returns what a sequence's pieces come through."""
        with self._lock:
            queue = self._pieces[sequence]
            if self._error is not None:
                queue.put(_failed(sequence, self._error))
            return queue

    def forget(self, sequence: int) -> None:
        """Nobody reads the pieces of a sequence that is over."""
        with self._lock:
            self._pieces.pop(sequence, None)

    def close(self) -> None:
        """Ends the thread, and sequences with an error."""
        self.batch.close()
        self._thread.join()
        self._fail(CancelledError("the server ends"))

    def _run(self) -> None:
        while self.batch.wait():
            try:
                for piece in self.batch.step():
                    self.pieces(piece.sequence).put(piece)
            except MoteError as error:
                log.error("a step of the batch failed, no more are tried", exc_info=error)
                self._fail(error)
                return

    def _fail(self, error: MoteError) -> None:
        with self._lock:
            self._error = error
            for sequence, queue in self._pieces.items():
                queue.put(_failed(sequence, error))


def _failed(sequence: int, error: MoteError) -> BatchPiece:
    return BatchPiece(sequence, "", None, None, None, error, None)


class BatchedSession(Session):
    """A session whose generations are sequences of a batch; it is used for nothing else until they are closed."""

    def __init__(self, model: Model, runner: BatchRunner, **options: Any):
        # The threads are the batch's; those of the session would only go back over what a state cannot rewind.
        super().__init__(model, **options | {"threads": 1})
        self._runner = runner

    def _start(self, ids, stop_strings, options, on_close=lambda: None) -> Generation:
        number = self._runner.batch.add(ids, session=self, stop_strings=stop_strings, **options)
        sequence = _Sequence(self._runner, number)

        def close() -> None:
            sequence.close()
            on_close()

        return Generation(sequence, close)


class _Sequence:
    """What `Generation` iterates over, from a batch."""

    def __init__(self, runner: BatchRunner, number: int):
        self._runner = runner
        self._number = number
        self._is_over = False
        self._statistics = {"prompt_tokens": 0, "generated_tokens": 0, "prefill_seconds": 0.0, "decode_seconds": 0.0}

    def next(self) -> tuple[str, int | None, str | None, float, list[tuple[int, float]]]:
        piece = self._runner.pieces(self._number).get()
        if piece.is_last:
            self._is_over = True
            self._statistics |= piece.statistics or {}
            self._runner.forget(self._number)
        if piece.error is not None:
            raise piece.error
        entry = piece.logprob
        return (
            piece.text,
            piece.token_id,
            piece.finish_reason,
            entry.logprob if entry else 0.0,
            entry.top if entry else [],
        )

    def cancel(self) -> None:
        self._runner.batch.cancel(self._number)

    def close(self) -> None:
        """Waits until the batch has let go of the session."""
        if self._is_over:
            return
        self.cancel()
        with contextlib.suppress(MoteError):
            while not self._is_over:
                self.next()

    def statistics(self) -> dict[str, Any]:
        """Known at the end."""
        return dict(self._statistics)
