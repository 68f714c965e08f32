"""Calls of the runner from the event loop: what uses a session, and the steps of a generation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from llm_runner import AsyncGeneration, ChatGeneration, Generation

T = TypeVar("T")


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
