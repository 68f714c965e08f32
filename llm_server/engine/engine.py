"""A model behind the server: its sessions, who waits for one, and what decodes together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os.path import commonprefix
from typing import Any

from llm_runner import Batch, Model, PrefixCache, ProgramError, Session
from llm_server.engine.embeddings import Vectors
from llm_server.web.errors import ApiError, invalid

MAX_PARALLEL = 256  # sequences of a batch
MAX_SIDE_BY_SIDE = 4  # requests to a model whose sequences cannot be computed together
MAX_IDLE_SESSIONS = 16  # that keep their caches while nobody uses them

log = logging.getLogger("llm_server")

Mix = tuple[tuple[str, float], ...]  # names of adapters with their weights


@dataclass(frozen=True)
class EngineOptions:
    """max_queue: requests that wait for a session   timeout: seconds of waiting, and of a generation
    prefix_cache_bytes: what sessions have read and others may use, at most; 0: nothing is kept
    session: options of `Model.session`
    """

    max_queue: int = 512
    timeout: float = 600.0
    prefix_cache_bytes: int = 256 * 2**20
    session: dict[str, Any] = field(default_factory=dict)


class Engine:
    """A model with as many sessions as requests run side by side; requests beyond them wait in turn.

    Each session keeps the last text that it read, and a request gets the free one that has most of its prompt; what
    other sessions have read, now or before, it takes from the prefix cache. Sessions are opened when all are busy.
    Not thread-safe: it belongs to the event loop.
    """

    def __init__(
        self, model: Model, name: str, parallel: int, options: EngineOptions, adapters: Mapping[str, str] | None = None
    ):
        """adapters: files by the names of requests. Errors: ArgumentError naming the option of a session."""
        self.model = model
        self.name = name
        self.timeout = options.timeout
        self.max_queue = options.max_queue
        self.num_waiting = 0
        self.num_running = 0
        self.prefix_cache = PrefixCache(options.prefix_cache_bytes) if options.prefix_cache_bytes else None
        self.adapters = {name: model.load_adapter(text) for name, text in (adapters or {}).items()}
        self._mixes: dict[Session, Mix] = {}  # of sessions that have adapters
        self._session_options = options.session | {"prefix_cache": self.prefix_cache}
        generates = model.info["generates"]
        names = ("threads", "cpus", "priority")
        self.vectors = Vectors(model, {name: options.session.get(name) for name in names})
        self._batch = self._open_batch(parallel) if parallel > 1 and generates else None
        self.parallel = parallel if self._batch is not None else min(parallel, MAX_SIDE_BY_SIDE)
        self._turns = asyncio.Semaphore(self.parallel)
        self._free: list[Session] = [self._open_session()] if generates else []
        self.context_length: int = (
            self._free[0].info["context_length"] if generates else model.embedding_config["max_tokens"]
        )
        self.token_text = lru_cache(maxsize=65536)(self._token_text)

    def _open_batch(self, parallel: int) -> Batch | None:
        """None for a model whose sequences cannot be computed together: its requests then share the CPU."""
        names = ("threads", "cpus", "priority")
        try:
            return self.model.batch(parallel, **{name: self._session_options.get(name) for name in names})
        except ProgramError as error:
            log.warning("%s: requests do not decode together: %s", self.name, error)
            return None

    def _open_session(self) -> Session:
        if self._batch is None:
            return self.model.session(**self._session_options)
        # The threads are the batch's; those of the session would only go back over what a state cannot rewind.
        session = self.model.session(**self._session_options | {"threads": 1})
        session.set_batch(self._batch)
        return session

    @contextlib.asynccontextmanager
    async def session(self, ids: Sequence[int], mix: Mix = ()) -> AsyncIterator[Session]:
        """Waits for a session, which has these adapters. Errors: ApiError 503 if too many wait, or for too long."""
        await self._wait()
        self.num_running += 1
        session = None
        try:
            session = self._take(list(ids), mix)
            yield session
        finally:
            self.num_running -= 1
            if session is not None:
                self._give_back(session)
            self._turns.release()

    def mix(self, model: str | None, adapters: Sequence[str] | Mapping[str, float] | None) -> Mix:
        """Returns what a request asks for: its adapters, or the one that it names as its model, or none.

        Errors: ApiError naming the field
        """
        if adapters is None:
            adapters = [model] if model in self.adapters else []
        for name in adapters:
            if name not in self.adapters:
                known = ", ".join(map(repr, self.adapters)) or "none"
                text = f"{name[:100]!r}: must be adapters of the model {self.name!r}, which has {known}"
                raise invalid("adapters", text)
        if isinstance(adapters, Mapping):
            return tuple(adapters.items())
        return tuple((name, self.adapters[name].weight) for name in adapters)

    def _take(self, ids: list[int], mix: Mix) -> Session:
        if self._free:
            session = max(self._free, key=lambda free: self._worth(free, ids, mix))
            self._free.remove(session)
        else:
            session = self._open_session()
        if self._mixes.pop(session, ()) != mix:
            session.set_adapters([(self.adapters[name], weight) for name, weight in mix])
        if mix:
            self._mixes[session] = mix
        return session

    def _worth(self, session: Session, ids: list[int], mix: Mix) -> tuple[bool, int]:
        """Returns whether what a free session has read was read with these adapters, and how much of it is of use."""
        return self._mixes.get(session, ()) == mix, len(commonprefix([session.tokens, ids]))

    def _give_back(self, session: Session) -> None:
        self._free.append(session)
        if len(self._free) > MAX_IDLE_SESSIONS:
            oldest = self._free.pop(0)  # the one that was used longest ago
            self._mixes.pop(oldest, None)
            oldest.close()

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

    def check_ids(self, ids: Sequence[int], param: str) -> None:
        """Errors: ApiError naming the first that is none of the vocabulary."""
        vocab_size = self.model.info["vocab_size"]
        for token_id in ids:
            if not 0 <= token_id < vocab_size:
                raise invalid(param, f"the token id {token_id} must be 0..{vocab_size - 1}")

    def close(self) -> None:
        """Frees the sessions that are not in use."""
        self.vectors.close()
        if self._batch is not None:
            self._batch.close()
        for session in self._free:
            session.close()
        self._free.clear()
        self._mixes.clear()
        for adapter in self.adapters.values():
            adapter.close()
