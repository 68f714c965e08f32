"""Answers that begin before they are complete, and clients that leave before that."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from llm_server.errors import as_api_error

T = TypeVar("T")


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


async def until_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Awaits work, which is cancelled if the client leaves. Errors: ClientGone, and those of the work.

    The body of the request has been read.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Server-sent events: each item a JSON object, and [DONE] after the last.

    An error after the beginning is an event {"error": ...}, the last one.
    """

    media_type = "text/event-stream"

    def __init__(self, first: dict[str, Any], rest: AsyncGenerator[dict[str, Any], None]):
        self._first = first
        self._rest = rest
        self.background = None
        self.status_code = 200
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with contextlib.suppress(ClientGone):
                await until_gone(receive, self._send(send))
        finally:
            await self._rest.aclose()

    def init_headers(self, headers: Any = None) -> None:
        super().init_headers(headers)
        self.raw_headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send(_event(self._first))
        try:
            async for item in self._rest:
                await send(_event(item))
        except Exception as error:
            await send(_event(as_api_error(error).body()))
        else:
            await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _event(item: dict[str, Any]) -> Message:
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    return {"type": "http.response.body", "body": b"data: " + text.encode() + b"\n\n", "more_body": True}


async def respond(request: Request, chunks: AsyncGenerator[dict[str, Any], None]) -> Response:
    """Streams chunks. What goes wrong before the first of them is an ordinary error."""
    try:
        first = await until_gone(request.receive, anext(chunks))
    except BaseException:
        await chunks.aclose()
        raise
    return EventStream(first, chunks)


async def respond_whole(request: Request, answer: Coroutine[Any, Any, dict[str, Any]]) -> Response:
    return JSONResponse(await until_gone(request.receive, answer))
