"""Grammars of requests, compiled beside the event loop and one at a time, so that other requests go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from llm_server.web.errors import ApiError

T = TypeVar("T")


class Compiler:
    """A thread that compiles what requests bring, in the order in which they came. It belongs to the event loop."""

    def __init__(self):
        self._thread = ThreadPoolExecutor(1, "mote-grammar")

    async def run(self, seconds: float, function: Callable[..., T]) -> T:
        """Runs what compiles, and ends it when nobody waits any more.

        function: has a keyword is_cancelled, as `Grammar`
        Errors: ApiError 503 after `seconds` of waiting and compiling; those of the function
        """
        is_over = threading.Event()
        work = partial(function, is_cancelled=is_over.is_set)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except TimeoutError:
            text = f"the grammar was not compiled within {seconds:g} seconds (--timeout)"
            raise ApiError(503, text, code="grammar_timeout", retry_after=5) from None
        finally:
            is_over.set()

    def close(self) -> None:
        """Lets what waits fall."""
        self._thread.shutdown(wait=False, cancel_futures=True)
