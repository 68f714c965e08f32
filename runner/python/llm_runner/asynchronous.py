"""Generations in asyncio: each step runs in a thread, the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Cancellable(Iterator[T_co], Protocol[T_co]):
    """An iterator like `Generation` and `ChatGeneration`."""

    def cancel(self) -> None:
        """From any thread: the step under way ends soon."""

    def close(self) -> None:
        """Stops."""


G = TypeVar("G", bound=Cancellable)


class AsyncGeneration(Generic[G, T]):
    """An asynchronous iterator over the items of `generation`, a `Generation` or `ChatGeneration`.

    Nothing is computed ahead: after leaving the loop the model does not go on, and `async with` or `aclose` frees the
    caches at once. Cancelling the task ends the step under way within an instruction, and closes.
    """

    def __init__(self, generation: G):
        self.generation = generation

    def __aiter__(self) -> AsyncGeneration[G, T]:
        return self

    async def __anext__(self) -> T:
        step = asyncio.get_running_loop().run_in_executor(None, next, self.generation, _END)
        try:
            item = await asyncio.shield(step)
        except asyncio.CancelledError:
            self.generation.cancel()
            await _settled(step)
            await _settled(asyncio.get_running_loop().run_in_executor(None, self.generation.close))
            raise
        if item is _END:
            raise StopAsyncIteration
        return item  # type: ignore[return-value]

    async def aclose(self) -> None:
        """Stops."""
        self.generation.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.generation.close)

    async def __aenter__(self) -> AsyncGeneration[G, T]:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


async def _settled(step: asyncio.Future) -> None:
    """Waits for a step that was cancelled, whoever cancels the waiting once more."""
    while not step.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([step])
    step.exception()


_END = object()
