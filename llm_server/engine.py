"""The model behind the server: its sessions, who waits for one, and the steps of a generation."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Sequence
from functools import lru_cache, partial
from os.path import commonprefix
from typing import Any, TypeVar

from llm_runner import (
    AsyncGeneration,
    Batch,
    ChatGeneration,
    Generation,
    Model,
    PrefixCache,
    ProgramError,
    Session,
    TokenLogprob,
)  # fmt: skip
from llm_server.errors import ApiError, invalid

T = TypeVar("T")

log = logging.getLogger("llm_server")


class Engine:
    """A model with as many sessions as requests run side by side; requests beyond them wait in turn.

    Each session keeps the last text that it read, and a request gets the one that has most of its prompt; what other
    sessions have read, now or before, it takes from the prefix cache.
    Not thread-safe: it belongs to the event loop.
    """

    def __init__(
        self, model: Model, name: str, parallel: int, max_queue: int, timeout: float, prefix_cache_bytes: int,
        **session_options: Any,
    ):  # fmt: skip
        self.model = model
        self.name = name
        self.parallel = parallel
        self.timeout = timeout
        self.max_queue = max_queue
        self.num_waiting = 0
        self.num_running = 0
        self.prefix_cache = PrefixCache(prefix_cache_bytes) if prefix_cache_bytes else None
        session_options["prefix_cache"] = self.prefix_cache
        self._batch = _batch_of(model, parallel, session_options) if parallel > 1 else None
        self._free: list[Session] = [self._open_session(session_options) for _ in range(parallel)]
        self.context_length: int = self._free[0].info["context_length"]
        self._turns = asyncio.Semaphore(parallel)
        self.token_text = lru_cache(maxsize=65536)(self._token_text)

    def _open_session(self, options: dict[str, Any]) -> Session:
        if self._batch is None:
            return self.model.session(**options)
        # The threads are the batch's; those of the session would only go back over what a state cannot rewind.
        session = self.model.session(**options | {"threads": 1})
        session.set_batch(self._batch)
        return session

    @contextlib.asynccontextmanager
    async def session(self, ids: Sequence[int]) -> AsyncIterator[Session]:
        """Waits for a session. Errors: ApiError 503 if too many wait, or for too long."""
        await self._wait()
        session = max(self._free, key=lambda free: len(commonprefix([free.tokens, list(ids)])))
        self._free.remove(session)
        self.num_running += 1
        try:
            yield session
        finally:
            self.num_running -= 1
            self._free.append(session)
            self._turns.release()

    async def _wait(self) -> None:
        if self._turns.locked() and self.num_waiting >= self.max_queue:
            raise ApiError(
                503, f"{self.num_waiting} requests wait already, the most that --max-queue allows: try again later",
                code="queue_full", retry_after=1,
            )  # fmt: skip
        self.num_waiting += 1
        try:
            async with asyncio.timeout(self.timeout):
                await self._turns.acquire()
        except TimeoutError:
            text = f"waited {self.timeout:g} seconds behind other requests: try again later"
            raise ApiError(503, text, code="queue_timeout", retry_after=5) from None
        finally:
            self.num_waiting -= 1

    def _token_text(self, token_id: int) -> str:
        # Twice, because decoders drop a space at the beginning of a text.
        return self.model.detokenize([token_id, token_id])[len(self.model.detokenize([token_id])) :]

    def check_prompt(self, ids: Sequence[int], param: str) -> None:
        """Errors: ApiError if the prompt is empty or does not fit."""
        if not ids:
            raise invalid(param, "has no tokens: at least one is needed")
        if len(ids) > self.context_length:
            text = f"{len(ids)} tokens do not fit into the context of {self.context_length} (--context-length)"
            raise invalid(param, text, "context_length_exceeded")

    def check_model(self, name: str | None) -> None:
        """Errors: ApiError if a request is for another model."""
        if name is not None and name != self.name:
            text = f"the model {name[:100]!r} does not exist: this server has {self.name!r}"
            raise ApiError(404, text, "model", "model_not_found")

    def close(self) -> None:
        """Frees the sessions that are not in use."""
        if self._batch is not None:
            self._batch.close()
        for session in self._free:
            session.close()


def _batch_of(model: Model, parallel: int, session_options: dict[str, Any]) -> Batch | None:
    """None for a model whose sequences cannot be computed together: its requests then share the CPU."""
    try:
        return model.batch(parallel, **{name: session_options.get(name) for name in ("threads", "cpus", "priority")})
    except ProgramError as error:
        log.warning("requests do not decode together: %s", error)
        return None


async def in_thread(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Runs what uses a session in a thread. A task that is cancelled meanwhile goes on when it is over."""
    work = asyncio.get_running_loop().run_in_executor(None, partial(function, *arguments, **options))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if work.exception() is None and isinstance(begun := work.result(), (Generation, ChatGeneration)):
            begun.close()
        raise


class _Steps:
    """Iterates over the steps of a generation instead of its text."""

    def __init__(self, generation: Generation | ChatGeneration):
        self._generation = generation
        self._step = generation.step if isinstance(generation, ChatGeneration) else generation.next_piece
        self.cancel = generation.cancel
        self.close = generation.close

    def __iter__(self):
        return self

    def __next__(self):
        step = self._step()
        if step is None:
            raise StopIteration
        return step


def steps(generation: Generation | ChatGeneration) -> AsyncGeneration:
    """Returns the steps of a generation for `async for`; leaving early, or cancelling the task, stops the model."""
    return AsyncGeneration(_Steps(generation))


def finish_reason(reason: str | None) -> str:
    """Returns OpenAI's word for the end of a generation."""
    return "length" if reason in ("length", "time") else "stop"


def logprob_json(engine: Engine, entry: TokenLogprob, top: int) -> dict[str, Any]:
    """Returns a token as chat completions write it."""

    def one(token_id: int, logprob: float) -> dict[str, Any]:
        text = engine.token_text(token_id)
        # A token that is part of a character has no text of its own.
        return {"token": text, "logprob": finite(logprob), "bytes": None if "\ufffd" in text else list(text.encode())}

    return one(entry.id, entry.logprob) | {"top_logprobs": [one(*item) for item in entry.top[:top]]}


def finite(logprob: float) -> float:
    """JSON has no infinity."""
    return logprob if math.isfinite(logprob) else -9999.0
