"""Answers that begin before they are complete, and clients that leave before that."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from llm_server.web.errors import as_api_error, error_body

T = TypeVar("T")


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


def _json(item: dict[str, Any]) -> bytes:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class StreamFormat:
    """How items are written; end: after the last, unless that was an error."""

    media_type: str
    write: Callable[[dict[str, Any]], bytes]
    end: bytes = b""


SERVER_SENT = StreamFormat("text/event-stream", lambda item: b"data: " + _json(item) + b"\n\n", b"data: [DONE]\n\n")
# The events are called what their item's type says.
NAMED_EVENTS = StreamFormat(
    "text/event-stream", lambda item: f"event: {item['type']}\ndata: ".encode() + _json(item) + b"\n\n"
)
LINES = StreamFormat("application/x-ndjson", lambda item: _json(item) + b"\n")


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


class Stream(Response):
    """Items as they come. An error after the beginning is the last of them, in the words of the API."""

    def __init__(self, first: dict[str, Any], rest: AsyncGenerator[dict[str, Any], None], form: StreamFormat):
        self._first = first
        self._rest = rest
        self._form = form
        self.media_type = form.media_type
        self.background = None
        self.status_code = 200
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with contextlib.suppress(ClientGone):
                await until_gone(receive, self._send(scope["path"], send))
        finally:
            await self._rest.aclose()

    def init_headers(self, headers: Any = None) -> None:
        super().init_headers(headers)
        self.raw_headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]

    async def _send(self, path: str, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send(self._part(self._first))
        try:
            async for item in self._rest:
                await send(self._part(item))
        except Exception as error:
            await send(self._part(error_body(as_api_error(error), path)))
        else:
            await send({"type": "http.response.body", "body": self._form.end, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _part(self, item: dict[str, Any]) -> Message:
        return {"type": "http.response.body", "body": self._form.write(item), "more_body": True}


async def respond(request: Request, items: AsyncGenerator[dict[str, Any], None], form: StreamFormat) -> Response:
    """Streams items. What goes wrong before the first of them is an ordinary error."""
    try:
        first = await until_gone(request.receive, anext(items))
    except BaseException:
        await items.aclose()
        raise
    return Stream(first, items, form)


async def respond_whole(request: Request, answer: Coroutine[Any, Any, dict[str, Any]]) -> Response:
    return JSONResponse(await until_gone(request.receive, answer))
